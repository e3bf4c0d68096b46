"""Reliability of the target of a step, from the TD errors that follow in its episode.

These are the kernels of `ReaperSampler`. For each slot, `before` and `after` (runs, capacity) count
the steps of its episode before and after it. `num_added` (runs,) are the transitions ever added. A
successor is `stride` slots further on. `sums` and `errors` are the nodes of two sum trees, of p^α
and of p; `minima` are those of a min tree (see `refresh_minima`).
"""

import numpy as np

from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.segment_tree import set_minima

RUNNING = -1  # in `after`: the episode has not ended


@njit_cached
def mark_running(before, after, slots):
    """Mark `slots` (runs, n; negative: none) as new transitions of running episodes."""
    for run in range(slots.shape[0]):
        for slot in slots[run]:
            if slot >= 0:
                before[run, slot], after[run, slot] = 0, RUNNING


@njit_cached
def mark_episodes(before, after, slots, lengths, stride):
    """Set `before` and `after` of all steps of the episodes that end in `slots` (runs, n)."""
    capacity = after.shape[1]
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            if slots[run, k] < 0:
                continue
            for step in range(lengths[run, k]):
                slot = (slots[run, k] - step * stride) % capacity
                before[run, slot], after[run, slot] = lengths[run, k] - 1 - step, step


@njit_cached
def sum_between(nodes, first, last):
    """The sum of the leaves whose nodes are `first` to `last`, in O(log N)."""
    total = 0.0
    while first <= last:
        if first % 2 == 1:
            total += nodes[first]
            first += 1
        if last % 2 == 0:
            total += nodes[last]
            last -= 1
        first //= 2
        last //= 2
    return total


@njit_cached
def sum_of_steps(nodes, first_leaf, capacity, first, count, stride):
    """The sum of `count` leaves from slot `first` on, `stride` apart, around the ring."""
    if stride == 1:
        last = first + count - 1
        if last < capacity:
            return sum_between(nodes, first_leaf + first, first_leaf + last)
        return sum_between(nodes, first_leaf + first, first_leaf + capacity - 1) + sum_between(
            nodes, first_leaf, first_leaf + last - capacity
        )
    total, slot = 0.0, first
    for _ in range(count):
        total += nodes[first_leaf + slot]
        slot += stride
        if slot >= capacity:  # faster than `%`
            slot -= capacity
    return total


