"""Does another reading of the paper give its medians on the Blind Cliffwalk (figure 2)?

python tools/paper_readings.py         try the readings that docs/paper_readings.csv.gz lacks
python tools/paper_readings.py --show  print how far each curve is from the paper's

The paper leaves details open, and `CliffwalkLearner` reads them in the plainest way. Here each
detail is read otherwise, alone and with each other detail. A median is that of ten runs, as in the
paper. It is a search and not a test: with so many readings, some come near a curve by chance.
"""

import itertools
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from per_tutorial.common.provenance import versions
from per_tutorial.common.tables import read_table, write_table
from per_tutorial.experiments.cliffwalk.environment import Memory
from per_tutorial.experiments.cliffwalk.figures import PAPER
from per_tutorial.experiments.cliffwalk.learner import (
    CONVERGED,
    GREEDY,
    ORACLE,
    PROPORTIONAL,
    UNIFORM,
    Problem,
    WalkLearner,
    learn,
    q_value,
    td_error,
)
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.random_streams import next_uniform
from per_tutorial.replay.samplers.proportional import sample_stratified
from per_tutorial.replay.samplers.rank import sample_ranks, settle
from per_tutorial.replay.trees import set_sums

RESULTS = Path(__file__).parents[1] / "docs/paper_readings.csv.gz"
RUNS = 10
FAR = 10  # a run that needs this many times the paper's median counts as never converged
LARGEST = 8190  # on the paper's axis; longer walks take long
HEADING = {"runs": RUNS, "far": FAR}

# By detail: the plain reading first, then the others.
BOTH = {
    "error": ("all", "right actions", "largest of a state", "copies counted", "root"),
    "start": ("deviation 0.1", "variance 0.1", "zeros"),
    "discount": ("1 − 1/n", "1 − 1/(n + 1)"),
    "memory": ("2ⁿ sequences", "one copy of each", "a forced last state"),
    "draws": ("single", "sweeps", "episodes"),  # of uniform replay
    "check": ("every update", "every 100"),
    "first": ("largest", "errors"),  # priorities before any replay
}
LINEAR = {
    "step": ("divided by ‖φ‖²", "undivided"),
    "bias": ("one an action", "shared"),
    "ranks": ("heap", "sorted"),
    "alpha": ("Atari's", "0.5", "0.6", "0.7", "0.8", "0.9", "1"),
}
DETAILS = {"tabular": BOTH, "linear": BOTH | LINEAR}
SINGLE, SWEEPS = range(2)  # of the draws; what is neither is episodes
SAMPLERS = {
    panel: [sampler for kind, sampler in PAPER if kind == panel] for panel in ("tabular", "linear")
}
ATARI_ALPHA = {"rank": 0.7, "proportional": 0.6}


class Rules(NamedTuple):
    """A reading, as the compiled loop takes it."""

    weights: np.ndarray  # (states, 2), of the squared errors; their sum is 1
    largest: bool  # count the error of max Q instead
    converged: float  # below this mean squared error
    check_every: int  # updates
    draws: int  # index in BOTH["draws"]
    is_sorted: bool
    shared: bool  # one bias for both actions


@njit_cached
def error(theta, bias, truth, rules):
    """The error that must fall below `rules.converged`."""
    total = 0.0
    for state in range(truth.shape[0]):
        if rules.largest:
            best = max(q_value(theta, bias, state, 0), q_value(theta, bias, state, 1))
            total += (best - max(truth[state, 0], truth[state, 1])) ** 2 / truth.shape[0]
        else:
            for action in range(2):
                miss = q_value(theta, bias, state, action) - truth[state, action]
                total += rules.weights[state, action] * miss**2
    return total


@njit_cached
def learn_shared(theta, memory, bias, k, step, shared):
    """`learn`, for the biases of both actions if they are one."""
    learn(theta, memory, bias, k, step)
    if shared:
        theta[1 - memory.actions[k], -1] += bias * step


