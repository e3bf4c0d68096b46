"""The exercises of notebook 05: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest
import torch

from per_tutorial.dqn.networks import CONVOLUTIONS
from per_tutorial.replay.storages.frames import find_stacks


def max_and_skip(frames, rewards):
    return frames[-2:].max(axis=0), rewards.sum()


def with_screen(screen):
    """`max_and_skip` with another screen, given the frames."""
    return lambda frames, rewards: (screen(frames), rewards.sum())


def with_reward(reward):
    """`max_and_skip` with another reward, given the rewards."""
    return lambda frames, rewards: (frames[-2:].max(axis=0), reward(rewards))


def into_the_last_frame(frames, rewards):
    return np.maximum(frames[-2], frames[-1], out=frames[-1]), rewards.sum()


def stack_numbers(newest, depth, environments, stack=4):
    backs = reversed(range(stack))
    return [newest - back * environments if back < depth else -1 for back in backs]


def packaged_numbers(newest, depth, environments, stack=4):
    """The package's own, in a ring that holds all frames."""
    places = np.empty((1, 1, stack), dtype=np.int64)
    find_stacks(np.array([[newest]]), np.array([[depth]]), environments, newest + 1, places)
    return places[0, 0]


def own_numbers(newest, depth, environments, stack=4):
    return [number for number in stack_numbers(newest, depth, environments, stack) if number != -1]


def padded(pad):
    """`stack_numbers` whose missing frames are what `pad(own numbers)` says."""

    def answer(newest, depth, environments, stack=4):
        own = own_numbers(newest, depth, environments, stack)
        return [pad(own)] * (stack - depth) + own

    return answer


def padded_at_the_end(*given):
    own = own_numbers(*given)
    return own + [-1] * (given[-1] - len(own))


def gigabytes(transitions, single_frames, frame=84 * 84, stack=4):
    return transitions * frame * (1 if single_frames else 2 * stack) / 1e9


def with_frames(stacks, single=lambda stack: 1):
    """`gigabytes` with other numbers of frames for each transition, given the stack."""

    def answer(transitions, single_frames, frame, stack):
        return transitions * frame * (single if single_frames else stacks)(stack) / 1e9

    return answer


def learning_view(reward, lives_before, lives, over):
    return np.clip(reward, -1, 1), over or 0 < lives < lives_before


def with_clipping(clip):
    """`learning_view` with another reward."""
    return lambda reward, *lives: (clip(reward), learning_view(reward, *lives)[1])


def with_end(ends):
    """`learning_view` with other ends, given (lives before, lives, over)."""
    return lambda reward, *lives: (np.clip(reward, -1, 1), ends(*lives))


def no_last_reward(*given):
    clipped, terminated = learning_view(*given)
    return clipped * (not terminated), terminated


def output_size(size, layers):
    for kernel, stride in layers:
        size = (size - kernel) // stride + 1
    return size


def with_step(step):
    """`output_size` with another size after a layer, given (size, kernel, stride)."""

    def answer(size, layers):
        for kernel, stride in layers:
            size = step(size, kernel, stride)
        return size

    return answer


def emptied(size, layers):
    while layers:
        size = output_size(size, [layers.pop(0)])
    return size


def convolved(size, layers):
    picture = torch.zeros(1, 1, size, size)
    for kernel, stride in layers:
        picture = torch.nn.Conv2d(1, 1, kernel, stride)(picture)
    return picture.shape[-1]