@njit_cached
def reliability(nodes, first_leaf, before, after, num_added, stride, slot):
    """R = 1 − Σ_{i>t} p_i / Σ_i p_i over the stored steps of an episode; 1 while it runs.

    Computed as Σ_{i≤t} / Σ_i: a difference of two large sums would lose a small R.
    """
    if after[slot] < 0:
        return 1.0
    capacity = len(after)
    # The oldest transition is in slot `num_added` % capacity; earlier steps are overwritten.
    stored = min(before[slot], (slot - num_added) % capacity // stride)
    first = (slot - stored * stride) % capacity
    until = sum_of_steps(nodes, first_leaf, capacity, first, stored + 1, stride)
    following = (slot + stride) % capacity
    return until / (
        until + sum_of_steps(nodes, first_leaf, capacity, following, after[slot], stride)
    )


@njit_cached
def compute_run(sums, errors, first_leaf, before, after, num_added, stride, omega, priorities):
    """Write p^α · R^ω of a run's slots into `priorities` (capacity,), 0 where nothing is stored."""
    priorities[:] = 0.0
    for slot in range(min(num_added, len(priorities))):
        share = reliability(errors, first_leaf, before, after, num_added, stride, slot) ** omega
        priorities[slot] = sums[first_leaf + slot] * share


@njit_cached
def compute_all(sums, errors, first_root, before, after, num_added, strides, omega, priorities):
    """`compute_run` of every run, into `priorities` (runs, capacity)."""
    leaves = len(sums) // (2 * first_root)
    for run in range(priorities.shape[0]):
        compute_run(
            sums,
            errors,
            (first_root + run) * leaves,
            before[run],
            after[run],
            num_added[run],
            strides[run],
            omega,
            priorities[run],
        )


@njit_cached
def compute_conservative(sums, errors, first_root, after, num_added, strides, omega, priorities):
    """`compute_all` with R_t = Σ_{i≤t} p_i / F in running episodes. F is the largest sum of p over
    the stored steps of any episode. If none has ended, R is 1.
    """
    leaves = len(sums) // (2 * first_root)
    runs, capacity = priorities.shape
    until = np.empty(capacity)  # Σ_{i≤t} p_i
    for run in range(runs):
        priorities[run] = 0.0
        first_leaf, stride = (first_root + run) * leaves, strides[run]
        newest, oldest = num_added[run] - 1, max(0, num_added[run] - capacity)
        totals, largest, ended = np.zeros(stride), 0.0, False
        for number in range(oldest, newest + 1):
            slot, environment = number % capacity, number % stride
            totals[environment] += errors[first_leaf + slot]
            until[slot] = totals[environment]
            largest = max(largest, until[slot])
            if after[run, slot] == 0:
                totals[environment], ended = 0.0, True
        whole = np.full(stride, largest)  # of the episode that each environment is in
        for number in range(newest, oldest - 1, -1):
            slot, environment = number % capacity, number % stride
            if after[run, slot] == 0:
                whole[environment] = until[slot]
            share = until[slot] / whole[environment] if ended else 1.0
            priorities[run, slot] = sums[first_leaf + slot] * share**omega


@njit_cached
def least_of_episode(sums, errors, first_leaf, before, after, num_added, stride, omega, end):
    """The smallest p^α · R^ω of the episode that ends in slot `end`.

    Along an episode R only grows. So only a step whose p^α is below those of all earlier steps can
    have the smallest product, and powers are computed for these few only.
    """
    capacity = len(after)
    stored = min(before[end], (end - num_added) % capacity // stride)
    slot, total = (end - stored * stride) % capacity, 0.0
    found, lowest, least = end, np.inf, np.inf
    for _ in range(stored + 1):
        total += errors[first_leaf + slot]
        value = sums[first_leaf + slot]
        if value < lowest:
            lowest = value
            product = value * total**omega
            if product < least:
                found, least = slot, product
        slot += stride
        if slot >= capacity:
            slot -= capacity
    share = reliability(errors, first_leaf, before, after, num_added, stride, found) ** omega
    return sums[first_leaf + found] * share


@njit_cached
def refresh_minima(
    minima, sums, errors, first_root, before, after, num_added, strides, omega, slots
):
    """Set the leaves of `slots` (runs, n) in `minima`; negative slots: none.

    In a running episode, the leaf of each step holds its p^α. In an ended one, the leaf of the last
    step holds the smallest p^α · R^ω of all steps, and the other leaves are infinite.
    """
    leaves = len(sums) // (2 * first_root)
    values = np.empty(slots.shape)
    for run in range(slots.shape[0]):
        first_leaf = (first_root + run) * leaves
        for slot in slots[run]:
            if slot >= 0:
                minima[first_leaf + slot] = -1.0  # to be computed, once
        for k in range(slots.shape[1]):
            slot = slots[run, k]
            if slot < 0:
                continue
            leaf = first_leaf + slot
            if minima[leaf] < 0.0:
                if after[run, slot] < 0:
                    minima[leaf] = sums[leaf]
                elif after[run, slot] > 0:
                    minima[leaf] = np.inf
                else:
                    minima[leaf] = least_of_episode(
                        sums,
                        errors,
                        first_leaf,
                        before[run],
                        after[run],
                        num_added[run],
                        strides[run],
                        omega,
                        slot,
                    )
            values[run, k] = minima[leaf]
    set_minima(minima, first_root, slots, values)


@njit_cached
def refresh_ends(minima, sums, errors, first_root, before, after, num_added, strides, omega, slots):
    """`refresh_minima` at the ends of the episodes of `slots`; in running ones, at `slots`."""
    ends = np.empty_like(slots)
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            slot = slots[run, k]
            if slot >= 0 and after[run, slot] > 0:
                slot = (slot + after[run, slot] * strides[run]) % after.shape[1]
            ends[run, k] = slot
    refresh_minima(minima, sums, errors, first_root, before, after, num_added, strides, omega, ends)