@njit_cached
def move(keys, slots, ranks, size, rank, key, slot):
    """Like `settle`, for an array that stays sorted."""
    while rank > 1 and keys[rank - 1] <= key:
        keys[rank], slots[rank] = keys[rank - 1], slots[rank - 1]
        ranks[slots[rank]] = rank
        rank -= 1
    while rank < size and keys[rank + 1] > key:
        keys[rank], slots[rank] = keys[rank + 1], slots[rank + 1]
        ranks[slots[rank]] = rank
        rank += 1
    keys[rank], slots[rank], ranks[slot] = key, slot, rank


@njit_cached
def uniform_choice(problem, choice, draws, update, last):
    """The next transition of uniform replay; `last` is the one before, -1 at the start."""
    memory = problem.memory
    if draws == SINGLE:
        return int(next_uniform(choice.random, 0) * len(memory.states))
    if draws == SWEEPS:
        return update % len(memory.states)  # the memory is in random order
    state = 0 if last < 0 else max(memory.next_states[last], 0)
    action = int(next_uniform(choice.random, 0) * 2)
    return choice.kinds[min(2 * state + action, len(choice.kinds) - 1)]


@njit_cached
def oracle_choice(theta, problem, kinds, rules):
    """The kind of transition whose replay leaves the least error."""
    memory, truth, discount, bias, step_size = problem
    best, least, before = kinds[0], np.inf, theta.copy()
    for k in kinds:
        step = step_size * td_error(theta, memory, discount, bias, k)
        learn_shared(theta, memory, bias, k, step, rules.shared)
        loss = error(theta, bias, truth, rules)
        theta[:] = before
        if loss < least:
            best, least = k, loss
    return best


@njit_cached
def set_priority(choice, is_sorted, k, delta):
    if choice.sampler == PROPORTIONAL:
        slot, value = np.full((1, 1), k), np.full((1, 1), (delta + choice.epsilon) ** choice.alpha)
        set_sums(choice.nodes, 1, slot, value)
    elif len(choice.slots):
        keys, slots, ranks = choice.keys[0], choice.slots[0], choice.ranks[0]
        size = choice.sizes[0]
        if is_sorted:
            move(keys, slots, ranks, size, ranks[k], delta, k)
        else:
            settle(keys, slots, ranks, size, ranks[k], delta, k)


@njit_cached
def replay(theta, problem, choice, rules, limit):
    """Replay one transition at a time; return the updates until converged, or -1."""
    memory, truth, discount, bias, step_size = problem
    chosen, probability = np.zeros((1, 1), np.int64), np.zeros((1, 1))
    k = -1
    for update in range(limit):
        if update % rules.check_every == 0 and error(theta, bias, truth, rules) < rules.converged:
            return update
        if choice.sampler == UNIFORM:
            k = uniform_choice(problem, choice, rules.draws, update, k)
        elif choice.sampler == GREEDY:
            k = choice.slots[0, 1]
        elif choice.sampler == ORACLE:
            k = oracle_choice(theta, problem, choice.kinds, rules)
        elif choice.sampler == PROPORTIONAL:
            sample_stratified(choice.nodes, 1, choice.random, chosen, probability)
            k = chosen[0, 0]
        else:
            sample_ranks(choice.sums, choice.sizes, choice.random, chosen)
            k = choice.slots[0, chosen[0, 0]]
        delta = td_error(theta, memory, discount, bias, k)
        learn_shared(theta, memory, bias, k, step_size * delta, rules.shared)
        set_priority(choice, rules.is_sorted, k, abs(delta))
    return -1


