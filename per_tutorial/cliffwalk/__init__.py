"""The Blind Cliffwalk: the environment and its learners.

``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports this room.
"""

from per_tutorial.common.lazy import missing_extra

try:
    import gymnasium  # noqa: F401
except ImportError as error:
    raise missing_extra(error, __name__) from error

from per_tutorial.cliffwalk.environment import BlindCliffwalk, right_action, true_values
from per_tutorial.cliffwalk.learner import SAMPLERS, CliffwalkLearner

__all__ = ["SAMPLERS", "BlindCliffwalk", "CliffwalkLearner", "right_action", "true_values"]
