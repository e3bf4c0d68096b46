"""The Blind Cliffwalk: the environment and its learners.

``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports this room.
"""

from per_tutorial.common.lazy import missing_extra

try:
    import gymnasium  # noqa: F401
except ImportError as error:
    raise missing_extra(error, __name__) from error

from per_tutorial.cliffwalk.environment import BlindCliffwalk as BlindCliffwalk
from per_tutorial.cliffwalk.environment import right_action as right_action
from per_tutorial.cliffwalk.environment import true_values as true_values
from per_tutorial.cliffwalk.learner import SAMPLERS as SAMPLERS
from per_tutorial.cliffwalk.learner import CliffwalkLearner as CliffwalkLearner