class Reader(WalkLearner):
    """A learner of the walk under one reading, {detail: reading}, plain where nothing is said."""

    def __init__(self, panel: str, n: int, sampler: str, reading: dict[str, str], seed: int):
        said = {detail: options[0] for detail, options in (BOTH | LINEAR).items()} | reading
        alpha = said["alpha"]
        scale = {"deviation 0.1": 0.1, "variance 0.1": 0.1**0.5, "zeros": 0.0}[said["start"]]
        super().__init__(
            n,
            sampler,
            linear=panel == "linear",
            alpha=ATARI_ALPHA.get(sampler, 0.0) if alpha == "Atari's" else float(alpha),
            initial_scale=scale,
            seed=seed,
        )
        discount = 1 - 1 / (n + (said["discount"] != "1 − 1/n"))
        right = self.truth > 0
        self.truth = right * discount ** (n - 1 - np.arange(n))[:, None]
        weights = np.ones((n, 2))
        if said["error"] == "right actions":
            weights = right.astype(float)
        elif said["error"] == "copies counted":
            weights *= 2.0 ** np.arange(n - 1, -1, -1)[:, None]

        rng = np.random.default_rng([seed, 1])
        if said["memory"] == "one copy of each":
            rows = rng.permutation(self._choice.kinds)
            self.memory = Memory(*(field[rows] for field in self.memory))
        elif said["memory"] == "a forced last state":
            self._add_forced_state(discount, rng.normal(0.0, scale))
            weights = np.vstack([weights, [weights[-1].max(), 0.0]])
        if said["bias"] == "shared":
            self.theta[1, -1] = self.theta[0, -1]

        bias = self._problem.bias
        step = self.step_size / (1 if said["step"] == "undivided" else 1 + bias**2)
        self._problem = Problem(self.memory, self.truth, discount, bias, step)
        self._choice = self._make_choice(seed)
        if said["first"] == "errors":
            self._enter_errors()
        self.rules = Rules(
            weights / weights.sum(),
            said["error"] == "largest of a state",
            CONVERGED**2 if said["error"] == "root" else CONVERGED,
            100 if said["check"] == "every 100" else 1,
            BOTH["draws"].index(said["draws"]),
            said["ranks"] == "sorted",
            said["bias"] == "shared",
        )

    def _add_forced_state(self, discount: float, q: float) -> None:
        """Let the last right action lead to state n, whose one action, 0, is rewarded."""
        n, (states, actions, rewards, next_states) = self.n, self.memory
        arrives = rewards > 0
        self.memory = Memory(
            np.append(states, n).astype(np.int8),
            np.append(actions, 0).astype(np.int8),
            np.append(np.zeros_like(rewards), 1.0),
            np.append(np.where(arrives, n, next_states), -1).astype(np.int8),
        )
        self.truth = np.vstack([discount * self.truth, [1.0, 0.0]])
        # Action 1 of state n does not exist. Its Q is never the larger one, and has no weight.
        self.theta = np.insert(self.theta, n, [q, -1e6], axis=1)

    def _enter_errors(self) -> None:
        """Give each transition the priority of its error at the start."""
        (memory, _, discount, bias, _), choice = self._problem, self._choice
        everything = np.arange(len(memory.states))
        deltas = [td_error(self.theta, memory, discount, bias, k) for k in everything]
        errors = np.abs(deltas)
        if self.sampler == "proportional":
            priorities = (errors + choice.epsilon) ** choice.alpha
            set_sums(choice.nodes, 1, everything[None], priorities[None])
        elif choice.slots.size:
            order = np.argsort(-errors, kind="stable")
            choice.keys[0, 1:], choice.slots[0, 1:] = errors[order], order
            choice.ranks[0, order] = everything + 1

    def updates_until_converged(self, limit: int) -> float:
        done = replay(self.theta, self._problem, self._choice, self.rules, limit)
        return done if done >= 0 else math.inf


class Row(NamedTuple):
    """The median of the runs of one sampler, infinite if too few converged."""

    panel: str
    reading: str
    sampler: str
    n: int
    updates: float


def name_of(reading: dict[str, str]) -> str:
    return "; ".join(f"{detail}: {option}" for detail, option in reading.items()) or "plain"


def readings(panel: str) -> Iterator[dict[str, str]]:
    """The plain reading, those that differ from it in one detail, and those that do in two."""
    others = [
        (detail, option) for detail, options in DETAILS[panel].items() for option in options[1:]
    ]
    for count in range(3):
        for chosen in itertools.combinations(others, count):
            if len(dict(chosen)) == count:
                yield dict(chosen)