RIGHT = [
    ("05.1", max_and_skip),
    (
        "05.1",
        lambda frames, rewards: (
            (np.maximum(*frames[[-2, -1]]), sum(rewards))
            if len(frames) > 1
            else (frames[0], rewards[0])
        ),
    ),
    ("05.1", lambda frames, rewards: [torch.as_tensor(frames)[-2:].amax(0), sum(rewards)]),
    ("05.1", lambda frames, r: (np.maximum.reduce(list(frames)[-2:]), r @ np.ones(len(r)))),
    ("05.1", lambda frames, r: (np.maximum(frames[max(len(frames) - 2, 0)], frames[-1]), r.sum())),
    ("05.2", stack_numbers),
    ("05.2", packaged_numbers),
    ("05.2", padded(lambda own: -1)),
    ("05.2", lambda *given: torch.tensor(stack_numbers(*given))),
    ("05.2", lambda *given: (number for number in stack_numbers(*given))),
    ("05.3", gigabytes),
    ("05.3", with_frames(lambda stack: 2 * stack)),
    ("05.3", lambda n, single, frame=7056, stack=4: n * frame * [2 * stack, 1][single] * 1e-9),
    ("05.4", learning_view),
    ("05.4", with_clipping(lambda reward: min(max(reward, -1), 1))),
    ("05.4", with_end(lambda before, lives, over: (lives < before) & (lives > 0) | over)),
    ("05.4", with_end(lambda before, lives, over: over or (lives < before and lives))),
    (
        "05.4",
        with_end(lambda before, lives, over: np.bool_(over) | (np.bool_(lives) & (lives < before))),
    ),
    ("05.4", lambda *given: np.array(learning_view(*given))),
    ("05.5", output_size),
    ("05.5", convolved),
    ("05.5", with_step(lambda size, kernel, stride: (size - kernel + stride) // stride)),
    ("05.5", lambda size, layers: np.int64(output_size(size, layers))),
    ("05.5", lambda size, layers: torch.tensor(output_size(size, layers))),
]

WRONG = [
    ("05.1", into_the_last_frame, "it changes `frames`"),
    ("05.1", with_screen(lambda f: np.maximum(f[-2], f[-1])), "right for four frames"),
    ("05.1", with_screen(lambda f: f[2:4].max(axis=0)), "right for four frames"),
    ("05.1", with_screen(lambda f: np.maximum(f[2], f[3])), "a game can end within a step"),
    ("05.1", with_reward(lambda r: r[0] + r[1] + r[2] + r[3]), "right for four frames"),
    ("05.1", with_screen(lambda f: f[-1]), "the last frame alone"),
    ("05.1", with_screen(lambda f: f[-2]), "before the last alone"),
    ("05.1", with_screen(lambda f: f[:2].max(axis=0)), "the first two frames"),
    ("05.1", with_screen(lambda f: f.max(axis=0)), "all four frames"),
    ("05.1", with_screen(lambda f: f[1:].max(axis=0)), "the last three frames"),
    ("05.1", with_screen(lambda f: f[-3:].max(axis=0)), "the last three frames"),
    ("05.1", with_screen(lambda f: f.mean(axis=0)), "that is the mean"),
    ("05.1", with_screen(lambda f: f[-2:].mean(axis=0).astype(np.uint8)), "that is the mean"),
    ("05.1", with_screen(lambda f: f[-2] + f[-1]), "you add the frames"),
    ("05.1", with_screen(lambda f: f[-2:].sum(axis=0)), "you add the frames"),
    ("05.1", with_screen(lambda f: f[-2:].min(axis=0)), "the minimum"),
    ("05.1", with_screen(lambda f: f[-2:].max(axis=1)), "yours has the shape (2, 2)"),
    ("05.1", with_screen(lambda f: f[-2:].max(axis=0) / 1.0), "as float64: leave it uint8"),
    ("05.1", with_screen(lambda f: f[-2:].max(axis=0) // 2), "yours is [["),
    ("05.1", lambda frames, rewards: frames[-2:].max(axis=0), "return 2 things"),
    ("05.1", lambda frames, rewards: max_and_skip(frames, rewards)[::-1], "in this order"),
    ("05.1", with_reward(lambda r: r[-1]), "in any of the four"),
    ("05.1", with_reward(np.mean), "the mean would divide"),
    ("05.1", with_reward(max), "the maximum is for the pixels"),
    ("05.1", with_reward(lambda r: r[-2:].sum()), "all four count"),
    ("05.1", with_reward(lambda r: abs(r).sum()), "with their signs"),
    ("05.1", with_reward(lambda r: r.clip(-1, 1).sum()), "clipped later"),
    ("05.1", with_reward(lambda r: r), "a single number"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k, depth, 1, stack), "of other environments"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k, depth, 3, stack), "newest = 23"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k, stack, 1, stack), "of other environments"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k, stack, e, stack), "beyond the beginning"),
    ("05.2", lambda *given: stack_numbers(*given[:3]), "you always return 4 numbers"),
    ("05.2", lambda *given: stack_numbers(*given)[::-1], "the newest comes first"),
    ("05.2", lambda *given: own_numbers(*given)[::-1], "the newest comes first"),
    ("05.2", lambda *given: own_numbers(*given), "without the black frames"),
    ("05.2", padded_at_the_end, "at the wrong end"),
    ("05.2", padded(lambda own: own[0]), "you repeat the episode's first frame"),
    ("05.2", padded(lambda own: 0), "a black one is −1"),
    ("05.2", lambda *given: [n if n > 0 else -1 for n in stack_numbers(*given)], "0 is the number"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k, depth - 1, e, stack), "off by one"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k, depth + 1, e, stack), "off by one"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k - e, depth, e, stack), "off by one"),
    ("05.2", lambda k, depth, e, stack: stack_numbers(k + e, depth, e, stack), "off by one"),
    ("05.2", lambda k, depth, e, stack: [k] * stack, "these are all the newest frame"),
    ("05.2", lambda *given: set(stack_numbers(*given)), "a set has no order"),
    ("05.2", lambda k, *rest: k, "return a list of numbers"),
    ("05.2", padded(lambda own: None), "a black frame is −1 in the list, not None"),
    ("05.2", lambda *given: [n + given[2] * (n >= 0) for n in stack_numbers(*given)], "off by one"),
    ("05.3", with_frames(lambda stack: stack), "the next observation is missing"),
    ("05.3", with_frames(lambda stack: 2), "is a stack of `stack` frames"),
    ("05.3", with_frames(lambda stack: 1), "that is one frame for each transition"),
    ("05.3", with_frames(lambda stack: stack + 1), "its own copy"),
    ("05.3", with_frames(lambda stack: 2 * 4), "not always 4"),
    ("05.3", with_frames(lambda stack: 2 * stack, single=lambda stack: 2), "counted twice"),
    ("05.3", with_frames(lambda stack: 2 * stack, single=lambda stack: stack), "no factor"),
    ("05.3", with_frames(lambda stack: 2 * stack, single=lambda stack: 2 * stack), "no factor"),
    ("05.3", lambda *given: 4 * gigabytes(*given), "float32"),
    ("05.3", lambda *given: 3 * gigabytes(*given), "no three colours"),
    ("05.3", lambda *given: round(gigabytes(*given), 1), "rounded"),
    ("05.3", lambda n, single, frame, stack: gigabytes(n, single, frame**2, stack), "don't square it"),
    ("05.3", lambda *given: gigabytes(*given) * 1e9 / 2**30, "GiB"),
    ("05.3", lambda *given: gigabytes(*given) * 1e9, "those are bytes"),
    ("05.3", lambda *given: gigabytes(*given) * 1e3, "millions of bytes"),
    ("05.3", lambda n, single, frame, stack: gigabytes(n, single, stack=stack), "not always 84 × 84"),
    ("05.3", lambda n, single: gigabytes(n, single), "keep these arguments"),
    ("05.3", lambda *given: 0.0, "your answer is always 0"),
    ("05.3", lambda *given: f"{gigabytes(*given):.1f} GB", "is text"),
    ("05.4", with_clipping(np.sign), "that is the sign"),
    ("05.4", with_clipping(lambda reward: reward), "nothing is clipped"),
    ("05.4", with_clipping(lambda reward: min(reward, 1)), "the lower limit is missing"),
    ("05.4", with_clipping(lambda reward: np.clip(reward, 0, 1)), "points can be lost"),
    ("05.4", with_clipping(np.tanh), "what lies between −1 and 1"),
    ("05.4", with_clipping(lambda reward: int(np.clip(reward, -1, 1))), "what lies between −1 and 1"),
    ("05.4", no_last_reward, "does not take its last reward away"),
    ("05.4", lambda *given: np.clip(given[0], -1, 1), "yours is one"),
    ("05.4", lambda *given: learning_view(*given)[::-1], "in this order"),
    ("05.4", with_end(lambda before, lives, over: "yes"), "is True or False, not 'yes'"),
    ("05.4", lambda r, *lives: (np.clip(r, -1, 1), r < 0 or learning_view(r, *lives)[1]), "goes on"),
    ("05.4", with_end(lambda before, lives, over: True), "the episode goes on"),
    ("05.4", with_end(lambda before, lives, over: over), "a lost life ends an episode"),
    ("05.4", with_end(lambda before, lives, over: over or lives != before), "a life is gained"),
    ("05.4", with_end(lambda before, lives, over: over or lives < before), "one end becomes two"),
    ("05.4", with_end(lambda before, lives, over: over or lives < before and before > 1),
     "lives_before = 2, lives = 0, over = False: the game is about to be over"),
    ("05.4", with_end(lambda before, lives, over: over or 0 < lives == before - 1), "two lives"),
    ("05.4", with_end(lambda before, lives, over: lives < before and lives), "so is the episode"),
    ("05.4", with_end(lambda before, lives, over: lives < before and (over or lives > 0)),
     "lives_before = 0, lives = 0, over = True: when the game is over"),
    ("05.4", with_end(lambda before, lives, over: 0 < lives < before or over and lives == 0),
     "lives_before = 3, lives = 3, over = True: when the game is over"),
    ("05.4", with_end(lambda before, lives, over: 0 < lives < before or lives == before == 0),
     "a game without lives"),
    ("05.5", emptied, "it changes `layers`"),
    ("05.5", with_step(lambda size, kernel, stride: (size - kernel) // stride), "+ 1 is missing"),
    ("05.5", with_step(lambda size, kernel, stride: (size - kernel + 1) // stride), "1 belongs"),
    ("05.5", with_step(lambda size, kernel, stride: -(-(size - kernel) // stride) + 1), "round up"),
    ("05.5", with_step(lambda size, kernel, stride: size // stride), "where is the kernel"),
    ("05.5", with_step(lambda size, kernel, stride: -(-size // stride)), "where is the kernel"),
    ("05.5", with_step(lambda size, kernel, stride: size - kernel + 1), "where is the stride"),
    ("05.5", with_step(lambda size, stride, kernel: (size - kernel) // stride + 1), "are swapped"),
    ("05.5", with_step(lambda size, kernel, stride: (size - kernel) / stride + 1), "whole number"),
    ("05.5", lambda size, layers: float(output_size(size, layers)), "the right numbers, but not as an int"),
    ("05.5", lambda size, layers: output_size(size, layers[:1]), "after the first layer"),
    ("05.5", lambda size, layers: output_size(size, layers[-1:]), "the one before has left"),
    ("05.5", lambda size, layers: output_size(size, layers[::-1]), "in the wrong order"),
    ("05.5", lambda size, layers: size, "it should be 7, yours is 84"),
    ("05.5", lambda size, layers: output_size(size, [layers[0], layers[1]]), "the last layer is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words


def test_the_sizes_are_those_of_the_papers_network():
    assert output_size(84, [layer[1:] for layer in CONVOLUTIONS]) == 7
