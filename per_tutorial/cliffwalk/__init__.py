"""The Blind Cliffwalk: the environment, its learners, and the paper's figures 1 and 2.

``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports this room.
"""

from per_tutorial.cliffwalk.environment import BlindCliffwalk as BlindCliffwalk
