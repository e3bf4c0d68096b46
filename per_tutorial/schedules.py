"""How ε and β change with the environment step: functions of the step, never accumulated."""

import math


def linear(step, start, end, steps):
    """From ``start`` at step 0 to ``end`` at step ``steps``, constant from there on."""
    return end if step >= steps else start + (end - start) * step / steps


def exponential(step, start, end, rate):
    """Decay towards ``end``: the gap to it shrinks by the factor exp(−rate) a step."""
    return end + (start - end) * math.exp(-rate * step)


def geometric(step, start, end, rate):
    """Decay towards zero by the factor (1 − rate) a step, stopped at ``end``."""
    return max(end, start * (1 - rate) ** step)
