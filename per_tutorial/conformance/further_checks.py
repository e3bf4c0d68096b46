"""Checks of what the paper does not promise: n-step returns, files, seeds, and robustness.

A buffer that follows the paper line by line may fail some of them, and trains well as long as
nothing of the kind happens. `examine(adapter, everything=True)` asks them.
"""

import os
import tempfile
from functools import partial
from typing import Any

import numpy as np

from per_tutorial.conformance.bench import Bench, Filled, Inconclusive, Raised, Skipped, numbers
from per_tutorial.conformance.checks import assert_proportions, check, skip_uniform

N, DISCOUNT = 3, 0.5
further = partial(check, kind="further")


@further("Hessel et al. 2018", "The agent learns towards targets that are wrong by whole rewards.")
def n_step(bench: Bench) -> str:
    """Is the return of n steps right, inside an episode, at both kinds of end and at the newest?"""
    filled = n_step_buffer(bench)
    newest, seen = len(filled.log) - 1, 0
    for _ in range(4800 // filled.settings.batch_size):
        drawn, serials, _ = filled.sample()
        if drawn.rewards is None or drawn.next_observations is None:
            raise Skipped("the adapter hands out no rewards or no next observations")
        size = len(serials)
        rewards = numbers("rewards", drawn.rewards, (size,))
        states = numbers("next_observations", drawn.next_observations, (size, 2))[:, 0]
        for k, serial in enumerate(serials.tolist()):
            last = min(serial + N - 1, end_of(filled, serial), newest)
            wanted = sum(
                DISCOUNT**j * filled.log[s].reward for j, s in enumerate(range(serial, last + 1))
            )
            end = filled.log[last]
            where = (
                "before a terminal" if end.terminated else "at the newest" if last == newest else ""
            )
            where = "before a time limit" if end.truncated else where or "inside an episode"
            window = f"from transition {serial}, {where}, {last - serial + 1} steps"
            assert abs(rewards[k] - wanted) < 1e-4 * wanted, (
                f"{window}: the return is {rewards[k]:.5g}, not {wanted:.5g}"
            )
            if drawn.terminated is not None:
                over = bool(np.asarray(drawn.terminated)[k])
                assert over == end.terminated, f"{window}: terminated is {over}"
            assert end.terminated or states[k] == end.next_observation[0], (
                f"{window}: the next state is {states[k]:g}, not {end.next_observation[0]:g}"
            )
            seen += 1
    return f"{seen} windows of {N} steps are right"


@further("Hessel et al. 2018", "What happens right before an end is never learned from.")
def n_step_tail(bench: Bench) -> str:
    """Are the last n − 1 steps of an episode starting points as well?"""
    filled = n_step_buffer(bench)
    counts = filled.counts(int(bench.capacity * np.log(bench.capacity * 1e7)))
    ends = [(serial, end_of(filled, serial)) for serial in filled.stored.tolist()]
    stored = range(len(filled.log) - bench.capacity, len(filled.log))
    tail = {s: end for s, end in ends if s in stored and end - s < N - 1 and end in stored}
    missing = [s for s in tail if counts[s - filled.stored[0]] == 0]
    assert not missing, (
        f"{len(missing)} of {len(tail)} steps within {N - 1} of an end never come, such as "
        f"number {missing[0]}"
    )
    return f"all {len(tail)} come"


def n_step_buffer(bench: Bench) -> Filled:
    """A buffer of n-step returns, filled up to the middle of an episode."""
    if not bench.adapter.n_step:
        raise Skipped("it makes no n-step returns")
    added = (bench.capacity + bench.capacity // 3) // 7 * 7 + 3
    return bench.fill(added, n_step=N, discount=DISCOUNT, episode=7)


def end_of(filled: Filled, serial: int) -> int:
    """The last step of the episode of this one."""
    return serial - serial % filled.episode + filled.episode - 1


@further("not in the paper", "A run cannot be repeated; or thirty seeds are one.")
def seeds(bench: Bench) -> str:
    """Does the seed decide what is drawn?"""
    if not bench.adapter.seeded:
        raise Skipped("it takes no seed")

    def run(seed: int) -> list:
        filled = Filled(
            bench.adapter, capacity=bench.capacity, batch_size=bench.batch_size, seed=seed
        )
        filled.add(bench.capacity + bench.adapter.delay)
        drawn, serials, _ = filled.sample()
        filled.update(drawn, np.linspace(0.1, 2, len(serials)))
        return [serials.tolist(), filled.many(200)[0].tolist()]

    first, again, other = (run(seed) for seed in (7, 7, 8))
    assert first == again, "the same seed twice draws different transitions"
    assert first != other, "two seeds draw the same transitions"
    return "equal seeds draw the same, two seeds differ"


@further("not in the paper", "After resuming, replay is uniform, or new experience waits.")
def saving(bench: Bench) -> str:
    """Does a loaded buffer hold the same, write on in the right place, and keep priorities and the
    largest one?"""
    if not (hasattr(bench.adapter, "save") and hasattr(bench.adapter, "load")):
        raise Skipped("the adapter has no `save` and `load`")
    filled, error_of = (
        bench.fill(bench.capacity + bench.capacity // 3, exact=True),
        bench.mixed_errors(),
    )
    unit, newest = min(1.0, (bench.adapter.clip or 40.0) / 40), len(filled.log) - 1
    filled.set_errors(lambda k: 40.0 * unit if k == newest else error_of(k))
    exponent = assert_proportions(filled, bench.draws)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "buffer")
        filled.call("save", filled.buffer, path)
        fresh = filled.call("make", filled.settings)
        returned = filled.call("load", fresh, path)
        filled.buffer = fresh if returned is None else returned
        try:
            assert_proportions(filled, bench.draws, exponent)
            counts = filled.add(4).counts(bench.draws)  # asserts that the oldest were overwritten
        except AssertionError as error:
            raise AssertionError(f"after loading, {error}") from None
    added = counts[len(counts) - 4 :]
    missing = filled.stored[counts == 0]
    assert added.all(), f"after loading, number {missing[-1]} was added and never comes"
    if bench.adapter.distribution == "proportional" and bench.adapter.newcomers == "largest":
        ratio = added.mean() / counts[newest - filled.stored[0]]
        assert ratio > 0.7, (
            f"after loading, a new one is {ratio:.2f} times as likely as the largest"
        )
    return "transitions, priorities and the largest priority are kept"


# Robustness ---------------------------------------------------------------------------------------


@further("Algorithm 1, line 12", "With several actors, new experience gets others' priorities.")
def late_updates(bench: Bench) -> str:
    """Does a late update, large or tiny, leave the new owners of the slots alone?"""
    skip_uniform(bench)
    for error in (1000.0, 1e-4):
        filled = bench.fill(exact=True)
        drawn, serials, _ = filled.sample()
        filled.add(bench.capacity)
        try:
            filled.update(drawn, np.full(len(serials), error))
        except Raised as raised:
            require_works(raised, lambda: bench.fill(exact=True).update(*in_time(bench)))
            continue
        counts = filled.counts(bench.draws // 2)
        owners = np.isin(filled.stored - bench.capacity, serials)
        share, fair = counts[owners].sum() / counts.sum(), owners.mean()
        off = abs(share - fair) / np.sqrt(fair * (1 - fair) / counts.sum())
        if bench.adapter.distribution == "rank":  # ties may be ordered in any way
            top, number = np.argsort(-counts), owners.sum()
            extremes = (set(top[:number].tolist()), set(top[-number:].tolist()))
            off = 10.0 * (set(np.flatnonzero(owners).tolist()) in extremes)
        assert off < 6, (
            f"after an update with |δ| = {error:g}, the new owners get {share:.0%} of the draws, "
            f"and are {fair:.0%} of the buffer"
        )
    return "late updates with |δ| = 1000 and 0.0001 change nothing"


def in_time(bench: Bench) -> tuple[Any, Any]:
    """Arguments of an update that is not late, of another buffer of the kind."""
    drawn, serials, _ = bench.fill(exact=True).sample()
    return drawn, np.full(len(serials), 1.0)


def require_works(raised: Raised, act: Any) -> None:
    """Raise `Inconclusive` unless the refusal was the buffer's, and the usual call works."""
    if raised.by_adapter:
        raise Inconclusive(f"the adapter itself stops: {raised}") from raised
    try:
        act()
    except Raised as usual:
        raise Inconclusive(f"the usual call is refused as well: {usual}") from usual


@further("not in the paper", "One NaN makes every later draw the same slot, in silence.")
def bad_errors(bench: Bench) -> str:
    """Are TD errors that are NaN or infinite kept out of the priorities?"""
    for bad in (np.nan, np.inf):
        filled = bench.fill(exact=True).set_errors(bench.mixed_errors())
        exponent = assert_proportions(filled, bench.draws)
        drawn, serials, _ = filled.sample()
        errors = np.array([filled.errors[k] for k in serials.tolist()])
        errors[len(errors) // 2] = bad
        try:
            filled.update(drawn, errors)
        except Raised:
            pass  # to refuse is right, if nothing was written
        try:
            weights = filled.sample()[2]
            assert weights is None or np.isfinite(weights).all(), "weights are not finite"
            filled.set_errors(filled.errors.__getitem__)
            assert_proportions(filled, bench.draws, exponent)
        except (AssertionError, Inconclusive) as error:
            raise AssertionError(f"after a TD error of {bad}, {error}") from None
    return "draws are right after NaN and after infinity"


@further("not in the paper", "The agent learns from transitions that never were.")
def empty(bench: Bench) -> str:
    """Does an empty buffer refuse to be sampled?"""
    try:
        bench.fill(0).sample()
    except Raised as raised:
        require_works(raised, lambda: bench.fill().sample())
        return str(raised)
    except AssertionError as error:
        raise AssertionError(f"from an empty buffer, {error}") from None
    raise AssertionError("an empty buffer returned a transition")


@further("not in the paper", "If an environment reuses its arrays, the buffer shows the last one.")
def arrays_added(bench: Bench) -> str:
    """Does what is stored stay as it is, if the caller writes over the arrays that were added?"""
    if not bench.adapter.copies_added:
        raise Skipped("it is documented to keep the arrays")
    filled = bench.fill(0, batch_size=bench.batch_size).add(bench.capacity, spoil=True)
    for _ in range(20):
        drawn = filled.sample()[0]
        for state in np.atleast_2d(np.asarray(drawn.next_observations, float))[:, :1].ravel():
            assert state != 0, "it keeps the arrays that are added: next observations changed"
    return "nothing changed"


@further("not in the paper", "A minibatch that is kept or prefetched changes later.")
def arrays_drawn(bench: Bench) -> str:
    """Is a minibatch the caller's own: does it stay, and may the caller change it?"""
    if not bench.adapter.copies_drawn:
        raise Skipped("minibatches are documented to share their arrays")
    filled = bench.fill()
    first = filled.sample()[0]
    before = fields_of(first)
    for event in ("the next one was drawn", "its transitions were replaced"):
        _ = filled.add(bench.capacity) if "replaced" in event else filled.sample()
        changed = [n for n, v in fields_of(first).items() if not np.array_equal(v, before[n])]
        assert not changed, f"{' and '.join(changed)} of a minibatch changed when {event}"
    for values in filled.sample()[0]:
        write_over(values)
    for _ in range(20):
        filled.sample()  # asserts that nothing comes that was never added
    return "it stays, and writing over it changes nothing"


def fields_of(drawn: Any) -> dict[str, Any]:
    """Copies of a minibatch's arrays by name."""
    skipped = ("keys", "steps")
    named = {n: v for n, v in drawn._asdict().items() if v is not None and n not in skipped}
    return {name: np.array(values, float) for name, values in named.items()}


def write_over(values: Any) -> None:
    """Fill arrays and CPU tensors of numbers with zeros in place, also in lists."""
    if isinstance(values, list | tuple):
        for one in values:
            write_over(one)
    if hasattr(values, "detach"):  # a torch tensor; from another device, this is a copy
        values = np.asarray(values.detach().cpu())
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.flags.writeable:
        values[...] = 0


@further("not in the paper", "An agent that logs or reuses its TD errors sees other numbers.")
def arguments(bench: Bench) -> str:
    """Does `update` leave the caller's TD errors as they are?"""
    filled = bench.fill()
    for _ in range(3):
        drawn, serials, _ = filled.sample()
        filled.update(drawn, np.linspace(-2, 3, len(serials)))
        assert not filled.wrote, filled.wrote
    return "they stay as they are"


@further("3.3, sum tree", "Once in millions of draws an empty slot is replayed.")
def edges(bench: Bench) -> str:
    """Does a draw at the very edge of the total fall on something stored?"""
    if not hasattr(bench.adapter, "find"):
        raise Skipped("the adapter has no `find`")
    for stored in (5, bench.capacity // 2 + 1, bench.capacity):
        filled = bench.fill(stored, batch_size=4).set_errors(bench.mixed_errors())
        for fraction in (0.0, 5e-324, 0.5, 1 - 2.0**-24, 1 - 2.0**-53):
            place = f"with {stored} stored, at the fraction {fraction!r} of the total"
            found = numbers("find", filled.call("find", filled.buffer, fraction), (2,))
            assert found[0] in filled.serial_of, f"{place}, it finds {found.tolist()}, never added"
    return "from 0 to 1 − 2⁻⁵³ of the total"
