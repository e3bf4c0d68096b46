"""Windows of n steps: R = Σ γ^j r_j, then the value of what follows (not in the paper; Rainbow)."""

from typing import NamedTuple

import numpy as np

from per_tutorial.conformance.answers import Finding, NotOffered, Untold, fails, holds, question
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.exam import CAPACITY, Exam
from per_tutorial.conformance.trial import Trial, plain, reward_of

SECTION = "not in the paper; Hessel et al. 2018"
N, DISCOUNT = 3, 0.5


class Window(NamedTuple):
    """An n-step transition as it should be."""

    reward: float
    next_state: int
    terminated: bool
    steps: int


@question(
    "n-step-returns",
    "Is R the discounted sum of n rewards, followed by the state n steps on?",
    section=SECTION,
    effect="The agent learns towards targets that are wrong by whole rewards.",
)
def n_step_returns(exam: Exam) -> Finding:
    trial = trial_of(exam)
    return check(
        trial, [s for s in starts(trial) if steps_left(trial, s) >= N], "inside an episode"
    )


@question(
    "n-step-terminal",
    "Does a window end where the episode ends?",
    section=SECTION,
    effect="Rewards of the next episode leak into the last one, past a death.",
)
def n_step_terminal(exam: Exam) -> Finding:
    trial = trial_of(exam)
    return check(
        trial, [s for s in starts(trial) if steps_left(trial, s) < N], "before a terminal one"
    )


@question(
    "n-step-truncation",
    "Does a window end where a time limit cuts the episode, with a value to follow?",
    section=SECTION,
    effect="Windows run on into the next episode, or the value after the limit is lost.",
)
def n_step_truncation(exam: Exam) -> Finding:
    trial = trial_of(exam, truncated=True)
    return check(
        trial, [s for s in starts(trial) if steps_left(trial, s) < N], "before a time limit"
    )


@question(
    "n-step-tail",
    "Are the last n − 1 steps of an episode starting points as well?",
    section=SECTION,
    effect="What happens right before the end, often the only reward, is never learned from.",
    false_alarm=2 * FALSE_ALARM,
)
def n_step_tail(exam: Exam) -> Finding:
    for kind, truncated in (("terminal", False), ("truncated", True)):
        trial = trial_of(exam, truncated=truncated)
        wanted = [s for s in starts(trial) if steps_left(trial, s) < N]
        seen = set(
            trial.draw(int(CAPACITY * np.log(CAPACITY / FALSE_ALARM))).serials.ravel().tolist()
        )
        missing = [s for s in wanted if s not in seen]
        if missing:
            return fails(
                f"{len(missing)} of {len(wanted)} steps within {N - 1} of a {kind} end are never drawn, "
                f"such as number {missing[0]}"
            )
    return holds(f"all steps within {N - 1} of an end are drawn")


@question(
    "n-step-head",
    "Do windows near the write head hold only what belongs together?",
    section=SECTION,
    effect="A window mixes the newest steps with the oldest, which are thousands of episodes apart.",
)
def n_step_head(exam: Exam) -> Finding:
    for added in (
        CAPACITY - 4,
        CAPACITY + 24,
    ):  # in the middle of an episode, the second time wrapped
        trial = trial_of(exam, added=added)
        newest = len(trial.history) - 1
        finding = check(
            trial, [newest - k for k in range(N - 1)], "at the write head", shorter=True
        )
        if finding.verdict.name == "FAILS":
            return finding
    return finding


def trial_of(exam: Exam, *, truncated: bool = False, added: int = CAPACITY + 24) -> Trial:
    """A buffer of n-step windows, within an episode at its head."""
    if not exam.adapter.n_step:
        raise NotOffered("it makes no n-step returns by itself")
    return exam.trial(n_step=N, discount=DISCOUNT).add(added, episode=7, truncated=truncated)


def starts(trial: Trial) -> list[int]:
    """Stored transitions of which nothing that could come is still missing."""
    newest = len(trial.history) - 1
    return [s for s in trial.stored.tolist() if s + steps_left(trial, s) - 1 <= newest]


def steps_left(trial: Trial, serial: int) -> int:
    """How many steps the window from here has, at most N; one that is running counts as going on."""
    for k in range(N):
        if serial + k >= len(trial.history):
            return N
        step = trial.history[serial + k]
        if step.terminated or step.truncated:
            return k + 1
    return N


def window(trial: Trial, serial: int, steps: int) -> Window:
    """The n-step transition of so many steps."""
    last = trial.history[serial + steps - 1]
    return Window(
        sum(DISCOUNT**k * reward_of(serial + k) for k in range(steps)),
        int(np.asarray(last.next_observation)[0]),
        bool(last.terminated),
        steps,
    )


def check(trial: Trial, serials: list[int], where: str, *, shorter: bool = False) -> Finding:
    """Hold drawn windows that start with these transitions against what they should be.

    Args:
        trial: the buffer.
        serials: the starts to look at.
        where: they are, in words.
        shorter: whether the episode may go on there: the window then has what there is.
    """
    wanted, seen = set(serials), 0
    for _ in range(150):
        drawn, found, _ = trial.sample()
        if drawn.rewards is None or drawn.next_observations is None:
            raise NotOffered("the adapter hands out no rewards or no next observations")
        size = trial.settings.batch_size
        rewards = plain("rewards", drawn.rewards, (size,))
        states = plain("next_observations", drawn.next_observations, (size, 2))[:, 0]
        over = None if drawn.terminated is None else plain("terminated", drawn.terminated, (size,))
        steps = None
        if drawn.steps is not None:
            steps = np.broadcast_to(np.asarray(drawn.steps), (size,))
        for k in np.flatnonzero(np.isin(found, list(wanted))):
            serial = int(found[k])
            length = steps_left(trial, serial)
            if shorter:
                length = min(length, len(trial.history) - serial)
            right = window(trial, serial, length)
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
                    f"from transition {serial}, {where}: {told(got)} instead of {told(right)}"
                )
            seen += 1
    if not seen and not shorter:
        raise Untold(f"no window {where} was drawn")
    return holds(f"{seen} windows {where} are right")


def told(one: Window) -> str:
    """A window in words."""
    end = "terminated" if one.terminated else "a value follows"
    return f"{one.steps} steps with the return {one.reward:g} to state {one.next_state}, {end}"
