"""Notebook 02, uniform DQN: targets, exploration, TD errors, discounts, replays."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from per_tutorial.notebook.checking import checks
from per_tutorial.notebook.checking.answers import (
    Case,
    ask,
    cases_of,
    number,
    numbers,
    same,
    told_apart,
)
from per_tutorial.notebook.checking.comparing import Function, compare, remembers
from per_tutorial.notebook.checking.tensors import check_gradient, tensors

Array = NDArray[np.float64]

# 02.1: the target of one transition --------------------------------------------------------------


def td_target(
    reward: float, terminated: bool, truncated: bool, next_q: Array, discount: float
) -> float:
    return reward + (0.0 if terminated else discount * next_q.max())


def with_value(value: Function) -> Function:
    """`td_target` with another value of the next state, given its Q-values."""

    def wrong(reward, terminated, truncated, next_q, discount):
        return reward + (0.0 if terminated else discount * value(next_q))

    return wrong


def with_future(share: Function) -> Function:
    """`td_target` with the future times `share(terminated, truncated)`."""

    def wrong(reward, terminated, truncated, next_q, discount):
        return reward + share(terminated, truncated) * discount * next_q.max()

    return wrong


TIME_LIMIT = (
    "you end the value at the time limit. A truncated episode has a future that nobody watched: "
    "only `terminated` cuts it off."
)
FALLEN = (
    "if the pole falls at the very last step, it has fallen: `terminated` alone decides, whatever "
    "`truncated` says."
)
TILDE = (
    "`~` is meant for arrays. Of Python's own bools it makes numbers: ~False is −1, and ~True is "
    "−2. Write `not terminated`."
)

TARGET_MISTAKES = [
    (with_future(lambda terminated, truncated: ~terminated), TILDE),
    (lambda r, te, tr, q, g: r + (not te) * q.max(), "the future is not discounted."),
    (lambda r, te, tr, q, g: (not te) * g * q.max(), "the reward is missing."),
    (lambda r, te, tr, q, g: r, "the future is missing: the value of s′, discounted."),
    (lambda r, te, tr, q, g: g * td_target(r, te, tr, q, 1.0),
     "the reward comes with the step itself; only the future is discounted."),
    (lambda r, te, tr, q, g: 0.0 if te else td_target(r, te, tr, q, g),
     "termination cuts off what follows, not the reward of the step itself."),
    (with_value(lambda q: q[0]),
     "you take the Q of the first action; the target takes the largest."),
    (with_value(lambda q: q[-1]),
     "you take the Q of the last action; the target takes the largest."),
    (with_value(np.mean), "you take the mean Q of the next state; the target takes the largest."),
    (with_value(np.min),
     "you take the smallest Q of the next state; the target takes the largest."),
    (with_value(np.sum),
     "you add up the Q-values of the next state; the target takes the largest."),
    (with_value(np.argmax),
     "argmax says *which* action has the largest Q; the target takes that Q itself."),
    (with_value(lambda q: np.abs(q).max()),
     "Q may be negative, and the largest Q is then negative, too: no absolute value."),
    (with_value(lambda q: max(0.0, q.max())),
     "the largest Q of a state may be negative: nothing cuts it off at 0."),
    (with_value(lambda q: q[:2].max()),
     "you look at the first two actions alone; there may be more."),
    (with_future(lambda terminated, truncated: 1),
     "after termination nothing follows: the target is the reward alone."),
    (with_future(lambda terminated, truncated: not (terminated or truncated)), TIME_LIMIT),
    (with_future(lambda terminated, truncated: not truncated),
     "you take `truncated` for the end, so a fallen pole keeps its future: it is `terminated`, and "
     "that alone, that cuts it off."),
    (with_future(lambda terminated, truncated: truncated),
     "the other way round: where `truncated` is False, the episode goes on."),
    (with_future(lambda terminated, truncated: terminated),
     "upside down: the future counts where the step did *not* terminate."),
    *((with_future(share), FALLEN)
      for share in (lambda te, tr: not te or tr, lambda te, tr: not (te and tr),
                    lambda te, tr: te == tr)),
]  # fmt: skip


@checks("02.1")
def check_td_target(answer: object) -> str | None:
    two, three = np.array([3.0, 7.0]), np.array([-2.5, -0.75, -4.0])
    four = np.array([0.5, 2.0, 6.5, -8.0])
    transitions = [(1.0, two, 0.9), (1.0, two, 0.5), (-0.5, two, 0.9)]
    transitions += [(-0.5, three, 0.8), (2.0, four, 0.99)]
    rows = [
        (reward, terminated, truncated, next_q, discount)
        for reward, next_q, discount in transitions
        for terminated in (False, True)
        for truncated in (False, True)
    ]
    cases = cases_of("reward terminated truncated next_q discount", rows)
    return compare(answer, td_target, cases, TARGET_MISTAKES)


# 02.2: exploration as a function of the step -----------------------------------------------------


def falling(step: int) -> int:
    """How many steps ε has been falling: it begins at step 200."""
    return max(step - 200, 0)


def epsilon(step: int) -> float:
    return 1.0 - 0.9 * min(falling(step) / 1000, 1.0)


TOO_EARLY = "it falls from step 0 on; it should stay at 1 until step 200."
TOO_SHORT = (
    "it jumps to 0.1 at step 1,000: that is how long it falls, from step 200 on, so it arrives at "
    "step 1,200."
)

LINE_MISTAKES = [
    (lambda step: 1.0 - 0.9 * min(step / 1000, 1.0), TOO_EARLY),
    (lambda step: 1.0 - 0.9 * min(step / 1200, 1.0), TOO_EARLY),
    (lambda step: 1.0 - 0.9 * min((step - 200) / 1000, 1.0),
     "before step 200 it is above 1: hold it there."),
    (lambda step: 1.0 if step < 200 else 1.0 - 0.9 * min(step / 1000, 1.0),
     "at step 200 it jumps: count the steps from there."),
    (lambda step: 1.0 if step < 200 else 1.0 - 0.9 * min(step / 1200, 1.0),
     "at step 200 it jumps: count the steps from there."),
    (lambda step: 1.0 - 0.9 * min(falling(step) / 800, 1.0),
     "it is at 0.1 in step 1,000; it falls for 1,000 steps, from step 200 on."),
    (lambda step: 1.0 - 0.9 * min(falling(step) / 1200, 1.0),
     "it is at 0.1 in step 1,400; it falls for 1,000 steps, from step 200 on."),
    (lambda step: 1.0 - 0.9 * falling(step) / 1000,
     "after step 1,200 it goes on, and falls below 0.1; it should stay there."),
    (lambda step: max(0.0, 1.0 - 0.9 * falling(step) / 1000),
     "after step 1,200 it goes on, down to 0; it should stay at 0.1."),
    (lambda step: max(0.0, 1.0 - falling(step) / 1000),
     "it heads for 0; it should arrive at 0.1 in step 1,200."),
    (lambda step: 1.0 - falling(step) / 1000,
     "it heads for 0 and beyond; it should arrive at 0.1 in step 1,200, and stay there."),
    (lambda step: max(0.1, 1.0 - falling(step) / 1000),
     "it falls by 1 in 1,000 steps, and is at 0.1 a hundred steps too early: it falls by 0.9 in "
     "all."),
    (lambda step: 1.0 if step < 1200 else 0.1,
     "that is one jump, not a line: `//` drops the fraction, `/` keeps it."),
    (lambda step: 1.1 - epsilon(step), "upside down: it starts at 1 and ends at 0.1."),
    (lambda step: 0.1 ** min(falling(step) / 1000, 1.0),
     "the ends are right, but between them it falls by the same *factor* at every step: that is "
     "no line."),
    (lambda step: 0.9 * (1 - min(falling(step) / 1000, 1.0)),
     "it goes from 0.9 to 0; ε goes from 1 to 0.1."),
    (lambda step: 100 * epsilon(step), "that is in percent."),
    (lambda step: epsilon(step) if step < 1000 else 0.1, TOO_SHORT),
    (lambda step: epsilon(step) if step <= 1000 else 0.1, TOO_SHORT),
    (lambda step: 1.0 - 0.95 * min(falling(step) / 1000, 1.0),
     "it goes to 0.05, as in section 6; here the end is 0.1."),
    (lambda step: 1.0 - 0.95 * min(step / 5000, 1.0),
     "that is `linear` of section 6 as it stands: here the fall begins at step 200, takes 1,000 "
     "steps and ends at 0.1."),
    (lambda step: epsilon(step + 1),
     "it begins to fall one step too early: at step 200 it is still 1."),
    (lambda step: epsilon(step - 1),
     "it begins to fall one step too late: at step 201 it is below 1."),
]  # fmt: skip


@checks("02.2")
def check_epsilon(answer: object) -> str | None:
    if remembers(answer, cases_of("step", [(step,) for step in range(1201)])):
        return (
            "asked for the same step again it gives another answer: it remembers the calls before. "
            "ε is a function of the step alone."
        )
    steps = (0, 1, 100, 199, 200, 300, 450, 700, 950, 1000, 1099, 1150, 1199, 1200, 1201, 1700)

    def otherwise(case: Case, got: Array) -> str:
        should, does = told_apart(epsilon(**case), got)
        if case["step"] == 0:
            return f"at step 0 it starts at 1, yours is {does}."
        ends = [number(ask(answer, {"step": step})) for step in (0, 200, 1200)]
        line = (
            "the ends are right, but between them it is no line: "
            if same(ends, [1, 1, 0.1])
            else ""
        )
        return f"{line}at step {case['step']} it should be {should}, yours is {does}."

    # A mistake that begins early must not explain an answer that goes wrong only later.
    before_the_end = (1, 199, 300, 700, 1000, 1099)
    values = [number(ask(answer, {"step": step})) for step in before_the_end]
    mistakes = [each for each in LINE_MISTAKES if same(list(map(each[0], before_the_end)), values)]
    cases = cases_of("step", [(step,) for step in (*steps, 3000, 10**6)])
    return compare(answer, epsilon, cases, mistakes, otherwise=otherwise)


# 02.3: the TD errors of a minibatch --------------------------------------------------------------


def chosen_q(q_values: Tensor, actions: Tensor) -> Tensor:
    return q_values.gather(1, actions[:, None])[:, 0]


def td_errors_of(q_values: Tensor, actions: Tensor, targets: Tensor) -> Tensor:
    return targets - chosen_q(q_values, actions)


def with_estimate(estimate: Function) -> Function:
    """`td_errors_of` with another estimate, given (q_values, actions)."""
    return lambda q_values, actions, targets: targets - estimate(q_values, actions)


def from_table(pick: Function) -> Function:
    """`td_errors_of` that picks from the table of every target (columns) with every estimate (rows)."""
    return lambda q, actions, targets: pick(targets - chosen_q(q, actions)[:, None])


TABLE = (
    "broadcasting has paired every target with every estimate, and you keep {} of that table: "
    "bring both to (batch,) *before* you subtract."
)
WHOLE_COLUMNS = (
    "`q_values[:, actions]` picks those columns in *every* row, a table (batch, batch). Each row "
    "has an action of its own: `gather` along axis 1 does that."
)
WHOLE_ROWS = (
    "`q_values[actions]` picks whole rows, as if the actions were places in the minibatch: each row "
    "has an action of its own, which `gather` along axis 1 picks."
)

TD_ERROR_MISTAKES = [
    (lambda *given: -td_errors_of(*given),
     "the sign is the other way round: δ is the target minus the estimate."),
    (lambda *given: td_errors_of(*given).abs(), "TD errors keep their sign: no absolute value."),
    (lambda *given: td_errors_of(*given) ** 2,
     "those are the squares; return the TD errors themselves."),
    (lambda *given: td_errors_of(*given) ** 2 / 2,
     "those are the losses; return the TD errors themselves."),
    (lambda *given: td_errors_of(*given).round(),
     "right but for the rounding: leave the fractions."),
    (lambda *given: td_errors_of(*given).clamp(-1, 1), "nothing is clipped here."),
    (lambda q, actions, targets: targets,
     "the estimate is missing: subtract the Q of the action that was taken."),
    (lambda q, actions, targets: chosen_q(q, actions),
     "that is the estimate; the TD error is the target minus the estimate."),
    (with_estimate(lambda q, actions: q.max(dim=1).values),
     "you take the best action's Q; the estimate is that of the action that was taken."),
    (with_estimate(lambda q, actions: q.mean(dim=1)),
     "you take the mean Q; the estimate is that of the action that was taken."),
    (with_estimate(lambda q, actions: q.sum(dim=1)),
     "you add up all Q-values; the estimate is that of the action that was taken."),
    (with_estimate(lambda q, actions: q[:, 0]),
     "you take the first action's Q; the estimate is that of the action that was taken."),
    (with_estimate(lambda q, actions: actions),
     "you subtract the action's number; the estimate is its Q."),
    (with_estimate(lambda q, actions: q.gather(0, actions[None])[0]),
     "`gather` has run along the wrong axis: actions are axis 1."),
    (with_estimate(lambda q, actions: torch.where(actions == 0, q[:, 0], q[:, 1])),
     "that is right for two actions; there may be more."),
    (from_table(lambda table: table[:, 0]), TABLE.format("a column")),
    (from_table(lambda table: table[0]), TABLE.format("a row")),
    (from_table(lambda table: table.mean(0)), TABLE.format("the means")),
    (from_table(lambda table: table.mean(1)), TABLE.format("the means")),
    (from_table(lambda table: table.sum(0)), TABLE.format("the sums")),
    (from_table(lambda table: table.sum(1)), TABLE.format("the sums")),
]  # fmt: skip


@checks("02.3")
def check_td_errors(answer: object) -> str | None:
    square = [[1.0, 5.25, -0.5], [2.0, 0.25, 3.5], [4.0, 3.75, 0.5]]
    wide = [[0.5, -1.25, 2.75, 0.1], [3.25, 1.5, -0.5, 2.0], [1.1, 0.2, 0.9, 4.6],
            [2.2, 6.5, 1.3, 0.7], [-3.0, -2.2, -1.7, -0.4]]  # fmt: skip
    batches = [
        (square, [0, 2, 1], [2.5, 2.0, 7.125]),
        (wide, [3, 1, 2, 0, 1], [1.5, -0.25, 4.0, 3.3, -2.9]),
    ]
    cases = cases_of("q_values actions targets", [map(torch.tensor, batch) for batch in batches])
    trained = ["q_values"]
    q, actions, targets = cases[0].values()
    got = numbers(ask(answer, cases[0], tensors(trained)))
    for picked, sentence in ((q[:, actions], WHOLE_COLUMNS), (q[actions], WHOLE_ROWS)):
        if same(got, targets - picked) or same(got, targets[:, None] - picked):
            return sentence
    mistake = compare(answer, td_errors_of, cases, TD_ERROR_MISTAKES, give=tensors(trained))
    if mistake is None:
        check_gradient(answer, td_errors_of, cases[1], trained)
    return mistake


# 02.4, 02.5: two numbers -------------------------------------------------------------------------


@checks("02.4")
def check_discount(answer: object) -> str | None:
    discount = number(answer)
    if np.isclose(discount, 0.98, rtol=1e-4):
        return None
    if np.isclose(discount, 98):
        return "in percent, yes; γ itself is a fraction."
    if np.isclose(discount, 0.02):
        return "that is 1 − γ."
    if np.isclose(discount, 50 / 51, rtol=1e-4):
        return "nearly: the first reward comes at once and counts in full, so the sum is 1/(1 − γ)."
    if np.isclose(discount, 0.5 ** (1 / 50), rtol=1e-4):
        return (
            "with that γ, a reward 50 steps ahead counts half; but all rewards together count here."
        )
    if not 0 <= discount < 1:
        return "a discount lies between 0 and 1."
    return f"with γ = {discount:g} it is worth {told_apart(50.0, 1 / (1 - discount))[1]}."


@checks("02.5")
def check_replays(answer: object) -> str | None:
    replays = number(answer)
    if np.isclose(replays, 32, rtol=1e-3):
        return None
    mistakes = [
        (32 / 10_000, "that is its chance to be drawn in one step; it stays for many."),
        (10_000 / 32, "that is how many updates it takes to draw as many as the memory holds."),
        (10_000, "that is how many steps it stays; multiply by its chance to be drawn in one."),
        (1, "one transition is added at every step, but how many are drawn?"),
        (
            320_000,
            "that is how many draws there are while it is stored, of 10,000 transitions in all.",
        ),
        (1 / 32, "upside down: for each transition that is added, 32 are drawn."),
    ]
    for value, sentence in mistakes:
        if np.isclose(replays, value):
            return sentence
    return (
        "it stays for as many steps as the memory holds transitions; multiply by its chance a step."
    )
