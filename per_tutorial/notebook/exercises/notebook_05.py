"""Notebook 05, Atari: skipped frames, stacks, memory, clipped rewards and lives, convolutions."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def max_and_skip(frames, rewards, see=lambda frames: frames[-2:].max(axis=0)):
    return see(frames), rewards.sum()


RANDOM = np.random.default_rng(5)

EXERCISES["05.1"] = Exercise(
    right=max_and_skip, parts=["the screen", "the reward"], kinds=True,
    # Most sums of two pixels exceed 255, and a game may end within the step.
    cases=[(RANDOM.integers(100, 256, (len(rewards), 2, 3), dtype=np.uint8), np.array(rewards))
           for rewards in ([0.5, -3.0, 0.0, 1.0], [4.0, 0.0, 5.0, 2.0], [1.0, 4.0], [4.0])],
    hints=[
        (lambda f, r: (f[-1], r.sum()),
         "That is the last frame alone: it may lack what flickers."),
        (lambda f, r: (f.max(axis=0), r.sum()),
         "You take the maximum of all frames: whatever moves leaves a trail. Two are enough."),
        (lambda f, r: max_and_skip(f, r, lambda f: f[-2:].mean(axis=0)),
         "That is the mean: what is not in every frame would be seen dimly."),
        (lambda f, r: (np.maximum(f[-2], f[-1]), r.sum()),
         "A game can end within a step, which then has one frame: `frames[-2:]` allows for that."),
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


def gigabytes(transitions, single_frames, frame=84 * 84, stack=4):
    return transitions * (1 if single_frames else 2 * stack) * frame / 1e9


EXERCISES["05.3"] = Exercise(
    right=gigabytes,
    cases=[(1_000_000, False, 84 * 84, 4), (1_000_000, True, 84 * 84, 4),
           (50_000, False, 80 * 60, 3), (20_000, True, 42 * 42, 6)],
    hints=[
        (lambda n, single, f, k: n * (1 if single else k) * f / 1e9,
         "The next observation is missing: each transition holds two stacks."),
        (lambda n, single, f, k: n * (2 if single else 2 * k) * f / 1e9,
         "Counted twice: a next observation's newest frame is in the following observation."),
        (lambda n, single, f, k: gigabytes(n, not single, f, k),
         "The other way round: `single_frames=True` holds every frame once."),
        (lambda *given: 4 * gigabytes(*given), "Four bytes per pixel is float32; uint8 is one."),
    ])  # fmt: skip


def learning_view(reward, lives_before, lives, over):
    return np.clip(reward, -1, 1), over or 0 < lives < lives_before


EXERCISES["05.4"] = Exercise(
    right=learning_view, parts=["the clipped reward", "whether the step terminates"],
    # A life lost, two, gained; the last one; none ever, as in Pong; a new game; games over.
    cases=[
        (4.0, 3, 3, False), (-7.0, 3, 2, False), (0.5, 4, 2, False), (-0.25, 2, 3, False),
        (0.0, 1, 0, False), (1.0, 0, 0, False), (0.0, 0, 3, False), (-1.0, 3, 2, True),
        (0.0, 1, 0, True), (1.0, 0, 0, True), (1.0, 3, 3, True),
    ],
    hints=[
        (lambda r, *end: (r, learning_view(r, *end)[1]), "The reward is not clipped."),
        (lambda r, *end: (np.sign(r), learning_view(r, *end)[1]),
         "That is the sign: clipping leaves what lies between −1 and 1 as it is."),
        (lambda r, before, lives, over: (np.clip(r, -1, 1), over),
         "A lost life ends an episode, too."),
        (lambda r, before, lives, over: (np.clip(r, -1, 1), over or lives < before),
         "At 0 lives the game is about to be over: one end would become two."),
    ])  # fmt: skip


def output_size(size, layers, step=lambda size, kernel, stride: (size - kernel) // stride + 1):
    for kernel, stride in layers:
        size = step(size, kernel, stride)
    return size


EXERCISES["05.5"] = Exercise(
    right=output_size,
    cases=[(50, [(6, 3)]), (84, [(8, 4), (4, 2), (3, 1)]), (42, [(5, 2), (3, 2), (3, 2)]),
           (96, [(8, 4), (4, 2), (3, 1)]), (10, [])],
    hints=[
        (lambda n, layers: output_size(n, layers, lambda n, k, s: (n - k) / s + 1),
         "A size is a whole number: divide with `//`, which leaves out what does not fit."),
        (lambda n, layers: output_size(n, layers, lambda n, k, s: (n - k) // s),
         "The + 1 is missing: the kernel has a position before its first step."),
        (lambda n, layers: output_size(n, layers, lambda n, k, s: n // s),
         "Where is the kernel? Its corner can move by size − kernel."),
        (lambda n, layers: output_size(n, layers, lambda n, k, s: -(-(n - k) // s) + 1),
         "You round up: a step that would carry the kernel over the edge is not taken."),
    ])  # fmt: skip
