"""Notebook 05, Atari: skipped frames, stacks, memory, clipped rewards and lives, convolutions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.notebook.checking.answers import Case, Hint, numbers, part, plain, shown
from per_tutorial.notebook.checking.comparing import Part
from per_tutorial.notebook.checking.declaring import AN_INDEX, Function, function_exercise

# 05.1: four frames, one step ----------------------------------------------------------------------

Screens = NDArray[np.uint8]


def max_and_skip(
    frames: Screens,
    rewards: NDArray[np.float64],
    see: Function = lambda frames: frames[-2:].max(axis=0),
    score: Function = np.sum,
) -> tuple[Screens, float]:
    return see(frames), score(rewards)


TRAIL = (
    "you take the maximum of {} frames: whatever moves leaves a trail. The last two are enough "
    "for what is drawn in every other frame."
)
OTHER_SCREENS = [
    (slice(3, 4), "that is the last frame alone: it may lack what flickers."),
    (slice(2, 3), "that is the frame before the last alone."),
    (slice(0, 1), "that is the first frame; take the last two, the newest."),
    (slice(0, 2), "those are the first two frames; take the last two, the newest."),
    (slice(1, 3), "those are the two frames in the middle; take the last two."),
    (slice(0, 4, 3), "those are the first frame and the last; take the last two."),
    (slice(0, 4, 2), "that is every other frame; what flickers may be in none of them."),
    (slice(1, 4, 2), "that is every other frame; what flickers may be in none of them."),
    (slice(0, 4), TRAIL.format("all four")),
    (slice(1, 4), TRAIL.format("the last three")),
    (slice(0, 3), TRAIL.format("the first three")),
]  # fmt: skip

# In the first, no two pixels are the same, and most sums of two exceed 255.
RANDOM = np.random.default_rng(5)
SCREENS = [
    (np.arange(24) * 73 % 256).astype(np.uint8).reshape(4, 3, 2),
    *(RANDOM.integers(0, 256, shape, dtype=np.uint8)
      for shape in ((4, 5, 3), (3, 2, 4), (2, 2, 4), (1, 2, 4))),
]  # fmt: skip
REWARDS = [[4.0, 0.0, 5.0, 2.0], [0.5, -3.0, 0.0, 1.0], [-2.0, 1.0, 4.0], [1.0, 4.0], [4.0]]
ALL_STEPS = list(zip(SCREENS, map(np.array, REWARDS), strict=True))

SEEN = ["the screen that the agent sees", "the reward of the step"]


def pixel_by_pixel(result: Any, right: Any) -> str | None:
    shape = np.shape(plain(part(result, 0, SEEN, right)))
    if shape == np.shape(right):
        return None
    return (
        f"the screen should have the shape {np.shape(right)}, yours has {shape}: take the maximum "
        "pixel by pixel, along axis 0, the axis of the screens."
    )


function_exercise("05.1", max_and_skip, "frames rewards", ALL_STEPS[:2], later=[(
    ALL_STEPS[2:],
    "right for four frames. But a game can end within a step, which then has fewer: use the last "
    "two of those that are there, or the only one. ({})",
)], parts=[
    Part(name=SEEN[0], forms=pixel_by_pixel, mistakes=[
    *((dict(see=lambda f, some=some: f[some].max(axis=0)), words) for some, words in OTHER_SCREENS),
    (*(dict(see=lambda f, last=last, kind=kind: f[-last:].mean(axis=0).astype(kind))
       for last in (2, 3, 4) for kind in (float, np.uint8)),
     "that is the mean: what is not in every frame would be seen dimly."),
    (*(dict(see=lambda f, last=last, kind=kind: f[-last:].sum(axis=0, dtype=kind))
       for last in (2, 4) for kind in (float, np.uint8)),
     "you add the frames: what is in both is twice as bright, and uint8 starts again after 255."),
    (dict(see=lambda f: f[-2:].max(axis=0) / 255),
     "divided by 255: the screen stays in bytes; only the network gets numbers between 0 and 1."),
    (dict(see=lambda f: f[-2:].min(axis=0)),
     "that is the minimum: what flickers would never be seen."),
    ], dtype=("uint8", "the right screen, but as {}: leave it uint8, one byte per pixel.")),
    Part(name=SEEN[1], intro="the screen is right. But the rewards: ", mistakes=[
    (dict(score=lambda r: r[-1]), dict(score=lambda r: r[0]),
     "those of one frame are not enough: points may be scored in any of the four."),
    (dict(score=np.mean), "they are added up; the mean would divide every score by 4."),
    (dict(score=np.max), dict(score=lambda r: r[-2:].max()),
     "the maximum is for the pixels; rewards are added up."),
    (dict(score=lambda r: r[-2:].sum()), dict(score=lambda r: r[:2].sum()),
     "all four count; only the screen is made of the last two."),
    (dict(score=lambda r: r[1:].sum()), "all four count, the first as well."),
    (dict(score=lambda r: np.abs(r).sum()),
     "lost points are negative: add them up with their signs."),
    (dict(score=lambda r: r.clip(-1, 1).sum()), dict(score=lambda r: r.sum().clip(-1, 1)),
     dict(score=lambda r: np.sign(r).sum()),
     "they are clipped later, where the agent learns from them."),
    ]),
])  # fmt: skip

# 05.2: which frames are a stack -------------------------------------------------------------------


def stack_numbers(newest: int, depth: int, environments: int, stack: int = 4) -> list[int]:
    backs = range(stack - 1, -1, -1)
    return [newest - back * environments if back < depth else -1 for back in backs]


def own_numbers(newest: int, depth: int, environments: int, stack: int) -> list[int]:
    return stack_numbers(newest, depth, environments, stack)[-depth:]


def padded(pad: Function) -> Function:
    """`stack_numbers`, but missing frames are `pad(numbers of the other frames)`."""

    def wrong(newest, depth, environments, stack):
        own = own_numbers(newest, depth, environments, stack)
        return [pad(own)] * (stack - depth) + own

    return wrong


def moved(frames: int, more: int) -> Function:
    """`stack_numbers` that ends ``frames`` frames later and looks ``more`` frames further back."""
    return lambda k, depth, e, stack: stack_numbers(k + frames * e, depth + more, e, stack)


def black_at_the_end(k: int, depth: int, e: int, stack: int) -> list[int]:
    return own_numbers(k, depth, e, stack) + [-1] * (stack - depth)


def a_list(result: Any, right: list[int]) -> str | None:
    if isinstance(result, list | tuple) and None in result:
        return "a black frame is −1 in the list, not None."
    shape = numbers(result).shape
    return None if len(shape) == 1 else f"return a list of numbers; yours has the shape {shape}."


function_exercise("05.2", stack_numbers, "newest depth environments stack", [
    (10, 4, 3, 4), (10, 2, 3, 4), (3, 2, 3, 4), (9, 1, 1, 4), (23, 3, 2, 4), (40, 5, 6, 6),
    (17, 2, 4, 3), (8, 3, 1, 3),
], [
    (own_numbers, "right, but without the black frames: a stack always has `stack` numbers."),
    (lambda k, d, e, n: stack_numbers(k, d, e),
     "you always return 4 numbers; `stack` says how many."),
    (lambda k, d, e, n: stack_numbers(k, d, 1, n), lambda k, d, e, n: stack_numbers(k, n, 1, n),
     "you step back by 1, to frames of other environments: those of one environment are "
     "`environments` apart."),
    (lambda k, d, e, n: stack_numbers(k, n, e, n),
     lambda k, d, e, n: [max(-1, one) for one in stack_numbers(k, n, e, n)],
     "you look back beyond the beginning, at frames of the episode before: this one has only "
     "`depth` so far."),
    (black_at_the_end, "the black frames are at the wrong end: they come before the others."),
    (lambda *given: stack_numbers(*given)[::-1], lambda *given: own_numbers(*given)[::-1],
     lambda *given: black_at_the_end(*given)[::-1],
     "the newest comes first in yours: the stack begins with the oldest."),
    (padded(lambda own: own[0]),
     "you repeat the episode's first frame, as Gymnasium does by default: here the missing ones "
     "are black, −1."),
    (padded(lambda own: own[-1]), "you repeat the newest frame; the missing ones are black, −1."),
    (padded(lambda own: 0), "0 is the number of a frame; a black one is −1."),
    (lambda *given: [number or -1 for number in stack_numbers(*given)],
     "0 is the number of a frame, too."),
    (lambda *given: [n + given[2] * (n >= 0) for n in stack_numbers(*given)],
     *(moved(frames, more) for frames in (-1, 0, 1) for more in (-1, 0, 1) if frames or more),
     "off by one: the stack ends with the frame `newest`, and `depth` counts it, too."),
    (lambda k, d, e, n: stack_numbers(k, d, -e, n),
     lambda k, d, e, n: stack_numbers(k, d, -e, n)[::-1],
     "you step forward, to frames that are still to come: earlier ones have smaller numbers."),
    (lambda k, d, e, n: [k] * n,
     "these are all the newest frame; step back by `environments` each time."),
], larger=[(1_000_003, 4, 128, 4), (999, 12, 16, 20)],
   forms=a_list, reads=lambda result, right: numbers(result), dtype=AN_INDEX)  # fmt: skip

# 05.3: memory -------------------------------------------------------------------------------------


def gigabytes(
    transitions: int,
    single_frames: bool,
    frame: int,
    stack: int,
    full: Function = lambda stack: 2 * stack,
    once: Function = lambda stack: 1,
) -> float:
    """``full`` and ``once``: frames per transition held in full or once, given the stack."""
    return transitions * frame * (once if single_frames else full)(stack) / 1e9


function_exercise("05.3", gigabytes, "transitions single_frames frame stack", [
    (1_000_000, False, 84 * 84, 4), (1_000_000, True, 84 * 84, 4), (50_000, False, 80 * 60, 3),
    (50_000, True, 80 * 60, 3), (1_000_000, False, 80 * 60, 4), (1_000_000, False, 84 * 84, 6),
    (20_000, True, 42 * 42, 6),
], [
    (dict(full=lambda stack: stack),
     "the next observation is missing: each transition holds two stacks."),
    (dict(full=lambda stack: 2), "an observation is a stack of `stack` frames."),
    (dict(full=lambda stack: 1), "that is one frame for each transition; it holds two stacks."),
    (dict(full=lambda stack: stack + 1),
     "the two stacks share frames, but each has its own copy of them."),
    (lambda n, single, f, k: gigabytes(n, single, f, 4),
     "a stack has `stack` frames, not always 4."),
    (lambda n, single, f, k: gigabytes(n, single, 84 * 84, k),
     "a frame has `frame` pixels, not always 84 × 84."),
    (dict(once=lambda stack: 2),
     "counted twice: the newest frame of a next observation is that of the following observation, "
     "and each is held once."),
    (dict(once=lambda s: s), dict(once=lambda s: s + 1), dict(once=lambda s: 2 * s),
     dict(once=lambda s: 1 / s),
     "a frame that is held once serves every stack that it is in: no factor for stacks is left "
     "where `single_frames` is True."),
    (lambda n, single, f, k: gigabytes(n, not single, f, k),
     "the other way round: `single_frames=True` holds every frame once."),
    (lambda n, single, f, k: gigabytes(n, single, f * f, k),
     "`frame` is the number of pixels already: don't square it."),
    (lambda *given: round(gigabytes(*given), 1), "rounded: return the number as it is."),
    *((lambda *given, size=size: size * gigabytes(*given), sentence)
      for size, sentence in (
          (3, "a pixel is one byte here: it is grey, without three colours."),
          (4, "four bytes per pixel is float32; uint8 is one."),
          (8, "a pixel has eight bits, which are one byte."),
          (1e9 / 2**30, "that is in GiB, 2**30 bytes; the question asks for GB, 10**9."),
          (1e9, "those are bytes; divide by 10**9."),
          (1e6, "those are thousands of bytes; divide by 10**9."),
          (1e3, "those are millions of bytes; divide by 10**9."))),
])  # fmt: skip

# 05.4: what is learned from -----------------------------------------------------------------------


def learning_view(
    reward: float,
    lives_before: int,
    lives: int,
    over: bool,
    clip: Function = lambda reward: min(max(reward, -1.0), 1.0),
) -> tuple[float, int]:
    return clip(reward), int(over or 0 < lives < lives_before)


# lives before, lives, over → the hint for a wrong answer
ENDS = {
    (3, 3, False): "no life is lost and the game is not over: the episode goes on.",
    (3, 2, False): "a lost life ends an episode.",
    (4, 2, False): "two lives may be lost in one step: what counts is that there are fewer.",
    (2, 3, False): "a life was gained: an episode ends with fewer lives than before.",
    **dict.fromkeys([(1, 0, False), (2, 0, False)],
                    "the game is about to be over. If 0 lives ended the episode, too, one end "
                    "would become two."),
    (0, 0, False): "a game without lives, such as Pong, shows 0 all the time: that is not an end.",
    (0, 3, False): "a new game begins with more lives than were left: that is not an end.",
    **dict.fromkeys([(3, 2, True), (1, 0, True), (0, 0, True), (3, 3, True)],
                    "when the game is over, so is the episode, whatever the lives say."),
}  # fmt: skip


def swapped(result: Any, right: Any) -> str | None:
    first, second = (part(result, index, THINGS) for index in (0, 1))
    if isinstance(first, bool | np.bool_) and not isinstance(second, bool | np.bool_):
        return f"in this order, please: {', then '.join(THINGS)}."
    return None


def flag(result: Any, right: int) -> bool:
    value = plain(result)
    if isinstance(value, str) or value is None or np.size(value) != 1:
        raise Hint(f"{THINGS[1]} is True or False, not {shown(value)}.")
    return bool(value)


def seen_differently(case: Case, got: Any) -> str:
    _, before, lives, over = case.values()
    return f"lives_before = {before}, lives = {lives}, over = {over}: {ENDS[before, lives, over]}"


THINGS = ["the clipped reward", "whether the step terminates"]

function_exercise("05.4", learning_view, "reward lives_before lives over", [
    (reward, *end) for end in ENDS for reward in (4.0, -7.0, 0.5, -0.25, 0.75, 0.0, 0.31416)
], parts=[
    Part(name=THINGS[0], forms=swapped, mistakes=[
    (dict(clip=lambda r: r), "nothing is clipped: the limits are −1 and 1, and both count."),
    (dict(clip=lambda r: min(r, 1.0)), "the lower limit is missing: −7 becomes −1."),
    (dict(clip=lambda r: max(r, -1.0)), "the upper limit is missing: 4 becomes 1."),
    (dict(clip=np.sign),
     "that is the sign. For whole points it is the same, but clipping leaves what lies between "
     "−1 and 1 as it is."),
    (dict(clip=lambda r: np.clip(r, 0, 1)),
     "points can be lost, too: the lower limit is −1, not 0."),
    (dict(clip=lambda r: int(np.clip(r, -1, 1))), dict(clip=lambda r: round(np.clip(r, -1, 1))),
     dict(clip=np.tanh), "clipping leaves what lies between −1 and 1 as it is; yours does not."),
    (dict(clip=lambda r: abs(np.clip(r, -1, 1))), "a lost point is negative: keep the sign."),
    (lambda *given: learning_view(*given)[0] * (1 - learning_view(*given)[1]),
     "the end of an episode does not take its last reward away."),
    ]),
    Part(name=THINGS[1], reads=flag, told=seen_differently),
])  # fmt: skip

# 05.5: what the convolutions leave ----------------------------------------------------------------


def output_size(
    size: int,
    layers: Sequence[tuple[int, int]],
    step: Function = lambda size, kernel, stride: (size - kernel) // stride + 1,
) -> int:
    for kernel, stride in layers:
        size = step(size, kernel, stride)
    return size


function_exercise("05.5", output_size, "size layers", [
    (84, [(8, 4), (4, 2), (3, 1)]), (42, [(5, 2), (3, 2), (3, 2)]), (50, [(6, 3)]),
    (96, [(8, 4), (4, 2), (3, 1)]), (61, [(7, 3), (4, 2)]),
    (120, [(9, 2), (5, 3), (4, 2), (3, 2)]), (10, []),
], [
    (dict(step=lambda n, k, s: (n - k) / s + 1),
     "a size is a whole number: divide with `//`, which leaves out what does not fit."),
    (dict(step=lambda n, k, s: int((n - k) / s)),
     "the + 1 is missing: the kernel has a position before its first step."),
    (dict(step=lambda n, k, s: (n - k + 1) // s),
     "the + 1 belongs after the division: it counts the kernel's first position."),
    (dict(step=lambda n, k, s: -(-(n - k) // s) + 1),
     "you round up: a step that would carry the kernel over the edge is not taken."),
    (dict(step=lambda n, k, s: round((n - k) / s) + 1),
     dict(step=lambda n, k, s: round((n - k) / s + 1)),
     "`round` may round up: a step that would carry the kernel over the edge is not taken."),
    (dict(step=lambda n, k, s: n // s), dict(step=lambda n, k, s: -(-n // s)),
     "where is the kernel? It stays inside the picture: its corner can move by size − kernel."),
    (dict(step=lambda n, k, s: n - k + 1),
     "where is the stride? The kernel moves by that many pixels at a time."),
    (dict(step=lambda n, s, k: (n - k) // s + 1),
     "kernel and stride are swapped: a layer is (kernel, stride)."),
    (lambda n, layers: output_size(n, layers[:1]),
     "that is the size after the first layer; go on."),
    (lambda n, layers: output_size(n, layers[:-1]), "the last layer is missing."),
    (lambda n, layers: output_size(n, layers[1:]), "the first layer is missing."),
    (lambda n, layers: output_size(n, layers[-1:]),
     "each layer gets the size that the one before it leaves, not that of the picture."),
    (lambda n, layers: output_size(n, layers[::-1]), "the layers are applied in the wrong order."),
    (lambda n, layers: output_size(n, layers) ** 2,
     "that is the number of pixels; a side is asked for."),
], larger=[(4_000, [(3, 1)] * 12), (5_001, [(5, 3)] * 6)])  # fmt: skip
