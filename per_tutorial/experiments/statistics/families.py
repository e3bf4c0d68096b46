"""Verdicts on comparisons that were declared together: corrected for their number, by three tests.

One test may see a difference where another does not, and then the verdict hangs on the choice of the
test. So three are asked, and only what all of them see is called clear.
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
    estimate,
    holm,
    one_number_a_run,
    paired_t_test,
    signed_rank_test,
)


class Judged(NamedTuple):
    """A comparison among those that were declared together, as `agreement` judges it."""

    difference: Estimate  # with its 95 % interval, which is not corrected
    p: float  # the largest of `p_values`
    p_values: tuple[float, float, float]  # bootstrap, t-test, signed ranks, corrected by `holm`
    verdict: Verdict


def agreement(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Judged]:
    """Verdicts on comparisons that were declared together, a family: a `Judged` for each.

    Three p-values look at each paired difference: the bootstrap's (below 0.05 where the 95 % interval
    leaves out zero), Student's t-test and Wilcoxon's signed ranks. Each is corrected for the size of
    the family by `holm`. "clear": all three are below 0.05; "not told apart": none is; "borderline":
    they disagree, so that the verdict hangs on the test.

    Args:
        pairs: (a, b) of each comparison, (runs,) results, paired by their seeds.
        resamples, seed: as in `bootstrap_interval`.
    """
    differences = [one_number_a_run("pairs", differences_of(a, b)) for a, b in pairs]
    family = [
        (_bootstrap_p(d, resamples, seed), paired_t_test(*pair), signed_rank_test(*pair))
        for d, pair in zip(differences, pairs, strict=True)
    ]
    corrected = np.array([holm(p_values) for p_values in zip(*family, strict=True)]).T
    return [
        Judged(
            estimate(d, resamples=resamples, seed=seed),
            float(p_values.max()),
            tuple(p_values.tolist()),
            agreed(p_values < 0.05),
        )
        for d, p_values in zip(differences, corrected, strict=True)
    ]


def _bootstrap_p(differences: NDArray[np.float64], resamples: int, seed: int) -> float:
    """Twice the share of resamples whose mean lies beyond zero; never 0, since resamples are finite."""
    at_least_two(len(differences))
    if np.isnan(differences).any():
        return float("nan")
    means = resampled_means(differences, whole_number("resamples", resamples), seed)
    beyond = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return float(min(1.0, 2 * (beyond + 1) / (resamples + 1)))
