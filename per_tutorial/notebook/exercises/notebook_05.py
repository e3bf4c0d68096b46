"""Notebook 05, Atari: skipped frames, stacks, memory, clipped rewards and lives, convolutions."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.notebook.checking import checks
from per_tutorial.notebook.checking.answers import (
    Hint,
    ask,
    cases_of,
    like,
    number,
    numbers,
    part,
    plain,
    shown,
)
from per_tutorial.notebook.checking.comparing import Function, compare

# 05.1: four frames, one step ---------------------------------------------------------------------

Screens = NDArray[np.uint8]
TRAIL = (
    "you take the maximum of {} frames: whatever moves leaves a trail. The last two are enough "
    "against flicker."
)
DIM = "that is the mean: what is not in every frame would be seen dimly."
SUM = "you add the frames: what is in both is twice as bright, and uint8 starts again after 255."
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
SCREEN_MISTAKES = [
    *((lambda f, r, some=some: f[some].max(axis=0), words) for some, words in OTHER_SCREENS),
    *((lambda f, r, last=last, kind=kind: f[-last:].mean(axis=0).astype(kind), DIM)
      for last in (2, 3, 4) for kind in (float, np.uint8)),
    *((lambda f, r, last=last, kind=kind: f[-last:].sum(axis=0, dtype=kind), SUM)
      for last in (2, 4) for kind in (float, np.uint8)),
    (lambda f, r: f[-2:].min(axis=0), "that is the minimum: what flickers would never be seen."),
]  # fmt: skip
ALL_FOUR = "all four count; only the screen is made of the last two."
CLIPPED = "they are clipped later, where one learns from them."
CUT_SHORT = (
    "right for four frames. But a game can end within a step, which then has fewer: use the last two "
    "of those that are there, or the only one. "
)
ONE_FRAME = "one frame's alone is too little: points may be scored in any of the four."
REWARD_MISTAKES = [
    (lambda f, r: r[-1], ONE_FRAME),
    (lambda f, r: r[0], ONE_FRAME),
    (lambda f, r: r.mean(), "they are added up; the mean would divide every score by 4."),
    (lambda f, r: r.max(), "the maximum is for the pixels; rewards are added up."),
    (lambda f, r: r[-2:].max(), "the maximum is for the pixels; rewards are added up."),
    (lambda f, r: r[-2:].sum(), ALL_FOUR),
    (lambda f, r: r[:2].sum(), ALL_FOUR),
    (lambda f, r: r[1:].sum(), "all four count, the first as well."),
    (lambda f, r: np.abs(r).sum(), "lost points are negative: add them up with their signs."),
    (lambda f, r: r.clip(-1, 1).sum(), CLIPPED),
    (lambda f, r: r.sum().clip(-1, 1), CLIPPED),
    (lambda f, r: np.sign(r).sum(), CLIPPED),
]


@checks("05.1")
def check_max_and_skip(answer: object) -> str | None:
    # In the first, no two pixels are the same, and most sums of two exceed 255.
    random = np.random.default_rng(5)
    screens = [
        (np.arange(24) * 73 % 256).astype(np.uint8).reshape(4, 3, 2),
        random.integers(0, 256, (4, 5, 3), dtype=np.uint8),
    ]
    short = [random.integers(0, 256, (count, 2, 4), dtype=np.uint8) for count in (3, 2, 1)]
    rewards = [4.0, 0.0, 5.0, 2.0], [0.5, -3.0, 0.0, 1.0]
    cases = cases_of("frames rewards", zip(screens, np.array(rewards), strict=True))
    cut = cases_of("frames rewards", [(s, np.array([-2.0, 1.0, 4.0])[-len(s) :]) for s in short])
    things = ["the screen that the agent sees", "the reward of the step"]
    types = set()

    def screen(result: Any, right: Screens) -> Any:
        first = part(result, 0, things, right)
        types.add(np.asarray(plain(first)).dtype)
        return like(first, right)

    def reward(result: Any, right: float) -> Any:
        return like(part(result, 1, things), right)

    def seen(frames: Screens, rewards: object) -> Screens:
        return frames[-2:].max(axis=0)

    def scored(frames: Screens, rewards: NDArray[np.float64]) -> float:
        return rewards.sum()

    if mistake := compare(answer, seen, cases, SCREEN_MISTAKES, read=screen):
        return mistake
    if types != {np.dtype(np.uint8)}:
        other = next(str(each) for each in types if each != np.uint8)
        return f"the right screen, but as {other}: leave it uint8, one byte a pixel."
    if mistake := compare(answer, scored, cases, REWARD_MISTAKES, read=reward):
        return f"the screen is right. But the rewards: {mistake}"
    try:
        mistake = compare(answer, seen, cut, [], read=screen)
        mistake = mistake or compare(answer, scored, cut, [], read=reward)
    except Hint as hint:
        mistake = str(hint)
    return mistake and f"{CUT_SHORT}({mistake})"


# 05.2: which frames are a stack ------------------------------------------------------------------


def stack_numbers(newest: int, depth: int, environments: int, stack: int = 4) -> list[int]:
    backs = range(stack - 1, -1, -1)
    return [newest - back * environments if back < depth else -1 for back in backs]


def own_numbers(newest: int, depth: int, environments: int, stack: int) -> list[int]:
    return stack_numbers(newest, depth, environments, stack)[-depth:]


def padded(pad: Function) -> Function:
    """`stack_numbers` whose missing frames are what `pad(the other frames' numbers)` says."""

    def wrong(newest, depth, environments, stack):
        own = own_numbers(newest, depth, environments, stack)
        return [pad(own)] * (stack - depth) + own

    return wrong


def moved(frames: int, more: int) -> Function:
    """`stack_numbers` that begins so many frames later, and looks so many more frames back."""
    return lambda k, depth, e, stack: stack_numbers(k + frames * e, depth + more, e, stack)


def black_at_the_end(k: int, depth: int, e: int, stack: int) -> list[int]:
    return own_numbers(k, depth, e, stack) + [-1] * (stack - depth)


NEWEST_FIRST = "the newest comes first in yours: the stack begins with the oldest."
STEP_BACK = (
    "you step back by 1, to frames of other environments: one's own are `environments` apart."
)
OFF_BY_ONE = "off by one: the stack ends with the frame `newest`, and `depth` counts it, too."
STACK_MISTAKES = [
    (lambda k, d, e, n: own_numbers(k, d, e, n),
     "right, but without the black frames: a stack always has `stack` numbers."),
    (lambda k, d, e, n: stack_numbers(k, d, e),
     "you always return 4 numbers; `stack` says how many."),
    (lambda k, d, e, n: stack_numbers(k, d, 1, n), STEP_BACK),
    (lambda k, d, e, n: stack_numbers(k, n, 1, n), STEP_BACK),
    (lambda k, d, e, n: stack_numbers(k, n, e, n),
     "you look back beyond the beginning, at frames of the episode before: this one has seen "
     "only `depth` so far."),
    (black_at_the_end, "the black frames are at the wrong end: they come before the others."),
    (lambda k, d, e, n: stack_numbers(k, d, e, n)[::-1], NEWEST_FIRST),
    (lambda k, d, e, n: own_numbers(k, d, e, n)[::-1], NEWEST_FIRST),
    (lambda k, d, e, n: black_at_the_end(k, d, e, n)[::-1], NEWEST_FIRST),
    (padded(lambda own: own[0]),
     "you repeat the episode's first frame, as Gymnasium does by default: here the missing ones "
     "are black, −1."),
    (padded(lambda own: own[-1]), "you repeat the newest frame; the missing ones are black, −1."),
    (padded(lambda own: 0), "0 is the number of a frame; a black one is −1."),
    (lambda *given: [number or -1 for number in stack_numbers(*given)],
     "0 is the number of a frame, too."),
    (lambda *given: [n + given[2] * (n >= 0) for n in stack_numbers(*given)], OFF_BY_ONE),
    *((moved(frames, more), OFF_BY_ONE) for frames in (-1, 0, 1) for more in (-1, 0, 1)
      if (frames, more) != (0, 0)),
    (lambda k, d, e, n: [k] * n,
     "these are all the newest frame; step back by `environments` each time."),
]  # fmt: skip


@checks("05.2")
def check_stack_numbers(answer: object) -> str | None:
    rows = [(10, 4, 3, 4), (10, 2, 3, 4), (3, 2, 3, 4), (9, 1, 1, 4), (23, 3, 2, 4), (40, 5, 6, 6),
            (17, 2, 4, 3), (8, 3, 1, 3)]  # fmt: skip
    cases = cases_of("newest depth environments stack", rows)

    def read(result: Any, right: list[int]) -> Any:
        if isinstance(result, list | tuple) and None in result:
            raise Hint("a black frame is −1 in the list, not None.")
        got = numbers(result)
        if got.ndim != 1:
            raise Hint(f"return a list of numbers; yours has the shape {got.shape}.")
        return got

    return compare(answer, stack_numbers, cases, STACK_MISTAKES, read=read)


# 05.3: memory ------------------------------------------------------------------------------------


def gigabytes(transitions: int, single_frames: bool, frame: int, stack: int) -> float:
    return transitions * frame * (1 if single_frames else 2 * stack) / 1e9


def with_stacks(count: Function) -> Function:
    """`gigabytes` with other numbers of frames where stacks are held, given the stack."""
    return lambda n, single, frame, stack: n * frame * (1 if single else count(stack)) / 1e9


def with_single(count: Function) -> Function:
    """`gigabytes` with other numbers of frames where every frame is held once, given the stack."""
    return lambda n, single, frame, stack: n * frame * (count(stack) if single else 2 * stack) / 1e9


ONCE = (
    "a frame that is held once serves every stack that it is in: no factor for stacks is left "
    "where `single_frames` is True."
)
TWICE = (
    "counted twice: the newest frame of a next observation is that of the following observation, "
    "and each is held once."
)
MEMORY_MISTAKES = [
    (with_stacks(lambda stack: stack),
     "the next observation is missing: each transition holds two stacks."),
    (with_stacks(lambda stack: 2), "an observation is a stack of `stack` frames."),
    (with_stacks(lambda stack: 1), "that is one frame for each transition; it holds two stacks."),
    (with_stacks(lambda stack: stack + 1),
     "the two stacks share frames, but each has its own copy of them."),
    (lambda n, single, f, k: gigabytes(n, single, f, 4), "a stack has `stack` frames, not always 4."),
    (lambda n, single, f, k: gigabytes(n, single, 84 * 84, k),
     "a frame has `frame` pixels, not always 84 × 84."),
    (with_single(lambda stack: 2), TWICE),
    *((with_single(count), ONCE)
      for count in (lambda s: s, lambda s: s + 1, lambda s: 2 * s, lambda s: 1 / s)),
    (lambda n, single, f, k: gigabytes(n, not single, f, k),
     "the other way round: `single_frames=True` holds every frame once."),
    (lambda n, single, f, k: gigabytes(n, single, f * f, k),
     "`frame` is the number of pixels already: don't square it."),
    (lambda *given: round(gigabytes(*given), 1), "rounded: return the number as it is."),
    *((lambda *given, size=size: size * gigabytes(*given), sentence)
      for size, sentence in (
          (3, "a pixel is one byte here: grey has no three colours."),
          (4, "four bytes a pixel is float32; uint8 is one."),
          (8, "a pixel has eight bits, which are one byte."),
          (1e9 / 2**30, "that is in GiB, 2**30 bytes; the question is in 10**9."),
          (1e9, "those are bytes; divide by 10**9."),
          (1e6, "those are thousands of bytes; divide by 10**9."),
          (1e3, "those are millions of bytes; divide by 10**9."))),
]  # fmt: skip


@checks("05.3")
def check_gigabytes(answer: object) -> str | None:
    rows = [(1_000_000, single, 84 * 84, 4) for single in (False, True)]
    rows += [(50_000, single, 80 * 60, 3) for single in (False, True)]
    rows += [(1_000_000, False, 80 * 60, 4), (1_000_000, False, 84 * 84, 6)]
    rows += [(20_000, True, 42 * 42, 6)]
    cases = cases_of("transitions single_frames frame stack", rows)
    return compare(answer, gigabytes, cases, MEMORY_MISTAKES)


# 05.4: what is learned from ----------------------------------------------------------------------


def clipped_reward(reward: float, lives_before: int, lives: int, over: bool) -> float:
    return min(max(reward, -1.0), 1.0)


ALWAYS = "when the game is over, so is the episode, whatever the lives say."
# lives before, lives, over, terminated, and the sentence for who sees it differently
ENDS = [
    (3, 3, False, False, "no life is lost and the game is not over: the episode goes on."),
    (3, 2, False, True, "a lost life ends an episode."),
    (4, 2, False, True, "two lives may be lost in one step: what counts is that there are fewer."),
    (2, 3, False, False, "a life is gained there: episodes end with fewer lives than before."),
    *((before, 0, False, False, "the game is about to be over, and if 0 lives end it, too, one end "
                                "becomes two.") for before in (1, 2)),
    (0, 0, False, False, "a game without lives, such as Pong, shows 0 all the time: no end."),
    (0, 3, False, False, "a new game begins with more lives than the one before had left: no end."),
    (3, 2, True, True, ALWAYS),
    (1, 0, True, True, ALWAYS),
    (0, 0, True, True, ALWAYS),
    (3, 3, True, True, ALWAYS),
]  # fmt: skip
BETWEEN = "clipping leaves what lies between −1 and 1 as it is; yours does not."
CLIP_MISTAKES = [
    (lambda r, *end: r, "nothing is clipped: the limits are −1 and 1, and both count."),
    (lambda r, *end: min(r, 1.0), "the lower limit is missing: −7 becomes −1."),
    (lambda r, *end: max(r, -1.0), "the upper limit is missing: 4 becomes 1."),
    (lambda r, *end: np.sign(r),
     "that is the sign. For whole points it is the same, but clipping leaves what lies between "
     "−1 and 1 as it is."),
    (lambda r, *end: np.clip(r, 0, 1), "points can be lost, too: the lower limit is −1, not 0."),
    (lambda r, *end: int(np.clip(r, -1, 1)), BETWEEN),
    (lambda r, *end: round(np.clip(r, -1, 1)), BETWEEN),
    (lambda r, *end: np.tanh(r), BETWEEN),
    (lambda r, *end: abs(np.clip(r, -1, 1)), "a lost point is negative: leave the sign."),
    (lambda r, before, lives, over: 0.0 if over or 0 < lives < before else np.clip(r, -1, 1),
     "the end of an episode does not take its last reward away."),
]  # fmt: skip


@checks("05.4")
def check_learning_view(answer: object) -> str | None:
    names = "reward lives_before lives over"
    things = ["the clipped reward", "whether the step terminates"]

    def clipped(result: Any, right: float) -> Any:
        first, second = (part(result, place, things) for place in (0, 1))
        if isinstance(first, bool | np.bool_) and not isinstance(second, bool | np.bool_):
            raise Hint(f"in this order, please: {', then '.join(things)}.")
        return like(first, right)

    rewards = (4.0, -7.0, 0.5, -0.25, 0.75, 0.0)
    cases = cases_of(names, [(reward, *end) for *end, _, _ in ENDS for reward in rewards])
    if mistake := compare(answer, clipped_reward, cases, CLIP_MISTAKES, read=clipped):
        return mistake
    for k, case in enumerate(cases):
        before, lives, over, ended, sentence = ENDS[k // len(rewards)]
        flag = plain(part(ask(answer, case), 1, things))
        if isinstance(flag, str) or flag is None or np.size(flag) != 1:
            return f"{things[1]} is True or False, not {shown(flag)}."
        if bool(flag) != ended:
            return f"lives_before = {before}, lives = {lives}, over = {over}: {sentence}"
    return None


# 05.5: what the convolutions leave ---------------------------------------------------------------


def with_step(step: Function) -> Function:
    """`output_size` with another size after a layer, given (size, kernel, stride)."""

    def wrong(size, layers):
        for kernel, stride in layers:
            size = step(size, kernel, stride)
        return size

    return wrong


def output_size(size: int, layers: Sequence[tuple[int, int]]) -> int:
    for kernel, stride in layers:
        size = (size - kernel) // stride + 1
    return size


NOT_WHOLE = "a size is a whole number: divide by `//`, which leaves out what does not fit."
A_FLOAT = "the right numbers, but not as an int: `int(…)` makes one."
NO_KERNEL = "where is the kernel? It stays inside the picture: its corner can move size − kernel."
SIZE_MISTAKES = [
    (with_step(lambda n, k, s: (n - k) / s + 1), NOT_WHOLE),
    (with_step(lambda n, k, s: int((n - k) / s)),
     "the + 1 is missing: the kernel has a place before it takes its first step."),
    (with_step(lambda n, k, s: (n - k + 1) // s),
     "the + 1 belongs after the division: it counts the kernel's first place."),
    (with_step(lambda n, k, s: -(-(n - k) // s) + 1),
     "you round up: a step that would carry the kernel over the edge is not taken."),
    (with_step(lambda n, k, s: n // s), NO_KERNEL),
    (with_step(lambda n, k, s: -(-n // s)), NO_KERNEL),
    (with_step(lambda n, k, s: n - k + 1),
     "where is the stride? The kernel moves by so many pixels at a time."),
    (with_step(lambda n, s, k: (n - k) // s + 1),
     "kernel and stride are swapped: a layer is (kernel, stride)."),
    (lambda n, layers: output_size(n, layers[:1]), "that is the size after the first layer; go on."),
    (lambda n, layers: output_size(n, layers[:-1]), "the last layer is missing."),
    (lambda n, layers: output_size(n, layers[1:]), "the first layer is missing."),
    (lambda n, layers: output_size(n, layers[-1:]),
     "each layer gets the size that the one before has left, not that of the picture."),
    (lambda n, layers: output_size(n, layers[::-1]), "the layers are applied in the wrong order."),
    (lambda n, layers: output_size(n, layers) ** 2,
     "that is the number of pixels; a side is asked for."),
]  # fmt: skip


@checks("05.5")
def check_output_size(answer: object) -> str | None:
    sizes = [(84, [(8, 4), (4, 2), (3, 1)]), (42, [(5, 2), (3, 2), (3, 2)]), (50, [(6, 3)]),
             (96, [(8, 4), (4, 2), (3, 1)]), (61, [(7, 3), (4, 2)]),
             (120, [(9, 2), (5, 3), (4, 2), (3, 2)]), (10, [])]  # fmt: skip
    cases = cases_of("size layers", sizes)
    whole = True

    def read(result: Any, right: int) -> Any:
        nonlocal whole
        try:
            operator.index(result)
        except TypeError:
            whole = False
        return number(result)

    mistake = compare(answer, output_size, cases, SIZE_MISTAKES, read=read)
    return mistake if mistake or whole else A_FLOAT
