"""Notebook 02, uniform DQN: targets, exploration, TD errors, time limits, replays."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from per_tutorial.notebook.checking.answers import Case, numbers, same, told_apart
from per_tutorial.notebook.checking.declaring import Array, Function, function_exercise

# 02.1: the target of one transition ---------------------------------------------------------------


def td_target(
    reward: float,
    terminated: bool,
    truncated: bool,
    next_q: Array,
    discount: float,
    value: Function = np.max,
    share: Function = lambda terminated, truncated: not terminated,
) -> float:
    return reward + share(terminated, truncated) * discount * value(next_q)


TWO, THREE = np.array([3.0, 7.0]), np.array([-2.5, -0.75, -4.0])
FOUR = np.array([0.5, 2.0, 6.5, -8.0])
TRANSITIONS = [
    (1.0, TWO, 0.9), (1.0, TWO, 0.5), (-0.5, TWO, 0.9), (-0.5, THREE, 0.8), (2.0, FOUR, 0.99),
]  # fmt: skip

function_exercise(
    "02.1", td_target, "reward terminated truncated next_q discount",
    [(reward, terminated, truncated, next_q, discount)
     for reward, next_q, discount in TRANSITIONS
     for terminated in (False, True) for truncated in (False, True)], [
    (dict(share=lambda terminated, truncated: ~terminated),
     "`~` is meant for arrays. It turns Python's own bools into numbers: ~False is −1, and ~True "
     "is −2. Write `not terminated`."),
    (lambda r, te, tr, q, g: r + (not te) * q.max(), "the future is not discounted."),
    (lambda r, te, tr, q, g: (not te) * g * q.max(), "the reward is missing."),
    (lambda r, te, tr, q, g: r, "the future is missing: the value of s′, discounted."),
    (lambda r, te, tr, q, g: g * td_target(r, te, tr, q, 1.0),
     "the reward comes with the step itself; only the future is discounted."),
    (lambda r, te, tr, q, g: 0.0 if te else td_target(r, te, tr, q, g),
     "termination cuts off what follows, not the reward of the step itself."),
    (dict(value=lambda q: q[0]),
     "you take the Q of the first action; the target takes the largest."),
    (dict(value=lambda q: q[-1]),
     "you take the Q of the last action; the target takes the largest."),
    (dict(value=np.mean), "you take the mean Q of the next state; the target takes the largest."),
    (dict(value=np.min),
     "you take the smallest Q of the next state; the target takes the largest."),
    (dict(value=np.sum),
     "you add up the Q-values of the next state; the target takes the largest."),
    (dict(value=np.argmax),
     "argmax says *which* action has the largest Q; the target takes that Q itself."),
    (dict(value=lambda q: np.abs(q).max()),
     "all Q of a state may be negative, and then the largest is, too: take no absolute value."),
    (dict(value=lambda q: max(0.0, q.max())),
     "the largest Q of a state may be negative: nothing cuts it off at 0."),
    (dict(value=lambda q: q[:2].max()),
     "you look at the first two actions alone; there may be more."),
    (lambda r, te, tr, q, g: 1 / (1 - g) if tr and not te else td_target(r, te, tr, q, g),
     "at the time limit, too, the future is worth what `next_q` says; 1/(1 − γ) is the value of a "
     "pole that never falls."),
    (dict(share=lambda terminated, truncated: 1),
     "after termination nothing follows: the target is the reward alone."),
    (dict(share=lambda terminated, truncated: not (terminated or truncated)),
     "you cut off the future at the time limit. A truncated episode has a future that nobody "
     "watched: only `terminated` cuts it off."),
    (dict(share=lambda terminated, truncated: not truncated),
     "you take `truncated` for the end, so a fallen pole keeps its future: `terminated` alone cuts "
     "it off."),
    (dict(share=lambda terminated, truncated: truncated),
     "upside down, and the wrong flag: the future counts where `terminated` is False."),
    (dict(share=lambda terminated, truncated: terminated),
     "upside down: the future counts where the step did *not* terminate."),
    (dict(share=lambda te, tr: not te or tr), dict(share=lambda te, tr: not (te and tr)),
     dict(share=lambda te, tr: te == tr),
     "if the pole falls at the very last step, it has fallen: `terminated` alone decides, whatever "
     "`truncated` says."),
], larger=[
    (-1.0, False, False, -300.0 - np.arange(50.0), 0.999),
    (0.12345, False, False, np.array([0.98765, 1.23456]), 0.987),
])  # fmt: skip

# 02.2: exploration as a function of the step ------------------------------------------------------


def falling(step: int) -> int:
    """For how many steps ε has been falling: it begins at step 200."""
    return max(step - 200, 0)


def epsilon(step: int) -> float:
    return 1.0 - 0.9 * min(falling(step) / 1000, 1.0)


def what_it_is_at(case: Case, got: Array, results: list[Array]) -> str:
    should, does = told_apart(epsilon(**case), got)
    if case["step"] == 0:
        return f"at step 0 it starts at 1, yours is {does}."
    at = dict(zip(STEPS, results, strict=False))
    straight = all(same(at[step], epsilon(step)) for step in (0, 200, 1200) if step in at)
    line = "the ends are right, but between them it is not a straight line: " if straight else ""
    return f"{line}at step {case['step']} it should be {should}, yours is {does}."


STEPS = (0, 1, 100, 199, 200, 300, 450, 700, 950, 1000, 1099, 1150, 1199, 1200, 1201, 1700)

function_exercise("02.2", epsilon, "step", [(step,) for step in (*STEPS, 3000, 10**6)], [
    (lambda step: 1.0 - 0.9 * min(step / 1000, 1.0),
     lambda step: 1.0 - 0.9 * min(step / 1200, 1.0),
     "it falls from step 0 on; it should stay at 1 until step 200."),
    (lambda step: 1.0 - 0.9 * min((step - 200) / 1000, 1.0),
     "before step 200 it is above 1: keep it at 1."),
    (lambda step: 1.0 if step < 200 else 1.0 - 0.9 * min(step / 1000, 1.0),
     lambda step: 1.0 if step < 200 else 1.0 - 0.9 * min(step / 1200, 1.0),
     "at step 200 it jumps: count the steps from there."),
    (lambda step: 1.0 - 0.9 * min(falling(step) / 800, 1.0),
     "it reaches 0.1 at step 1,000; it should fall for 1,000 steps, from step 200 on."),
    (lambda step: 1.0 - 0.9 * min(falling(step) / 1200, 1.0),
     "it reaches 0.1 at step 1,400; it should fall for 1,000 steps, from step 200 on."),
    (lambda step: 1.0 - 0.9 * falling(step) / 1000,
     "after step 1,200 it goes on, and falls below 0.1; it should stay there."),
    (lambda step: max(0.0, 1.0 - 0.9 * falling(step) / 1000),
     "after step 1,200 it goes on, down to 0; it should stay at 0.1."),
    (lambda step: max(0.0, 1.0 - falling(step) / 1000),
     "it heads for 0; it should reach 0.1 at step 1,200."),
    (lambda step: 1.0 - falling(step) / 1000,
     "it heads for 0 and beyond; it should reach 0.1 at step 1,200, and stay there."),
    (lambda step: max(0.1, 1.0 - falling(step) / 1000),
     "it falls by 1 in 1,000 steps, and reaches 0.1 a hundred steps too early: it should fall by "
     "0.9 in all."),
    (lambda step: 1.0 if step < 1200 else 0.1,
     "that is one jump, not a line: `//` drops the fraction, `/` keeps it."),
    (lambda step: 1.1 - epsilon(step), "upside down: it starts at 1 and ends at 0.1."),
    (lambda step: 0.1 ** min(falling(step) / 1000, 1.0),
     "the ends are right, but between them it falls by the same *factor* at every step: that is "
     "not a straight line."),
    (lambda step: 0.9 * (1 - min(falling(step) / 1000, 1.0)),
     "it goes from 0.9 to 0; ε goes from 1 to 0.1."),
    (lambda step: 100 * epsilon(step), "that is in percent."),
    (lambda step: epsilon(step) if step < 1000 else 0.1,
     lambda step: epsilon(step) if step <= 1000 else 0.1,
     "it jumps to 0.1 at step 1,000. It falls for 1,000 steps, but from step 200 on: it should "
     "reach 0.1 at step 1,200."),
    (lambda step: 1.0 - 0.95 * min(falling(step) / 1000, 1.0),
     "it goes to 0.05, as in section 6; here the end is 0.1."),
    (lambda step: 1.0 - 0.95 * min(step / 5000, 1.0),
     "that is `linear` of section 6, unchanged: here the fall begins at step 200, takes 1,000 "
     "steps and ends at 0.1."),
    (lambda step: 0.1 + 0.9 * np.exp(-5e-4 * falling(step)),
     lambda step: 0.1 + 0.9 * np.exp(-5e-4 * step),
     lambda step: 0.05 + 0.95 * np.exp(-5e-4 * step),
     "that is the exponential schedule of section 6; here ε falls along a straight line."),
    (lambda step: epsilon(step + 1),
     "it begins to fall one step too early: at step 200 it is still 1."),
    (lambda step: epsilon(step - 1),
     "it begins to fall one step too late: at step 201 it is below 1."),
], asked_twice=(
    [(step,) for step in range(1201)],
    "the same step returns a different answer the second time: it depends on earlier calls. "
    "ε is a function of the step alone.",
),
   otherwise=what_it_is_at)  # fmt: skip


# 02.3: the TD errors of a minibatch ---------------------------------------------------------------


def chosen_q(q_values: Tensor, actions: Tensor) -> Tensor:
    return q_values.gather(1, actions[:, None])[:, 0]


def td_errors_of(
    q_values: Tensor, actions: Tensor, targets: Tensor, estimate: Function = chosen_q
) -> Tensor:
    return targets - estimate(q_values, actions)


def from_table(pick: Function) -> Function:
    """A wrong answer: a pick from the table of all targets (columns) minus all estimates (rows)."""
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
    "`q_values[actions]` picks whole rows, as if the actions were numbers of transitions: each "
    "row has an action of its own, which `gather` along axis 1 picks."
)


SQUARE = [[1.0, 5.25, -0.5], [2.0, 0.25, 3.5], [4.0, 3.75, 0.5]]
WIDE = [[0.5, -1.25, 2.75, 0.1], [3.25, 1.5, -0.5, 2.0], [1.1, 0.2, 0.9, 4.6],
        [2.2, 6.5, 1.3, 0.7], [-3.0, -2.2, -1.7, -0.4]]  # fmt: skip
BATCHES = [
    list(map(torch.tensor, batch))
    for batch in (
        (SQUARE, [0, 2, 1], [2.5, 2.0, 7.125]),
        (WIDE, [3, 1, 2, 0, 1], [1.5, -0.25, 4.0, 3.3, -2.9]),
    )
]


SEEDED = torch.Generator().manual_seed(0)


def picks_whole(result: Any, right: Tensor) -> str | None:
    """A hint if it picks whole columns or rows, which shows in the first, square batch."""
    q, actions, targets = BATCHES[0]
    got = numbers(result)
    for picked, sentence in ((q[:, actions], WHOLE_COLUMNS), (q[actions], WHOLE_ROWS)):
        if same(got, targets - picked) or same(got, targets[:, None] - picked):
            return sentence
    return None


function_exercise("02.3", td_errors_of, "q_values actions targets", BATCHES, [
    (lambda *given: -td_errors_of(*given),
     "the sign is the other way round: δ is the target minus the estimate."),
    (lambda *given: td_errors_of(*given).abs(), "TD errors keep their sign: no absolute value."),
    (lambda *given: td_errors_of(*given) ** 2,
     "those are the squares; return the TD errors themselves."),
    (lambda *given: td_errors_of(*given) ** 2 / 2,
     "those are the losses; return the TD errors themselves."),
    (lambda *given: td_errors_of(*given).clamp(-1, 1), "nothing is clipped here."),
    (lambda q, actions, targets: targets,
     "the estimate is missing: subtract the Q of the action that was taken."),
    (lambda q, actions, targets: chosen_q(q, actions),
     "that is the estimate; the TD error is the target minus the estimate."),
    (dict(estimate=lambda q, actions: q.max(dim=1).values),
     "you take the best action's Q; the estimate is that of the action that was taken."),
    (dict(estimate=lambda q, actions: q.mean(dim=1)),
     "you take the mean Q; the estimate is that of the action that was taken."),
    (dict(estimate=lambda q, actions: q.sum(dim=1)),
     "you add up all Q-values; the estimate is that of the action that was taken."),
    (dict(estimate=lambda q, actions: q[:, 0]),
     "you take the first action's Q; the estimate is that of the action that was taken."),
    (dict(estimate=lambda q, actions: actions),
     "you subtract the action's number; the estimate is its Q."),
    (dict(estimate=lambda q, actions: q.gather(0, actions[None])[0]),
     lambda q, actions, targets: targets - q.gather(0, (actions % len(q))[:, None])[:, 0],
     "`gather` has run along the wrong axis: actions are axis 1."),
    (dict(estimate=lambda q, actions: torch.where(actions == 0, q[:, 0], q[:, 1])),
     "that is right for two actions; there may be more."),
    (from_table(lambda table: table[:, 0]), TABLE.format("a column")),
    (from_table(lambda table: table[0]), TABLE.format("a row")),
    (from_table(lambda table: table.mean(0)), from_table(lambda table: table.mean(1)),
     TABLE.format("the means")),
    (from_table(lambda table: table.sum(0)), from_table(lambda table: table.sum(1)),
     TABLE.format("the sums")),
], larger=[(torch.randn(64, 6, generator=SEEDED), torch.arange(64) % 6, torch.arange(64.0))],
   trained=["q_values"], forms=picks_whole)  # fmt: skip


# 02.4: what is lost where the limit counts as an end ----------------------------------------------


def too_low(
    step: int, limit: int, discount: float, left: Function = lambda step, limit: limit - step
) -> float:
    return discount ** left(step, limit) / (1 - discount)


def rewards_before(step: int, limit: int, discount: float) -> float:
    return sum(discount**k for k in range(limit - step))


function_exercise("02.4", too_low, "step limit discount", [
    (0, 50, 0.98), (10, 50, 0.98), (49, 50, 0.98), (10, 30, 0.98), (10, 50, 0.9), (0, 1, 0.9),
    (3, 5, 0.5),
], [
    (dict(left=lambda step, limit: limit - step - 1),
     "off by one, too large: at step 0 all `limit` rewards still come before the limit."),
    (dict(left=lambda step, limit: limit - step + 1),
     "off by one, too small: at the last step, only one reward comes before the limit."),
    (lambda step, limit, discount: sum(discount**k for k in range(limit - step, limit + 200)),
     lambda step, limit, discount: sum(discount**k for k in range(limit - step, 1_000)),
     "nearly: what comes after the limit never ends. Find the formula for its sum."),
    (dict(left=lambda step, limit: limit),
     "that is right for step 0 alone; from a later step, the limit is nearer."),
    (dict(left=lambda step, limit: step),
     "that is discounted by the steps that have passed; count those that are still to come."),
    (dict(left=lambda step, limit: 0),
     "that is the value if the pole never falls; by how much does the critic stay below it?"),
    (rewards_before, "that is what the critic says; by how much is it too low?"),
    (lambda *given: -too_low(*given),
     "the sign: by how much it is too *low* is a positive number."),
    (lambda step, limit, discount: limit - step,
     "those are the rewards before the limit, which the critic does count. What comes after?"),
    (lambda step, limit, discount: 1 / (1 - discount) - (limit - step),
     lambda step, limit, discount: max(0.0, 1 / (1 - discount) - (limit - step)),
     "the rewards before the limit are discounted, too: they add up to less than their number."),
    (lambda step, limit, discount: discount ** (limit - step),
     "that is the share of the value that is missing; multiply it by the value, 1/(1 − γ)."),
    (lambda step, limit, discount: limit,
     "the critic knows no steps beyond the limit; what would they have been worth?"),
    (lambda *given: rewards_before(*given) - too_low(*given),
     lambda *given: too_low(*given) - rewards_before(*given),
     "you compare what comes before the limit with what comes after it; the loss is the latter."),
], larger=[(120, 500, 0.99), (0, 1_000, 0.999), (999, 1_000, 0.999)])  # fmt: skip


# 02.5: what is overwritten before it was ever replayed --------------------------------------------


def never_replayed(
    capacity: int,
    batch_size: int,
    every: int,
    missed: Function = lambda capacity: 1 - 1 / capacity,
    draws: Function = lambda capacity, batch_size, every: batch_size * capacity / every,
) -> float:
    return missed(capacity) ** draws(capacity, batch_size, every)


function_exercise("02.5", never_replayed, "capacity batch_size every", [
    (10, 2, 1), (10, 4, 1), (10, 2, 2), (10, 2, 5), (20, 2, 1), (40, 3, 8), (6, 32, 2), (8, 1, 4),
    (1_000, 4, 10),
], [
    (lambda n, b, e: np.exp(-b / e),
     "nearly: that is the limit of a large memory. In a small one it is (1 − 1/N)^N, not 1/e."),
    (lambda n, b, e: 1 - never_replayed(n, b, e), lambda n, b, e: 1 - np.exp(-b / e),
     "that is the chance of being replayed at least once; return that of never being replayed."),
    (lambda n, b, e: 100 * never_replayed(n, b, e), "that is in percent."),
    (lambda n, b, e: b / e,
     "that is how often it is replayed on average. The mean alone does not say how likely 0 is."),
    (lambda n, b, e: 1 - b / e, lambda n, b, e: max(0.0, 1 - b / e),
     "chances of several draws do not add up, since one transition may be drawn twice: multiply "
     "the chances of being missed."),
    (lambda n, b, e: (1 - b / n) ** (n / e), lambda n, b, e: max(0.0, 1 - b / n) ** (n / e),
     "a minibatch may hold a transition twice: each of its draws misses it with probability "
     "1 − 1/N, whatever the others draw."),
    (dict(draws=lambda n, b, e: b),
     "that is one update alone; how many are there while the transition is stored?"),
    (dict(draws=lambda n, b, e: n / e), dict(draws=lambda n, b, e: n // e),
     "that is one draw per update; a minibatch makes `batch_size` of them."),
    (dict(draws=lambda n, b, e: b * n),
     "updates do not come at every step, but once every `every` steps."),
    (dict(draws=lambda n, b, e: b * n * e),
     "an update comes every `every` steps: divide by it."),
    (dict(draws=lambda n, b, e: b / e),
     "those are the draws of a single step; it is stored for `capacity` steps."),
    (dict(draws=lambda n, b, e: n),
     "those are the steps that it stays; how many draws are made during that time?"),
    (lambda n, b, e: (1 / n) ** (b * n / e), dict(missed=lambda n: 1 / n),
     "1/N is the chance that a draw hits it; it is missed with probability 1 − 1/N."),
    (lambda n, b, e: 1 / n, lambda n, b, e: b / n, lambda n, b, e: 1 - 1 / n,
     lambda n, b, e: 1 - b / n, "that is for a single draw or minibatch; it is stored for many."),
    (dict(draws=lambda n, b, e: b * (n / e - 1)), dict(draws=lambda n, b, e: b * (n / e + 1)),
     dict(draws=lambda n, b, e: b * (n - 1) / e), dict(draws=lambda n, b, e: b * (n + 1) / e),
     "off by one: in `capacity` steps there are capacity / every updates."),
], larger=[(10_000, 32, 16), (1_000_000, 32, 8)])  # fmt: skip
