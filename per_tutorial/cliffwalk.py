"""The Blind Cliffwalk for Gymnasium.

``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports this module; the
environment itself is in `per_tutorial.experiments.cliffwalk.environment`.
"""

from per_tutorial.experiments.cliffwalk.environment import BlindCliffwalk as BlindCliffwalk
