"""The Blind Cliffwalk: the environment, its learners, and the paper's figures 1 and 2.

``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports this room.
"""

from per_tutorial.cliffwalk.environment import BlindCliffwalk as BlindCliffwalk
from per_tutorial.cliffwalk.environment import right_action as right_action
from per_tutorial.cliffwalk.environment import true_values as true_values
from per_tutorial.cliffwalk.learner import SAMPLERS as SAMPLERS
from per_tutorial.cliffwalk.learner import CliffwalkLearner as CliffwalkLearner
