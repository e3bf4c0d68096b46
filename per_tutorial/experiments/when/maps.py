"""The map and its cuts, declared before they ran.

**Question.** In which worlds does prioritised replay learn the true values sooner than uniform
replay?

**Metric.** The area of a run is the mean over training of the RMS error of Q over the walk's
state-action pairs. The gain of a method is log2(area of uniform replay / area of the method), over
thirty pairs of runs with the same experience: +1 means half the error, −1 twice the error.

**Rates.** Each method has the best of eight learning rates in each cell: the one with the smallest
mean log2 area over ten other seeds.

**Decision.** PER helps or hurts in a cell if p of the gain's paired t-test is below 0.05 after
Holm's correction over all cells and all three methods of the map; otherwise it is not told apart.
For a cut, the correction covers its points and methods. Intervals are 95 % bootstrap intervals of
single cells, with 100,000 resamples.

**Expected.** The gain of PER grows with rarity and shrinks with noise, to below zero in the worst
corner; rank-based replay and ReLo lose less to noise.

Before this was written, a pilot with the tuning seeds on n = 3, 4, 6, 7 chose the warm-up, the
replays per step and the grid of rates.

**What changed after the map had run once.** Without noise some methods were best at the largest
rate, 1.5, and with noise 1 at the smallest, 1/64. So these two rows got grids of their own and ran
again. n = 9 was declared too; it took too long and was stopped after its first cell. The cuts had
not run; to save time they were moved from n = 6 to n = 5 and got fewer points. The point with a
share of 0.9 irrelevant episodes was stopped before its end.

**How it is judged now.** As all studies of the package: by three tests, see `results.judged`. What
the t-test alone had decided stays clear, but for one gain of a cut, which is borderline.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from per_tutorial.experiments.when import worlds
from per_tutorial.experiments.when.learning import METHODS, Replaying, learn, steps_of
from per_tutorial.experiments.when.signals import ENTERED, SIGNALS
from per_tutorial.experiments.when.worlds import Knobs

LENGTHS = (3, 4, 5, 6, 7, 8)
NOISES = (0.0, 0.1, 0.25, 0.5, 1.0)
#: The rates to try, by the noise of the world; a rate of 1 replaces a value by its target.
RATES = {
    0.0: (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.95),
    1.0: (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2),
}
OTHER_RATES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 1.5)
SEEDS = range(30)
TUNING_SEEDS = range(1000, 1010)


class Cell(NamedTuple):
    """A world and how its transitions are replayed, for several methods."""

    study: str  # "map", or the name of a cut
    point: str  # what differs from the base, such as "memory=0.25"
    knobs: Knobs
    replaying: Replaying
    methods: tuple[str, ...] = tuple(METHODS)

    @property
    def name(self) -> str:
        return f"{self.study}-n{self.knobs.n}-noise{self.knobs.noise}-{self.point}"


def the_map() -> Iterator[Cell]:
    """The cells of the map: rarity × noise."""
    for n in LENGTHS:
        for noise in NOISES:
            yield Cell("map", "", Knobs(n, noise), Replaying())


def the_signals() -> Iterator[Cell]:
    """The cells for ideal signals, declared in `signals`."""
    for n in (4, 5, 6):
        for noise in NOISES:
            yield Cell("signals", "", Knobs(n, noise), Replaying(), ("uniform", "per", *SIGNALS))


def the_entries() -> Iterator[Cell]:
    """The same worlds, for PER whose new transitions start with their own |δ| as priority."""
    for cell in the_signals():
        yield cell._replace(study="entries", methods=("uniform", ENTERED))


#: One-dimensional cuts through two cells of the map: n = 5, without noise and with noise 0.5.
CUTS: dict[str, tuple[Any, ...]] = {
    "memory": (1 / 32, 1 / 8, 1 / 2),  # share of the experience
    "replays": (1, 2, 4, 16),  # per environment step, all in one draw
    "batch": (16, 64),  # drawn before priorities are written; 8 replays per step
    "alpha": (0.3, 0.6, 1.0),
    "beta": (0.0, 0.5, 1.0),
    "outliers": (0.001, 0.01),
    "slip": (0.1, 0.3),
    "irrelevant": (0.5,),
    "discount": (0.5, 0.95),
}
CUT_LENGTH, CUT_NOISES = 5, (0.0, 0.5)


def the_cuts() -> Iterator[Cell]:
    """The cells of `CUTS`; each changes one knob or one replay setting."""
    for study, points in CUTS.items():
        for noise in CUT_NOISES:
            for value in points:
                knobs, replaying = Knobs(CUT_LENGTH, noise), Replaying()
                if study == "replays":
                    replaying = Replaying(replays=value, batch=value)
                elif study in asdict(replaying):
                    replaying = Replaying(**{study: value})
                else:
                    knobs = Knobs(CUT_LENGTH, noise, **{study: value})
                methods = ("uniform", "per") if study in ("alpha", "beta") else tuple(METHODS)
                yield Cell(study, f"{study}={value:g}", knobs, replaying, methods)


def rates_of(knobs: Knobs) -> tuple[float, ...]:
    """The learning rates to try in a world."""
    if knobs.outliers or knobs.slip:
        return OTHER_RATES
    return RATES.get(knobs.noise, OTHER_RATES)


def run_cell(cell: Cell, seeds: Any = SEEDS, tuning: Any = TUNING_SEEDS) -> dict[str, Any]:
    """The results of each method in a cell at its best rate, as JSON can hold them.

    Returns:
        A dict of method → {"rate", "tuning": mean log2 area of each rate, "area", "final": of each
        seed, "curve": the mean over seeds}.
    """
    steps, rates = steps_of(cell.knobs), rates_of(cell.knobs)
    other, experience = (worlds.experience(cell.knobs, each, steps) for each in (tuning, seeds))
    found = {}
    for method in cell.methods:
        replaying = Replaying(**(asdict(cell.replaying) | {"method": method}))
        if method == "uniform":  # it has neither
            replaying = Replaying(**(asdict(replaying) | {"alpha": None, "beta": None}))
        tried = learn(cell.knobs, replaying, tuning, rates, other)
        means = np.log2(tried.area).reshape(len(rates), len(tuning)).mean(axis=1)
        rate = rates[int(means.argmin())]
        learned = learn(cell.knobs, replaying, seeds, [rate], experience)
        found[method] = {
            "rate": rate,
            "tuning": means.round(4).tolist(),
            "area": [float(f"{area:.5g}") for area in learned.area],
            "final": [float(f"{final:.5g}") for final in learned.final],
            "curve": [float(f"{error:.4g}") for error in learned.curve.mean(axis=0)],
        }
    return found
