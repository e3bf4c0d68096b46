"""n-step returns: R = Σ γ^j r_j, then the value of the next state (not in the paper; Rainbow)."""

from typing import NamedTuple

import numpy as np

from per_tutorial.conformance.answers import (
    Finding,
    Inconclusive,
    NotOffered,
    fails,
    holds,
    question,
)
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import BufferHarness, plain, reward_of

SECTION = "not in the paper; Hessel et al. 2018"
N, DISCOUNT = 3, 0.5


class Window(NamedTuple):
    """The return and the end of an n-step transition."""

    reward: float
    next_state: int
    terminated: bool
    steps: int


@question(
    "n-step-returns",
    "Is R the discounted sum of n rewards, followed by the state n steps on?",
    section=SECTION,
    effect="The agent learns towards targets that are wrong by whole rewards.",
    needs=("contents",),
)
def n_step_returns(context: TestContext) -> Finding:
    harness = n_step_harness(context)
    return check(harness, starts(harness, whole=True), "inside an episode")


@question(
    "n-step-tail",
    "Are the last n − 1 steps of an episode starting points as well?",
    section=SECTION,
    effect="What happens right before the end, often the only reward, is never learned from.",
    needs=("reach",),
    false_alarm=2 * FALSE_ALARM,
)
def n_step_tail(context: TestContext) -> Finding:
    for kind, truncated in (("terminal", False), ("truncated", True)):
        harness = n_step_harness(context, truncated=truncated)
        wanted = starts(harness, whole=False)
        seen = set(harness.draw(int(CAPACITY * np.log(CAPACITY / FALSE_ALARM))).ravel().tolist())
        missing = [s for s in wanted if s not in seen]
        if missing:
            return fails(
                f"{len(missing)} of {len(wanted)} steps within {N - 1} of a {kind} end are never "
                f"drawn, such as number {missing[0]}"
            )
    return holds(f"all steps within {N - 1} of an end are drawn")


@question(
    "n-step-terminal",
    "Does a window end where the episode ends?",
    section=SECTION,
    effect="Rewards of the next episode leak into the last one, past a death.",
    needs=("n-step-returns", "n-step-tail"),
)
def n_step_terminal(context: TestContext) -> Finding:
    harness = n_step_harness(context)
    return check(harness, starts(harness, whole=False), "before a terminal one")


@question(
    "n-step-truncation",
    "Does a window end where a time limit cuts the episode, with a value to follow?",
    section=SECTION,
    effect="Windows run on into the next episode, or the value after the limit is lost.",
    needs=("n-step-returns", "n-step-tail", "truncation"),
)
def n_step_truncation(context: TestContext) -> Finding:
    harness = n_step_harness(context, truncated=True)
    return check(harness, starts(harness, whole=False), "before a time limit")


@question(
    "n-step-head",
    "Do windows near the write head hold only what belongs together?",
    section=SECTION,
    effect="A window mixes the newest steps with the oldest, which are thousands of episodes "
    "apart.",
    needs=("n-step-returns",),
)
def n_step_head(context: TestContext) -> Finding:
    # Both end in the middle of an episode, the second after the buffer has wrapped around.
    for added in (CAPACITY - 4, CAPACITY + 24):
        harness = n_step_harness(context, added=added)
        newest = len(harness.history) - 1
        finding = check(
            harness, [newest - k for k in range(N - 1)], "at the write head", shorter=True
        )
        if finding.failed:
            return finding
    return finding


def n_step_harness(
    context: TestContext, *, truncated: bool = False, added: int = CAPACITY + 24
) -> BufferHarness:
    """A buffer that makes n-step returns, by default filled up to the middle of an episode."""
    if not context.adapter.n_step:
        raise NotOffered("it makes no n-step returns by itself")
    return context.harness(n_step=N, discount=DISCOUNT).add(added, episode=7, truncated=truncated)


def starts(harness: BufferHarness, whole: bool) -> list[int]:
    """Where complete windows start: ``whole`` ones of N steps, or those cut by an episode's end."""
    stored, added = harness.stored.tolist(), len(harness.history)
    steps = {s: steps_left(harness, s) for s in stored}
    return [s for s in stored if s + steps[s] <= added and (steps[s] == N) == whole]


def steps_left(harness: BufferHarness, serial: int) -> int:
    """How many steps the window from here has: N, or fewer if its episode ends before."""
    for k in range(N):
        if serial + k >= len(harness.history):
            return N
        step = harness.history[serial + k]
        if step.terminated or step.truncated:
            return k + 1
    return N


def window(harness: BufferHarness, serial: int, steps: int) -> Window:
    """The window of ``steps`` steps that starts here."""
    last = harness.history[serial + steps - 1]
    return Window(
        sum(DISCOUNT**k * reward_of(serial + k) for k in range(steps)),
        int(np.asarray(last.next_observation)[0]),
        bool(last.terminated),
        steps,
    )


def check(
    harness: BufferHarness, serials: list[int], where: str, *, shorter: bool = False
) -> Finding:
    """Compare drawn windows that start at these transitions with the correct ones.

    Args:
        harness: the buffer.
        serials: the starts to check.
        where: they are, in words.
        shorter: whether windows end at the newest transition, though the episode goes on.
    """
    wanted, seen = set(serials), 0
    for _ in range(150):
        drawn, found, _ = harness.sample()
        if drawn.rewards is None or drawn.next_observations is None:
            raise NotOffered("the adapter hands out no rewards or no next observations")
        size = harness.settings.batch_size
        rewards = plain("rewards", drawn.rewards, (size,))
        states = plain("next_observations", drawn.next_observations, (size, 2))[:, 0]
        over = None if drawn.terminated is None else plain("terminated", drawn.terminated, (size,))
        steps = None
        if drawn.steps is not None:
            one = isinstance(drawn.steps, int | np.integer)
            steps = np.broadcast_to(plain("steps", drawn.steps, () if one else (size,)), (size,))
        for k in np.flatnonzero(np.isin(found, list(wanted))):
            serial = int(found[k])
            length = steps_left(harness, serial)
            if shorter:
                length = min(length, len(harness.history) - serial)
            right = window(harness, serial, length)
            got = Window(
                float(rewards[k]),
                int(states[k]),
                right.terminated if over is None else bool(over[k]),
                right.steps if steps is None else int(steps[k]),
            )
            if got.terminated and right.terminated:  # no value follows: the state doesn't matter
                got = got._replace(next_state=right.next_state)
            if abs(got.reward - right.reward) > 1e-4 or got[1:] != right[1:]:
                return fails(
                    f"from transition {serial}, {where}: {described(got)} instead of "
                    f"{described(right)}"
                )
            seen += 1
    if not seen and not shorter:
        raise Inconclusive(f"no window {where} was drawn")
    return holds(f"{seen} windows {where} are right")


def described(one: Window) -> str:
    """A window in words."""
    end = "terminated" if one.terminated else "a value follows"
    return f"{one.steps} steps with the return {one.reward:g} to state {one.next_state}, {end}"
