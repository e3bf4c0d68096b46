"""One number over many worlds: normalised scores, aggregated over the runs of all worlds.

This follows Agarwal et al. (2021, "Deep Reinforcement Learning at the Edge of the Statistical
Precipice") and their library rliable: the interquartile mean over the runs of all worlds, the
probability of improvement averaged over worlds, and a bootstrap that resamples the runs of each
world separately. rliable itself would bring arch, statsmodels and absl, which nothing else here
needs.

It goes beyond rliable in one point: run k of every arm has the same seed, so a resample draws the
same runs for all arms. The effect of the seed then cancels, as in `paired_difference`.

A score depends on the learning rate, and nothing here picks the better rate of an arm: judged by
the runs that picked it, it would look too good. Compare arms at the same rate.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import one_of, whole_number
from per_tutorial.common.data import data_folder
from per_tutorial.experiments.statistics.bootstrap import (
    stratified_counts,
    trimmed_mean_of_counts,
    weights_kept,
)
from per_tutorial.experiments.statistics.estimates import (
    RESAMPLES,
    Estimate,
    at_least_two,
    never_infinite,
    one_number_a_run,
    percentiles,
)
from per_tutorial.experiments.studies.results import StudyResults, load_study

Floats = NDArray[np.float64]
Worlds = Mapping[str, Mapping[str, ArrayLike]]  # world → arm → (runs,), more is better


class Reference(NamedTuple):
    """Two scores of a world: that of random actions is mapped to 0, and ``good`` to 1."""

    random: float
    good: float


# Random actions were measured over 2,000 to 5,000 episodes where returns vary, and 30 where they
# hardly do. A good score is Gymnasium's `reward_threshold` of the environment, the one reward of
# the Blind Cliffwalk, or on MinAtar that of DQN after 5 million frames, read from the published
# curves (means of 30 runs: kenjyoung/MinAtar, img/learning_curves.gif).
REFERENCES = {
    "per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0": Reference(0.004, 1.0),  # 2⁻⁸
    "CartPole-v1": Reference(22.3, 475.0),
    "Acrobot-v1": Reference(-500.0, -100.0),
    "MountainCar-v0": Reference(-1000.0, -110.0),  # of at most 1,000 steps
    "MinAtar/Breakout-v1": Reference(0.4, 10.0),
    "MinAtar/SpaceInvaders-v1": Reference(3.7, 44.0),
    "MinAtar/Asterix-v1": Reference(0.5, 17.0),
}


def normalised_scores(results: StudyResults) -> dict[str, Floats]:
    """The scores of a study in units of its world: 0 for random actions, 1 for a good score.

    Args:
        results: of one study, whose arms all act in one world of `REFERENCES`.

    Returns:
        arm → (runs,), in the order of the seeds; NaN for a run without a score.

    Raises:
        ValueError: the arms act in several worlds, or there is no reference for their world.
    """
    ids = {settings["env"] for settings in results.arms.values()}
    if len(ids) != 1:
        raise ValueError(f"results: all arms must act in one world, got {sorted(ids)}")
    random, good = REFERENCES[one_of("results", ids.pop(), REFERENCES)]
    return {arm: (results.scores(arm) - random) / (good - random) for arm in results.arms}


def normalised_worlds(
    names: Iterable[str], folder: str | os.PathLike[str] | None = None
) -> dict[str, dict[str, Floats]]:
    """The `normalised_scores` of the studies that have results: {name: {arm: (runs,)}}.

    Args:
        names: of studies; those without a file are left out.
        folder: where the files are, by default that of `common.data`.
    """
    place = data_folder() if folder is None else Path(folder)
    there = [name for name in names if (place / f"{name}.csv.gz").is_file()]
    return {name: normalised_scores(load_study(name, place)) for name in there}


def aggregate(worlds: Worlds, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Estimate]:
    """The interquartile mean over the runs of all worlds, for every arm that all worlds have.

    A quarter of all runs is left out at each end, whichever worlds they belong to, so that neither
    a few failed runs nor one easy world decides. All worlds have the same weight, whatever their
    numbers of runs.

    Args:
        worlds: world → arm → (runs,) normalised scores; within a world, paired by their seeds.
        resamples: number of resamples of the runs of each world.
        seed: of the draws.

    Returns:
        arm → `Estimate` with its 95 % interval; NaN where a run is missing.

    Raises:
        ValueError: no world, no common arm, an infinite score, or a world whose arms differ in
            their number of runs.
        TypeError: the scores are not numbers.
    """
    strata = _Strata(worlds)
    values, resampled = strata.interquartile_means(strata.arms, resamples, seed)
    return {arm: Estimate(values[arm], *percentiles(resampled[arm])) for arm in strata.arms}


def runs_kept(worlds: Worlds, arm: str) -> dict[str, float]:
    """How many runs of each world the `aggregate` of an arm keeps.

    Where the scores of the worlds hardly overlap, it keeps many runs of one world and few of
    another.

    Args:
        worlds: as in `aggregate`.
        arm: a name that every world has.

    Returns:
        world → runs. The lowest and the highest kept score may be kept in part; runs with equal
        scores are kept in equal parts.

    Raises:
        ValueError: as `aggregate_difference`, or a run without a score.
    """
    strata = _Strata(worlds, (arm,))
    strata.every_run_has_a_score()
    _, index = np.unique(strata.pooled(arm), return_inverse=True)  # equal scores share one
    weights = np.bincount(index, strata.weights).astype(np.float64)
    kept = (weights_kept(weights, strata.cut) / weights)[index]
    parts = np.split(kept, np.cumsum(strata.runs)[:-1])
    return {world: float(part.sum()) for world, part in zip(strata.scores, parts, strict=True)}


def aggregate_difference(
    worlds: Worlds, arm: str, other: str, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """The `aggregate` of one arm minus that of the other, with an interval that uses their pairs.

    Args:
        worlds, resamples, seed: as in `aggregate`.
        arm, other: names of arms that every world has.

    Raises:
        ValueError: as `aggregate`, or an arm that a world does not have.
    """
    strata = _Strata(worlds, (arm, other))
    values, resampled = strata.interquartile_means((arm, other), resamples, seed)
    return Estimate(values[arm] - values[other], *percentiles(resampled[arm] - resampled[other]))


def aggregate_improvement(
    worlds: Worlds, arm: str, other: str, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """The probability that a run of one arm beats one of the other, averaged over worlds.

    It is P(arm > other) + ½ P(arm = other) over all pairs of runs in a world (Agarwal et al. 2021,
    section 4.3). Only their order counts, so the scores need no normalisation.

    Args:
        worlds, resamples, seed: as in `aggregate`; the scores need not be normalised.
        arm, other: names of arms that every world has.

    Raises:
        ValueError: as `aggregate_difference`, or a run without a score.
    """
    strata = _Strata(worlds, (arm, other))
    strata.every_run_has_a_score()
    wins = []
    for scores in strata.scores.values():
        a, b = scores[arm][:, None], scores[other]
        wins.append((a > b) + 0.5 * (a == b))

    def shares(counts: list[Floats]) -> Floats:
        each = [
            ((drawn @ won) * drawn).sum(axis=1) / won.size
            for drawn, won in zip(counts, wins, strict=True)
        ]
        return np.mean(each, axis=0)

    value = float(np.mean([won.mean() for won in wins]))
    return Estimate(value, *percentiles(strata.resampled(shares, resamples, seed)))


class _Strata:
    """The checked scores of several worlds; each world is a stratum for resampling.

    Attributes:
        arms: those asked for, by default those that every world has, in the first world's order.
        scores: world → arm → (runs,).
        runs: number of runs in each world.
        weights: (all runs,) weight of each run; all worlds weigh the same, and the sum is 1.
        cut: the weight that the interquartile mean leaves out at each end.
    """

    def __init__(self, worlds: Worlds, arms: tuple[str, ...] = ()) -> None:
        if not worlds:
            raise ValueError("worlds: must hold at least one, got none")
        first = next(iter(worlds.values()))
        self.arms = arms or tuple(
            arm for arm in first if all(arm in scores for scores in worlds.values())
        )
        if not self.arms:
            raise ValueError(f"worlds: must share at least one arm; {sorted(worlds)} share none")
        self.scores: dict[str, dict[str, Floats]] = {}
        for world, scores in worlds.items():
            self.scores[world] = checked = {
                one_of("arm", arm, scores): one_number_a_run(
                    f"worlds[{world!r}][{arm!r}]", never_infinite(arm, scores[arm])
                )
                for arm in self.arms
            }
            runs = {len(values) for values in checked.values()}
            if len(runs) != 1:
                raise ValueError(
                    f"worlds: the arms of {world!r} must have the same runs, got {sorted(runs)}"
                )
            at_least_two(runs.pop())
        self.runs = [len(arms[self.arms[0]]) for arms in self.scores.values()]
        self.weights = np.repeat([1 / (len(self.runs) * runs) for runs in self.runs], self.runs)
        total = sum(self.runs)
        self.cut = (total // 4) / total  # whole runs, as in `interquartile_mean`

    def every_run_has_a_score(self) -> None:
        """Raise a ValueError that names the first world where a score is NaN."""
        for world, scores in self.scores.items():
            if any(np.isnan(values).any() for values in scores.values()):
                raise ValueError(f"worlds: every run of {world!r} needs a score, got NaN")

    def pooled(self, arm: str) -> Floats:
        """(all runs,) the scores of an arm, one world after the other."""
        return np.concatenate([scores[arm] for scores in self.scores.values()])

    def resampled(
        self, statistic: Callable[[list[Floats]], Floats], resamples: int, seed: int
    ) -> Floats:
        """A statistic (…, resamples), from the counts (resamples, runs) of each world."""
        resamples = whole_number("resamples", resamples)
        parts = [statistic(counts) for _, counts in stratified_counts(self.runs, resamples, seed)]
        return np.concatenate(parts, axis=-1)

    def interquartile_means(
        self, arms: tuple[str, ...], resamples: int, seed: int
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """The aggregate of the runs, arm → number, and of the resamples, arm → (resamples,)."""
        pooled = [self.pooled(arm) for arm in arms]

        def trimmed(counts: Floats) -> Floats:
            return np.stack(
                [trimmed_mean_of_counts(p, counts, self.weights, self.cut) for p in pooled]
            )

        values = trimmed(np.ones((1, sum(self.runs))))[:, 0].tolist()
        drawn = self.resampled(lambda counts: trimmed(np.hstack(counts)), resamples, seed)
        return dict(zip(arms, values, strict=True)), dict(zip(arms, drawn, strict=True))
