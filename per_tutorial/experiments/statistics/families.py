"""Verdicts on comparisons that were declared together: three tests, corrected for their number.

One test may see a difference where another does not; the verdict would then depend on the choice of
the test. So there are three, and only a difference that all of them see is called clear.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.experiments.statistics.bootstrap import resampled_means
from per_tutorial.experiments.statistics.estimates import (
    RESAMPLES,
    Estimate,
    Verdict,
    agreed,
    at_least_two,
    differences_of,
    holm,
    one_number_a_run,
    paired_t_test,
    percentiles,
    signed_rank_test,
)


class Judged(NamedTuple):
    """One comparison of a family, as `agreement` judges it."""

    difference: Estimate  # with its 95 % interval, which is not corrected
    p: float  # the largest of `p_values`
    p_values: tuple[float, float, float]  # bootstrap, t-test, signed ranks, corrected by `holm`
    verdict: Verdict


def agreement(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], resamples: int = RESAMPLES, seed: int = 0
) -> list[Judged]:
    """Judge a family, comparisons that were declared together: a `Judged` for each.

    Each paired difference has three p-values: the bootstrap's (below 0.05 where the 95 % interval
    excludes zero), Student's t-test and Wilcoxon's signed ranks. `holm` corrects each for the size
    of the family. "clear": all three are below 0.05; "not told apart": none is; "borderline": they
    disagree.

    Args:
        pairs: (a, b) of each comparison, (runs,) results, paired by their seeds; all with the same
            number of runs.
        resamples, seed: as in `bootstrap_interval`.
    """
    if not pairs:
        return []
    each = [one_number_a_run("pairs", differences_of(a, b)) for a, b in pairs]
    if len({len(d) for d in each}) > 1:
        raise ValueError(f"pairs: must have equally many runs, got {[len(d) for d in each]}")
    differences = np.array(each)
    at_least_two(differences.shape[1])
    means = resampled_means(differences, whole_number("resamples", resamples), seed)
    tests: list[ArrayLike] = [
        _bootstrap_p(means),
        [paired_t_test(a, b) for a, b in pairs],
        [signed_rank_test(a, b) for a, b in pairs],
    ]
    corrected = np.array([holm(p_values) for p_values in tests]).T
    lows, highs = percentiles(means)
    return [
        Judged(
            Estimate(float(mean), float(low), float(high)),
            float(p_values.max()),
            tuple(p_values.tolist()),
            agreed(p_values < 0.05),
        )
        for mean, low, high, p_values in zip(
            differences.mean(axis=1), lows, highs, corrected, strict=True
        )
    ]


def _bootstrap_p(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the share of resamples (…, resamples) beyond zero, with 1 added to both counts."""
    beyond = np.minimum((means <= 0).sum(axis=-1), (means >= 0).sum(axis=-1))
    p_values = np.minimum(1.0, 2 * (beyond + 1) / (means.shape[-1] + 1))
    return np.where(np.isnan(means).any(axis=-1), np.nan, p_values)
