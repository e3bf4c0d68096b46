"""What a replay brings, beside what |δ| promises: exactly, in tables. Declared before it ran.

In each cell of the map a table learns by uniform replay, in thirty runs, at the rate that the map
chose for it. Its memory is examined at six moments. For a transition, let e = Q − Q* be the error
of its state-action pair, δ its TD error, and m the mean of δ over the possible outcomes of the
step. Replaying it with a step size η

    brings      e² − (e + η δ)²,    the decrease of the squared error of Q (negative: an increase);
    useful is   e² − (e + η m)²,    what it would bring without noise;
    noise takes the difference.

PER draws minibatches of eight from the memory, with priorities that are all fresh and weights as in
the map. Uniform replay brings the mean over the memory. **Lift**: what PER brings minus what
uniform replay brings, divided by what uniform replay would bring without noise. It is split into
the lift of the useful part and that of the noise.

**Decision.** The failure of the proxy |δ| accounts for the map as far as the lift, averaged over
the moments, ranks the cells like the map's gain of PER: Spearman's correlation over cells, with a
bootstrap interval over cells. For comparison: the same with noise alone and with rarity alone.

**Deviation.** The lift averages only the moments where something is left to learn. Without noise,
at the rate 1, these are two to four of the six: something is left in 49 of 1,080 tables.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.experiments.when import worlds
from per_tutorial.experiments.when.features import SAMPLE, features_of
from per_tutorial.experiments.when.learning import WARM, Replaying, learn, steps_of
from per_tutorial.experiments.when.signals import ALPHA, BETA
from per_tutorial.experiments.when.worlds import Experience, Knobs, Truth

MOMENTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # shares of the training
TWICE = (0.05, 0.1)  # when the forecast measures the same transitions
MINIBATCHES = 200  # drawn at each moment, for each run


class Replay(NamedTuple):
    """What decides the effect of replaying each transition of a memory: (runs, n) each."""

    deltas: NDArray[np.float64]  # δ
    errors: NDArray[np.float64]  # e = Q − Q*
    means: NDArray[np.float64]  # m, the mean of δ


def outlook(knobs: Knobs, q: NDArray, experience: Experience, size: int) -> Replay:
    """δ, e and m of the first ``size`` transitions of each run, for tables q (runs, 2n, 2)."""
    runs = np.arange(len(q))[:, None]
    states, actions, rewards, following, ended = (column[:, :size] for column in experience)
    targets = rewards + knobs.gamma * np.where(ended, 0.0, q.max(axis=2)[runs, following])
    own, truth = q[runs, states, actions], Truth(knobs)
    return Replay(
        targets - own,
        own - truth.values[states, actions],
        truth.mean_errors(q)[runs, states, actions],
    )


def brought(errors: NDArray, steps: NDArray) -> NDArray:
    """The decrease of the squared error if Q moves by these steps."""
    return errors**2 - (errors + steps) ** 2


def minibatches_of_per(
    deltas: NDArray, beta: float, rng: np.random.Generator
) -> tuple[NDArray, NDArray]:
    """Draws (MINIBATCHES, 8) from one memory by fresh priorities, and their weights."""
    priorities = (np.abs(deltas) + 1e-6) ** ALPHA
    sums = priorities.cumsum()
    drawn = sums.searchsorted(rng.random((MINIBATCHES, 8)) * sums[-1], side="right")
    drawn = np.minimum(drawn, len(deltas) - 1)
    weights = (len(deltas) * priorities[drawn] / sums[-1]) ** -beta
    return drawn, weights / weights.max(axis=1, keepdims=True)


def rank_correlation(one: NDArray, other: NDArray) -> float:
    """Spearman's correlation; NaN if one of them is constant."""
    from scipy.stats import rankdata

    a, b = (rankdata(each) - rankdata(each).mean() for each in (one, other))
    scale = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / scale) if scale > 0 else float("nan")


def look(replay: Replay, rate: float, beta: float, rng: np.random.Generator) -> dict[str, list]:
    """What PER and uniform replay bring on average, and the quality of the proxy, for each run."""
    names = ("proxy", "noise_share", "uniform", "uniform_useful", "per", "per_useful")
    found: dict[str, list] = {name: [] for name in names}
    for deltas, errors, means in zip(*replay, strict=True):
        whole, useful = brought(errors, rate * deltas), brought(errors, rate * means)
        drawn, weights = minibatches_of_per(deltas, beta, rng)
        steps = rate * weights
        found["proxy"].append(rank_correlation(np.abs(deltas), whole))
        found["noise_share"].append(((deltas - means) ** 2).sum() / max((deltas**2).sum(), 1e-300))
        found["uniform"].append(whole.mean())
        found["uniform_useful"].append(useful.mean())
        found["per"].append(brought(errors[drawn], steps * deltas[drawn]).mean())
        found["per_useful"].append(brought(errors[drawn], steps * means[drawn]).mean())
    return {name: [float(f"{value:.4g}") for value in values] for name, values in found.items()}


def run_cell(cell: Any, rate: float, seeds: Any = range(30)) -> dict[str, Any]:
    """`look` at each moment, {moment: {name: a number per run}}; also "rate" and "features"."""
    knobs = cell.knobs
    steps = steps_of(knobs)
    experience = worlds.experience(knobs, seeds, steps)
    first = int(steps * WARM)
    moments = {first + int(share * (steps - first)): share for share in MOMENTS}
    found: dict[str, Any] = {"rate": rate}

    def callback(t: int, q: NDArray, size: int) -> None:
        if t in moments:
            replay = outlook(knobs, q, experience, size)
            beta = BETA[0] + moments[t] * (BETA[1] - BETA[0])
            rng = np.random.default_rng((t, knobs.n))
            found[str(moments[t])] = look(replay, rate, beta, rng)
            if moments[t] == TWICE[0]:
                seen.append(np.sort(rng.choice(size, min(SAMPLE, size), replace=False)))
                seen.append(replay.deltas[:, seen[0]])
            elif moments[t] == TWICE[1]:
                chosen, then = seen
                found["features"] = [
                    features_of(
                        then[run],
                        replay.deltas[run, chosen],
                        experience.rewards[run, chosen],
                        experience.states[run, chosen],
                    )
                    for run in range(len(q))
                ]

    seen: list[NDArray] = []
    learn(knobs, Replaying(), seeds, [rate], experience, callback)
    return found


def lift(found: dict[str, Any], part: str = "") -> NDArray[np.float64]:
    """The lift of a cell, (moments, runs): the whole, or the "useful" part, or the "noise" part.

    The denominator is a mean over runs, since that of a single run may be near zero. NaN at moments
    where all tables are right and nothing is left to learn.
    """
    lifts = []
    for moment in (str(share) for share in MOMENTS):
        one = {name: np.asarray(values) for name, values in found[moment].items()}
        whole, useful = one["per"] - one["uniform"], one["per_useful"] - one["uniform_useful"]
        chosen = {"": whole, "useful": useful, "noise": whole - useful}[part]
        unit = np.abs(one["uniform_useful"]).mean()
        lifts.append(chosen / unit if unit > 0 else np.full(len(chosen), np.nan))
    return np.array(lifts)
