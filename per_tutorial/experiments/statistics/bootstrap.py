"""The bootstrap: resample the runs with replacement, and see how a statistic varies.

Means and shares of wins need only *how often* each run was drawn, so 100,000 resamples of thirty
runs take matrix products and a few hundredths of a second. Any other statistic is computed from the
drawn runs themselves.

The runs of several worlds are resampled separately: each world is a stratum (Agarwal et al. 2021).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHUNK = 10_000  # resamples drawn at a time
CHUNK_NUMBERS = 2**22  # numbers drawn at a time for any other statistic: 32 MiB


def resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    """The mean over runs of each resample.

    Args:
        values: (..., runs).
        resamples: number of resamples; the other axes share the draws.
        seed: of the draws.

    Returns:
        (..., resamples); NaN where a value is NaN.
    """
    runs = values.shape[-1]
    means = np.empty((*values.shape[:-1], resamples))
    with np.errstate(invalid="ignore"):  # NaN shows in the result
        for part, (drawn,) in _draws(seed, resamples, CHUNK, runs):
            means[..., part] = values @ _counts(drawn).T / runs
    return means


def resampled_statistic(
    values: Floats, statistic: Callable[..., Any], resamples: int, seed: int
) -> Floats:
    """As `resampled_means`, for any statistic that takes an ``axis``."""
    chunk = max(1, CHUNK_NUMBERS // values.size)
    results = np.empty((*values.shape[:-1], resamples))
    for part, (drawn,) in _draws(seed, resamples, chunk, values.shape[-1]):
        results[..., part] = statistic(values[..., drawn], axis=-1)
    return results


def resampled_shares(wins: Floats, resamples: int, seed: int) -> Floats:
    """The mean of a table of wins, with its rows and its columns resampled.

    Args:
        wins: (runs of one arm, runs of the other).
        resamples, seed: as in `resampled_means`.

    Returns:
        (resamples,).
    """
    shares = np.empty(resamples)
    for part, (rows, columns) in _draws(seed, resamples, CHUNK, *wins.shape):
        shares[part] = ((_counts(rows) @ wins) * _counts(columns)).sum(axis=1) / wins.size
    return shares


def stratified_counts(
    runs: Sequence[int], resamples: int, seed: int
) -> Iterator[tuple[slice, list[Floats]]]:
    """How often each run of each stratum is drawn, a chunk of resamples at a time.

    Args:
        runs: number of runs in each stratum.
        resamples, seed: as in `resampled_means`.

    Yields:
        The slice of the resamples that the chunk covers, and for each stratum its counts
        (chunk, runs).
    """
    for part, drawn in _draws(seed, resamples, CHUNK, *runs):
        yield part, [_counts(each) for each in drawn]


def trimmed_mean_of_counts(values: Floats, counts: Floats, weights: Floats, cut: float) -> Floats:
    """The trimmed mean of each resample, from how often each value was drawn.

    Args:
        values: (runs,).
        counts: (resamples, runs).
        weights: (runs,) the weight of one draw of each value; those of a resample add up to 1.
        cut: the weight that is left out at each end.

    Returns:
        (resamples,); NaN where a value is NaN.
    """
    order = np.argsort(values)
    kept = weights_kept(counts[:, order] * weights[order], cut)
    return kept @ values[order] / (1 - 2 * cut)


def weights_kept(weights: Floats, cut: float) -> Floats:
    """The part of each weight that a trimmed mean keeps, for values in ascending order.

    The weights (..., values) add up to 1 along the last axis; ``cut`` is left out at each end.
    """
    ends = np.cumsum(weights, axis=-1)
    return np.diff(np.clip(ends, cut, 1 - cut), axis=-1, prepend=cut)


def _draws(
    seed: int, resamples: int, chunk: int, *runs: int
) -> Iterator[tuple[slice, list[NDArray[np.int64]]]]:
    """For each chunk of resamples: its slice, and for each sample the draws (chunk, runs)."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, chunk):
        count = min(chunk, resamples - start)
        yield slice(start, start + count), [rng.integers(0, n, (count, n)) for n in runs]


def _counts(drawn: NDArray[np.int64]) -> Floats:
    """How often each run was drawn, (resamples, runs)."""
    resamples, runs = drawn.shape
    cells = drawn + runs * np.arange(resamples)[:, None]
    return np.bincount(cells.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.float64)
