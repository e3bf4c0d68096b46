"""Tables of Q that learn from replay in a world with knobs: several runs at once.

At each step a random policy adds one transition to the memory, and some transitions are replayed,
one after another. So the experience of a run does not depend on what it learns: two methods with
the same seed share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of
from per_tutorial.replay import ProportionalSampler, RankBasedSampler, UniformSampler
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.worlds.knobs import Knobs, experience

REWARDED = 32  # mean number of rewarded steps in a run's experience
WARM = 1 / 64  # share of the experience before replay begins
CURVE = 64  # points of an error curve
INITIAL_SCALE = 0.1  # standard deviation of the initial Q
#: Sampler, its keywords, and β at the start and at the end, as in the papers.
METHODS: dict[str, tuple[Any, dict[str, float], float, float]] = {
    "uniform": (UniformSampler, {}, 0.0, 0.0),
    "per": (ProportionalSampler, {"alpha": 0.6}, 0.4, 1.0),
    "rank": (RankBasedSampler, {"alpha": 0.7}, 0.5, 1.0),
}


@dataclass(frozen=True)
class Replaying:
    """How a run replays; the map has the defaults.

    Args:
        method: a name in `METHODS`.
        replays: transitions replayed per environment step.
        batch: transitions drawn at once, before their priorities are written; a multiple of
            ``replays``.
        memory: capacity of the memory, as a share of the whole experience.
    """

    method: str = "uniform"
    replays: int = 8
    batch: int = 8
    memory: float = 1.0

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)


class Results(NamedTuple):
    """What `learn` returns, one row per run."""

    area: NDArray[np.float64]  # the mean over training of the RMS error of Q
    final: NDArray[np.float64]  # its mean over the last tenth
    curve: NDArray[np.float64]  # (runs, CURVE) its means over equal parts of the training
    q: NDArray[np.float64]  # (runs, 2n, 2) the final tables


def steps_of(knobs: Knobs) -> int:
    """Environment steps of a training: enough for 32 rewarded ones on average."""
    return int(REWARDED * knobs.rarity / (1 - knobs.irrelevant))


@njit_cached
def replay_in_order(q, met, seed_index, slots, newest, step_sizes, discount, td_errors):
    """Learn the drawn slots (runs, batch) one after another, and write their TD errors δ.

    ``newest`` is (step of the newest transition, capacity): it maps a slot of the ring to the step
    of its transition.
    """
    states, actions, rewards, next_states, ended = met
    capacity = newest[1]
    for run in range(slots.shape[0]):
        row = seed_index[run]
        for k in range(slots.shape[1]):
            i = newest[0] - (newest[0] - slots[run, k]) % capacity
            s, a, following = states[row, i], actions[row, i], next_states[row, i]
            target = rewards[row, i]
            if not ended[row, i]:
                target += discount * max(q[run, following, 0], q[run, following, 1])
            td_errors[run, k] = target - q[run, s, a]
            q[run, s, a] += step_sizes[run, k] * td_errors[run, k]


@njit_cached
def errors_of(q, truth, out):
    """Write the RMS error of Q over the walk's state-action pairs into ``out`` (runs,)."""
    for run in range(q.shape[0]):
        total = 0.0
        for s in range(truth.shape[0]):
            for a in range(2):
                total += (q[run, s, a] - truth[s, a]) ** 2
        out[run] = np.sqrt(total / truth.size)


def learn(
    knobs: Knobs,
    replaying: Replaying,
    seeds: Sequence[int],
    rates: Sequence[float],
) -> Results:
    """Train a table for each seed at each rate; rows are ordered by rate, then by seed.

    Args:
        seeds: ints; calls with the same seeds see the same experience.
        rates: learning rates η.
    """
    steps = steps_of(knobs)
    met = experience(knobs, seeds, steps)
    seed_index = np.tile(np.arange(len(seeds)), len(rates))
    runs, rate_of = len(seed_index), np.repeat(np.asarray(rates, float), len(seeds))
    capacity = max(int(replaying.memory * steps), replaying.batch)
    first = np.stack(
        [np.random.default_rng((s, 11)).normal(0, INITIAL_SCALE, (2 * knobs.n, 2)) for s in seeds]
    )
    q = first[seed_index].copy()
    kind, keywords, beta_start, beta_end = METHODS[replaying.method]
    sampler = kind(capacity, [seeds[k] for k in seed_index], **keywords)
    truth = knobs.true_values
    errors, area, final = np.empty(runs), np.zeros(runs), np.zeros(runs)
    curve = np.zeros((runs, CURVE))
    warm_up, every = int(steps * WARM), max(replaying.batch // replaying.replays, 1)
    trained, late = steps - warm_up, (steps - warm_up) // 10
    td_errors = np.empty((runs, replaying.batch))
    counts = np.bincount(np.arange(trained) * CURVE // trained, minlength=CURVE)
    for t in range(steps):
        sampler.add(np.full((runs, 1), t % capacity))
        if t < warm_up:
            continue
        done = t - warm_up
        if t % every == 0:
            beta = beta_start + done / trained * (beta_end - beta_start)
            size = min(t + 1, capacity)
            slots, weights = sampler.sample(replaying.batch, np.full(runs, size), beta)
            newest, step_sizes = np.array([t, capacity]), rate_of[:, None] * weights
            replay_in_order(q, met, seed_index, slots, newest, step_sizes, knobs.gamma, td_errors)
            sampler.update(slots, td_errors)
        errors_of(q, truth, errors)
        area += errors / trained
        curve[:, done * CURVE // trained] += errors
        if done >= trained - late:
            final += errors / late
    return Results(area, final, curve / counts, q)
