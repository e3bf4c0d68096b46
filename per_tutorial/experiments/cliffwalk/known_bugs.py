"""What a bug costs on the Blind Cliffwalk: transitions replayed until the values are right.

This is the paper's first experiment (section 3.1) with an agent's buffer, minibatches and weights.
The buffer holds all transitions of a walk of 10 states from the start. A table of Q learns the
transitions of each minibatch one by one, until its mean squared error is below 1e-3. `BUGS` are
the buffer bugs that can show in such a walk; `studies.declared.broken` is about agents.

`python -m per_tutorial.experiments.cliffwalk.known_bugs FILE.csv` measures the arms that are
missing from the file and prints a report.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.data import data_file
from per_tutorial.common.provenance import versions
from per_tutorial.common.tables import read_table, write_table
from per_tutorial.experiments.cliffwalk.environment import Memory, make_memory, true_values
from per_tutorial.experiments.cliffwalk.learner import CONVERGED
from per_tutorial.experiments.known_bugs import KNOWN_BUGS
from per_tutorial.experiments.statistics.families import agreement
from per_tutorial.replay.buffers import PrioritizedReplayBuffer, ReplayBuffer
from per_tutorial.replay.contracts import Batch, Floats
from per_tutorial.replay.replay import Replay

RESULTS = "broken-cliffwalk.csv"  # of `common.data`
QUESTION = "What does each bug of PER cost where PER gains most (the Blind Cliffwalk)?"
METRIC = (
    "logarithm to base 2 of the transitions replayed until the mean squared error is below 1e-3"
)
STATES, RUNS = 10, 30
BATCH, STEP_SIZE, ALPHA, BETA = 8, 0.25, 0.6, 0.4
INITIAL_SCALE = 0.1  # standard deviation of the initial Q
LIMIT = 200_000  # transitions; a run that has not converged by then has failed and counts as LIMIT
SETTINGS = {
    "states": STATES,
    "runs": RUNS,
    "batch": BATCH,
    "step_size": STEP_SIZE,
    "alpha": ALPHA,
    "beta": BETA,
    "initial_scale": INITIAL_SCALE,
    "limit": LIMIT,
}
BUGS = (
    "no-weights",
    "inverted-weights",
    "weights-that-sum-to-one",
    "beta-climbs-with-draws",
    "buffer-minimum",
    "zero-minimum",
    "mixed-units",
    "squared-priority",
    "huber-priority",
    "signed-priority",
    "no-epsilon",
    "alpha-twice",
    "starved-newcomers",
    "off-by-one-total",
    "tie-branch",
)
ARMS = ("per", "uniform", *BUGS)  # the first is the reference


class Walk(NamedTuple):
    """One run, a row of the results."""

    arm: str
    run: int
    replayed: int  # transitions until it converged, or LIMIT
    error: float  # final mean squared error of Q
    value: float  # final mean over states of the largest Q


def make_buffer(arm: str, capacity: int, runs: int) -> Replay:
    """The buffer of an arm; an observation is the number of a state."""
    settings: dict[str, Any] = {"observation_dtype": np.int64, "runs": runs, "seed": range(runs)}
    if arm == "uniform":
        return ReplayBuffer(capacity, (), **settings)
    if arm == "per":
        return PrioritizedReplayBuffer(capacity, (), alpha=ALPHA, **settings)
    return KNOWN_BUGS[arm].buffer(capacity, (), alpha=ALPHA, **settings)


def learn(q: Floats, batch: Batch, discount: float) -> Floats:
    """Learn the transitions of each run's minibatch, one after the other.

    Args:
        q: (runs, states, 2), changed in place.
        batch: fields (runs, batch).
        discount: γ.

    Returns the TD errors δ (runs, batch), each measured just before its own update.
    """
    runs, size = np.arange(len(q)), batch.indices.shape[1]
    td_errors = np.empty((len(q), size))
    for k in range(size):
        state, action = batch.observations[:, k], batch.actions[:, k]
        following = q[runs, batch.next_observations[:, k]].max(axis=1)
        target = batch.rewards[:, k] + discount * np.where(batch.terminated[:, k], 0.0, following)
        td_errors[:, k] = target - q[runs, state, action]
        q[runs, state, action] += STEP_SIZE * batch.weights[:, k] * td_errors[:, k]
    return td_errors


def measure(arm: str, runs: int = RUNS, limit: int = LIMIT) -> list[Walk]:
    """Train the runs of an arm side by side until each has converged or replayed ``limit``.

    The runs are independent. A run has the same memory and the same initial Q in all arms.
    """
    truth, generators = true_values(STATES), [np.random.default_rng(run) for run in range(runs)]
    memories = [make_memory(STATES, rng) for rng in generators]
    q = np.array([rng.normal(0.0, INITIAL_SCALE, truth.shape) for rng in generators])
    states, actions, rewards, following = (
        np.array([getattr(memory, field) for memory in memories]) for field in Memory._fields
    )
    # Two slots stay empty: there are 2 ** (STATES + 1) − 2 transitions.
    replay = make_buffer(arm, 2 ** (STATES + 1), runs)
    replay.extend(states, actions, rewards, np.maximum(following, 0), following < 0)
    found: dict[int, Walk] = {}
    for replayed in range(0, limit + 1, BATCH):
        errors = ((q - truth) ** 2).mean(axis=(1, 2))
        for run in np.flatnonzero((errors < CONVERGED) | (replayed + BATCH > limit)).tolist():
            value = float(q[run].max(axis=1).mean())
            found.setdefault(run, Walk(arm, run, replayed, float(errors[run]), value))
        if len(found) == runs:
            break
        batch = replay.sample(BATCH, BETA)
        replay.update_priorities(batch.indices, learn(q, batch, 1 - 1 / STATES))
    return [found[run] for run in range(runs)]


def measure_arms(
    path: str | os.PathLike[str], progress: Callable[[str], object] = lambda arm: None
) -> list[Walk]:
    """Measure the arms that are missing from a CSV file, saving after each; returns all rows.

    Raises ValueError if the file is damaged or was made with other settings.
    """
    walks = load_walks(path) if Path(path).exists() else []
    for arm in ARMS:
        if arm not in {walk.arm for walk in walks}:
            progress(arm)
            walks += measure(arm)
            heading = {"settings": SETTINGS, "metric": METRIC, **versions("numpy", "numba")}
            write_table(path, heading, Walk._fields, walks)
    return walks


def load_walks(path: str | os.PathLike[str] | None = None) -> list[Walk]:
    """The rows of a results file, by default `RESULTS`.

    Raises ValueError if it is damaged or was made with other settings.
    """
    path = data_file(RESULTS) if path is None else path
    heading, rows = read_table(path, Walk._fields)
    if heading.get("settings") != SETTINGS:
        raise ValueError(
            f"path: {os.fspath(path)!r} was made with {heading.get('settings')}, not {SETTINGS}"
        )
    try:
        return [
            Walk(arm, int(run), int(replayed), float(error), float(value))
            for arm, run, replayed, error, value in rows
        ]
    except ValueError as error:
        raise ValueError(f"path: {os.fspath(path)!r} holds no results ({error})") from error


def logarithms(walks: Iterable[Walk]) -> dict[str, NDArray[np.float64]]:
    """{arm: the metric of its runs, (runs,)}."""
    found: dict[str, list[int]] = {}
    for walk in walks:
        found.setdefault(walk.arm, []).append(walk.replayed)
    return {arm: np.log2(replayed) for arm, replayed in found.items()}


def report(walks: list[Walk]) -> str:
    """The results as text: a line for each arm, compared with correct PER."""
    logs = logarithms(walks)
    lines = [
        f"{QUESTION}\n{METRIC}, {RUNS} runs an arm, paired, 95 % intervals",
        "factor: how many times as many transitions as PER",
        "(≥: some run failed, and counts as if it had converged at the limit)",
        "p: the largest of bootstrap, paired t-test and signed ranks,",
        "each corrected for the number of comparisons (Holm)",
    ]
    others = [arm for arm in logs if arm != "per"]
    judged = dict(zip(others, agreement([(logs[a], logs["per"]) for a in others]), strict=True))
    true_value = true_values(STATES).max(axis=1).mean()
    for arm, values in logs.items():
        mine = [walk for walk in walks if walk.arm == arm]
        failed = sum(walk.error >= CONVERGED for walk in mine)
        value = np.mean([walk.value for walk in mine])
        line = (
            f"{arm:26} median {np.median(2**values):9,.0f}  failed {failed:2} of {len(mine)}  "
            f"largest Q {value:.3f} (true {true_value:.3f})"
        )
        if arm != "per":
            factor, low, high = (2**number for number in judged[arm].difference)
            sign = "≥" if failed else " "
            line += f"  factor {sign}{factor:6.2f} [{low:.2f}, {high:.2f}]  "
            line += f"{judged[arm].verdict:14}  p {judged[arm].p:.3f}"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(measure_arms(sys.argv[1], print)))
