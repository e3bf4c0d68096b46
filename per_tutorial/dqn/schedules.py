"""How ε, β and η change with the environment step: functions of the step, never accumulated."""

import math


def linear(step: int, start: float, end: float, steps: int) -> float:
    """From ``start`` at step 0 to ``end`` at step ``steps``, constant from there on."""
    return end if step >= steps else start + (end - start) * step / steps


def exponential(step: int, start: float, end: float, rate: float) -> float:
    """Decay towards ``end``: the gap to it shrinks by the factor exp(−rate) per step."""
    return end + (start - end) * math.exp(-rate * step)
