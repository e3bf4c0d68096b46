"""One stream of random numbers per run.

Runs that train side by side must not share a generator: each draw of one run would change the
numbers of all others. Instead, each run has 64 bits of state, advanced by SplitMix64 (Steele, Lea
and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). The states of all
runs are one array, so compiled code can draw from them and a checkpoint can hold them.
"""

import secrets
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.replay.compiling import njit_cached

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ULP = 2.0**-53


@njit_cached
def next_uniform(states, run):
    """Advance the stream of one run; return a float64 in [0, 1) with 53 random bits."""
    states[run] += _GOLDEN_GAMMA
    bits = states[run]
    bits = (bits ^ (bits >> _30)) * _MIX_1
    bits = (bits ^ (bits >> _27)) * _MIX_2
    bits = bits ^ (bits >> _31)
    return (bits >> _11) * _ULP


@njit_cached
def fill_uniform(states, out):
    """Fill ``out`` (runs, n): row r from the stream of run r."""
    for run in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[run, k] = next_uniform(states, run)


class RandomStreams:
    """Independent streams of uniform random numbers, one per run.

    Args:
        seeds: one int per run.
        purpose: what the numbers are for; streams of one seed and different purposes differ.

    Attributes:
        states: (runs,) uint64, the whole state.

    Raises:
        TypeError: ``seeds`` is not a sequence of ints.
        ValueError: it is empty, or a seed is negative.
    """

    def __init__(self, seeds: Sequence[int], purpose: str) -> None:
        seeds = seeds.tolist() if isinstance(seeds, np.ndarray) else seeds
        if isinstance(seeds, str) or not isinstance(seeds, Sequence):
            raise TypeError(f"seeds: must be one int for each run, such as [0], got {seeds!r}")
        if len(seeds) == 0:
            raise ValueError("seeds: must be at least one, for one run, got none")
        seeds = [whole_number("seeds", seed, minimum=0, maximum=None) for seed in seeds]
        salt = zlib.crc32(purpose.encode())
        mixed = [np.random.SeedSequence((seed, salt)) for seed in seeds]
        self.states = np.concatenate([each.generate_state(1, np.uint64) for each in mixed])

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Draw ``count`` numbers in [0, 1) for every run: (runs, count) float64."""
        out = np.empty((len(self.states), count))
        fill_uniform(self.states, out)
        return out

    @property
    def state(self) -> dict[str, NDArray]:
        """What a checkpoint holds: the array in use, into which a saved one is copied."""
        return {"states": self.states}


def seeds_for(seed: int | Sequence[int] | None, runs: int) -> list[int]:
    """One seed per run, from None (random), an int (seed, seed + 1, …) or a list."""
    if seed is None:
        return [secrets.randbits(63) for _ in range(runs)]
    if isinstance(seed, (int, np.integer)) or np.ndim(seed) == 0:
        first = whole_number("seed", seed, minimum=0, maximum=None)
        return [first + run for run in range(runs)]
    if len(seed) != runs:
        raise ValueError(f"seed: one int for each of {runs} runs is needed, got {len(seed)}")
    return [whole_number("seed", one, minimum=0, maximum=None) for one in seed]
