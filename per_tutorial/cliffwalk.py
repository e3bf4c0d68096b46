"""The Blind Cliffwalk under the name that Gymnasium knows it by.

``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports this module; the world
itself is in `per_tutorial.experiments.cliffwalk.environment`.
"""

from per_tutorial.experiments.cliffwalk.environment import BlindCliffwalk as BlindCliffwalk