def lengths(panel: str, sampler: str) -> dict[int, float]:
    """{n: the largest of the paper's medians that it is compared with}."""
    found: dict[int, float] = {}
    for x, updates in PAPER[panel, sampler].items():
        if x <= LARGEST:
            n = (x + 2).bit_length() - 1
            for length in (n - 1, n):
                found[length] = max(found.get(length, 0), updates)
    return found


def measure(panel: str, reading: dict[str, str]) -> Iterator[Row]:
    """Yield the median of each sampler's runs, for each length that the paper has."""
    for sampler in SAMPLERS[panel]:
        for n, paper in lengths(panel, sampler).items():
            limit = round(FAR * paper)
            runs = [
                Reader(panel, n, sampler, reading, seed).updates_until_converged(limit)
                for seed in range(RUNS)
            ]
            yield Row(panel, name_of(reading), sampler, n, float(np.median(runs)))


def try_readings() -> None:
    """Measure the readings that the results lack, saving after each."""
    rows = load_results() if RESULTS.exists() else []
    known = {(row.panel, row.reading) for row in rows}
    for panel in SAMPLERS:
        for reading in readings(panel):
            if (panel, name_of(reading)) not in known:
                rows += measure(panel, reading)
                write_table(RESULTS, HEADING | versions("numpy", "numba"), Row._fields, rows)


def load_results() -> list[Row]:
    _, rows = read_table(RESULTS, Row._fields)
    return [
        Row(panel, reading, sampler, int(n), float(updates))
        for panel, reading, sampler, n, updates in rows
    ]


def ranges(rows: Iterable[Row]) -> dict[tuple[str, str, int], dict[str, tuple[float, float]]]:
    """{(panel, reading, shift): {sampler: the smallest and largest ratio, ours to the paper's}}.

    The shift is 1 if the paper's axis counts 2^(n+1) − 2 transitions, 0 if it counts 2^n − 2.
    """
    medians = {(row.panel, row.reading, row.sampler, row.n): row.updates for row in rows}
    found: dict[tuple[str, str, int], dict[str, tuple[float, float]]] = {}
    for panel, reading in dict.fromkeys(key[:2] for key in medians):
        for shift in (1, 0):
            found[panel, reading, shift] = {}
            for sampler in SAMPLERS[panel]:
                ratios = [
                    medians[panel, reading, sampler, (x + 2).bit_length() - 1 - shift] / paper
                    for x, paper in PAPER[panel, sampler].items()
                    if x <= LARGEST
                ]
                found[panel, reading, shift][sampler] = (min(ratios), max(ratios))
    return found


def distance(curves: Iterable[tuple[float, float]]) -> float:
    """The largest factor between one of our medians and the paper's, either way."""
    return max(max(high, 1 / low if low else math.inf) for low, high in curves)


def show() -> None:
    """Print the plain reading, and the nearest ones, for all curves and for each."""
    found = ranges(load_results())
    for panel, samplers in SAMPLERS.items():
        for shift in (1, 0):
            here = {
                reading: curves
                for (p, reading, s), curves in found.items()
                if (p, s) == (panel, shift)
            }
            print(f"\n{panel}, {len(here)} readings, x counts 2^{'(n+1)' if shift else 'n'} - 2")
            report("plain", here["plain"])
            for reading in sorted(here, key=lambda r: distance(here[r].values()))[:3]:
                report(reading, here[reading])
            for sampler in samplers:
                best = min(here, key=lambda r: distance([here[r][sampler]]))
                report(f"{sampler}: {best}", here[best])


def report(name: str, curves: dict[str, tuple[float, float]]) -> None:
    parts = [f"{sampler} {low:.2f}-{high:.2f}" for sampler, (low, high) in curves.items()]
    print(f"  {name}\n    {', '.join(parts)}")


if __name__ == "__main__":
    if sys.argv[1:] != ["--show"]:
        try_readings()
    show()
