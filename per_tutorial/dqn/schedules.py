"""How ε, β and η change with the environment step: functions of the step, never accumulated."""

import math


def linear(step: int, start: float, end: float, steps: int) -> float:
    """From ``start`` at step 0 to ``end`` at step ``steps``, constant from there on."""
    return end if step >= steps else start + (end - start) * step / steps


def compounding(step: int, start: float, end: float, steps: int) -> float:
    """The schedule that ``value += step / steps * (end - value)`` at every step makes.

    A mistake that tutorials copy from one another: it takes a fraction of the remaining gap, not of
    the whole one. The gap is multiplied by (1 − 1/steps)(1 − 2/steps)… and almost vanishes after a
    few times √steps. Kept for comparison, as a function of the step (notebook 04).
    """
    if step >= steps:
        return end
    # The product over k = 1 … step of (steps − k) / steps, by its logarithm.
    log_gap = math.lgamma(steps) - math.lgamma(steps - step) - step * math.log(steps)
    return end + (start - end) * math.exp(log_gap)


def exponential(step: int, start: float, end: float, rate: float) -> float:
    """Decay towards ``end``: the gap to it shrinks by the factor exp(−rate) per step."""
    return end + (start - end) * math.exp(-rate * step)


def geometric(step: int, start: float, end: float, rate: float) -> float:
    """Decay towards zero by the factor (1 − rate) per step, stopped at ``end``."""
    return max(end, start * (1 - rate) ** step)
