"""Notebook 05, Atari: the screens of a step, and the frames of an observation."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def max_and_skip(screens, rewards, see=lambda screens: screens[-2:].max(axis=0)):
    return see(screens), rewards.sum()


RANDOM = np.random.default_rng(5)

EXERCISES["05.1"] = Exercise(
    right=max_and_skip, parts=["the screen", "the reward"], kinds=True,
    # Most sums of two pixels exceed 255, and a game may end within the step.
    cases=[(RANDOM.integers(100, 256, (len(rewards), 2, 3), dtype=np.uint8), np.array(rewards))
           for rewards in ([0.5, -3.0, 0.0, 1.0], [4.0, 0.0, 5.0, 2.0], [1.0, 4.0], [4.0])],
    hints=[
        (lambda s, r: (s[-1], r.sum()),
         "That is the last screen alone: it may lack what flickers."),
        (lambda s, r: (s.max(axis=0), r.sum()),
         "You take the maximum of all screens: whatever moves leaves a trail. Two are enough."),
        (lambda s, r: max_and_skip(s, r, lambda s: s[-2:].mean(axis=0)),
         "That is the mean: what is not on every screen would be seen dimly."),
        (lambda s, r: (np.maximum(s[-2], s[-1]), r.sum()),
         "A game may end within a step, which then has one screen: `screens[-2:]` allows that."),
    ])  # fmt: skip


def stack_numbers(newest, depth, environments, stack=4):
    backs = range(stack - 1, -1, -1)
    return [newest - back * environments if back < depth else -1 for back in backs]


EXERCISES["05.2"] = Exercise(
    right=stack_numbers, kinds=True,
    cases=[(10, 4, 3, 4), (10, 2, 3, 4), (3, 2, 3, 4), (17, 2, 4, 3), (40, 5, 6, 6)], hints=[
        (lambda k, d, e, n: stack_numbers(k, d, 1, n),
         "You step back by 1: the frames of one environment are `environments` apart."),
        (lambda k, d, e, n: stack_numbers(k, n, e, n),
         "You look back beyond the beginning: this episode has only `depth` frames so far."),
        (lambda *given: stack_numbers(*given)[::-1], "The stack begins with the oldest."),
        (lambda k, d, e, n: stack_numbers(k, d, e, n)[n - d:],
         "Right, but without the black frames: a stack always has `stack` numbers."),
    ])  # fmt: skip
