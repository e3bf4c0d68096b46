"""Notebook 04: double, dueling, soft targets, n steps, paired runs."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from per_tutorial.notebook.checking import checks
from per_tutorial.notebook.checking.answers import Case, cases_of, shown
from per_tutorial.notebook.checking.comparing import Function, compare
from per_tutorial.notebook.checking.tensors import check_gradient, tensors

Array = NDArray[np.float64]

# 04.1: the targets of double DQN, after windows of several steps ------------------------------------


def rated(choosing: Tensor, rating: Tensor) -> Tensor:
    """What one network says of the actions that the other would choose."""
    return rating.gather(1, choosing.argmax(dim=1, keepdim=True))[:, 0]


def double_targets(
    rewards: Tensor, steps: Tensor, ended: Tensor, online: Tensor, target: Tensor, discount: float
) -> Tensor:
    return rewards + discount**steps * ~ended * rated(online, target)


def with_values(
    values: Function, future: Function = torch.logical_not, factor: Function = pow
) -> Function:
    """`double_targets` with other values of the next states, given (online, target).

    What has a future, given what has ended, and the factor, given γ and the steps, may differ too.
    """

    def wrong(rewards, steps, ended, online, target, discount):
        return rewards + factor(discount, steps) * future(ended) * values(online, target)

    return wrong


def with_factor(factor: Function) -> Function:
    return with_values(rated, factor=factor)


PLAIN_DQN = (
    "that is plain DQN, the largest Q of the target network: let the online network choose the "
    "action."
)
ONE_NETWORK = "the online network both chooses and rates; let the target network rate its choice."
SMALLER = (
    "the smaller of two estimates is another remedy; here one network chooses, the other rates."
)
SWAPPED = "the roles are swapped: you choose by the target network and rate by the online one."

DOUBLE_MISTAKES = [
    (with_values(rated, torch.ones_like),
     "after termination nothing follows: there the target is the rewards alone."),
    (with_values(rated, lambda ended: ended), "upside down: what did *not* terminate has a future."),
    (lambda r, n, end, o, t, g: double_targets(r, n, end, o, t, g) * ~end,
     "termination cuts off what follows, not the rewards of the window itself."),
    (with_factor(lambda g, n: 1.0), "the future is not discounted."),
    (with_factor(lambda g, n: g),
     "γ is the discount of one step; the value lies `steps` steps ahead, so it is discounted by "
     "γ to the power of `steps`."),
    (with_factor(lambda g, n: g * n), "each step multiplies by γ: that is a power of γ, not a multiple."),
    (with_factor(lambda g, n: g ** n.max()),
     "the windows differ in length: `steps` holds a number for each of them."),
    *((with_factor(lambda g, n, off=off: g ** (n + off)),
       "off by one: after a window of k rewards, the value is discounted by γᵏ.")
      for off in (-1, 1)),
    *((wrong, "the rewards of the window are discounted already; only the value after it is left.")
      for wrong in (lambda r, n, end, o, t, g: g**n * double_targets(r, n, end, o, t, 1.0),
                    lambda *given: given[-1] * double_targets(*given))),
    (lambda r, n, end, o, t, g: double_targets(0 * r, n, end, o, t, g), "the rewards are missing."),
    (lambda r, n, end, o, t, g: r, "the future is missing."),
    *((with_values(values, future), sentence)
      for values, sentence in (
          (lambda o, t: t.max(dim=1).values, PLAIN_DQN),
          (lambda o, t: o.max(dim=1).values, ONE_NETWORK),
          (lambda o, t: rated(t, o), SWAPPED),
          (lambda o, t: torch.minimum(o, t).max(dim=1).values, SMALLER),
          (lambda o, t: torch.minimum(o.max(dim=1).values, t.max(dim=1).values), SMALLER),
          (lambda o, t: (o + t).max(dim=1).values / 2,
           "the mean of both networks is not double DQN: one chooses, the other rates."),
          (lambda o, t: o.argmax(dim=1),
           "argmax says *which* action is chosen; look up what the target network says of it."),
          (lambda o, t: t.mean(dim=1),
           "that is the mean over the actions; the online network chooses one of them."),
          (lambda o, t: t.gather(0, o.argmax(dim=1)[None])[0],
           "`gather` has run along the wrong axis: actions are axis 1."),
          (lambda o, t: t.gather(1, o.argmax(dim=0)[:, None])[:, 0],
           "`argmax` has run over the minibatch: take it over the actions, `dim=1`."),
      ) for future in (torch.logical_not, torch.ones_like)),
]  # fmt: skip


@checks("04.1")
def check_double(answer: object) -> str | None:
    # First as many transitions as actions, where `gather` along the wrong axis goes unnoticed.
    batches = [
        ([1.5, 0.25, -2.0], [3, 2, 1], [False, True, False],
         [[-1.0, -5, -2], [0.5, 2.5, 4.5], [9, 8, 1]], [[-3.0, -4, -7], [6.5, 5, 1.5], [-8, 3, 2]]),
        ([1.0, 0.0, -1.0, 0.5], [2, 4, 4, 1], [False, False, True, False],
         [[1.0, 5, 2], [4, 0, 3], [0, 1, 6], [2, 3, 1]],
         [[3.0, 4, 7], [6, 5, 2], [8, 1, 2], [1, 2, 9]]),
    ]  # fmt: skip
    rows = [(*map(torch.tensor, batch), discount) for batch in batches for discount in (0.9, 0.5)]
    cases = cases_of("rewards steps terminated next_q_online next_q_target discount", rows)
    return compare(answer, double_targets, cases, DOUBLE_MISTAKES, give=tensors())


# 04.2: dueling, where some actions are illegal -----------------------------------------------------


def legal_mean(advantages: Tensor, legal: Tensor) -> Tensor:
    return (advantages * legal).sum(dim=1, keepdim=True) / legal.sum(dim=1, keepdim=True)


def dueling_q(value: Tensor, advantages: Tensor, legal: Tensor) -> Tensor:
    return value + advantages - legal_mean(advantages, legal)


def largest_legal(advantages: Tensor, legal: Tensor) -> Tensor:
    return advantages.masked_fill(~legal, float("-inf")).amax(dim=1, keepdim=True)


EQUATION_8 = (
    "that is the other form, equation 8 of Wang et al.: it subtracts the largest advantage. "
    "Here it is the mean, equation 9."
)
WHOLE_BATCH = (
    "you subtract the mean of the whole minibatch, so Q of one state depends on which others "
    "were drawn: take the mean over the actions alone."
)

DUELING_MISTAKES = [
    (lambda V, A, ok: V + A, "nothing is subtracted: V could be anything, since A can make up for it."),
    (lambda V, A, ok: V + A - A.mean(dim=1, keepdim=True),
     "you subtract the mean over all actions; those that are illegal in a state have no part in it."),
    (lambda V, A, ok: V + A - (A * ok).mean(dim=1, keepdim=True),
     "divide by the number of *legal* actions of the state, `legal.sum(...)`."),
    (lambda V, A, ok: dueling_q(V, A, ~ok), "upside down: `legal` is True where an action counts."),
    (lambda V, A, ok: V + A - A.amax(dim=1, keepdim=True), EQUATION_8),
    (lambda V, A, ok: V + A - largest_legal(A, ok), EQUATION_8),
    (lambda V, A, ok: V + A - A.mean(), WHOLE_BATCH),
    (lambda V, A, ok: V + A - A[ok].mean(), WHOLE_BATCH),
    (lambda V, A, ok: V + A - A.mean(dim=0),
     "you subtract the mean over the minibatch; take it over the actions, the last axis."),
    *((lambda V, A, ok, mean=mean: V + A - mean(A, ok),
       "the mean of each row is subtracted from a column: keep its axis (`keepdim=True`).")
      for mean in (lambda A, ok: legal_mean(A, ok)[:, 0], lambda A, ok: A.mean(dim=1))),
    *((lambda V, A, ok, mean=mean: V + A - mean(A, ok),
       "each state has legal actions of its own: sum and count over the actions, `dim=1`.")
      for mean in (lambda A, ok: (A * ok).sum(dim=1, keepdim=True) / ok.sum(),
                   lambda A, ok: (A * ok).sum(dim=0) / ok.sum(dim=0),
                   lambda A, ok: (A * ok).sum(dim=0, keepdim=True) / ok.sum(dim=1, keepdim=True))),
    (lambda V, A, ok: dueling_q(V[:, 0], A, ok), "each V is added to a column: leave it (batch, 1)."),
    (lambda V, A, ok: V + A + legal_mean(A, ok), "the mean is subtracted, not added."),
    (lambda V, A, ok: V + A - (A * ok).sum(dim=1, keepdim=True),
     "that is the sum of the advantages, not their mean."),
    *((lambda V, A, ok, fill=fill: dueling_q(V, A, ok).masked_fill(~ok, fill),
       "illegal actions keep their Q; only the mean leaves them out.")
      for fill in (0.0, float("-inf"), -1e9, -1e8, torch.finfo().min)),
    (lambda V, A, ok: V + A * ok - legal_mean(A, ok),
     "illegal actions keep their advantage; only the mean leaves them out."),
    (lambda V, A, ok: dueling_q(0 * V, A, ok), "where is V?"),
    (lambda V, A, ok: A, "where is V? And the mean advantage is subtracted."),
    (lambda V, A, ok: V - dueling_q(0 * V, A, ok),
     "the advantage is added, and its mean is subtracted: yours is the other way round."),
]  # fmt: skip


@checks("04.2")
def check_dueling(answer: object) -> str | None:
    # First as many transitions as actions: a mean along the wrong axis broadcasts without an error.
    batches = [
        ([1.0, -2.0, 5.0], [[1.0, 2.0, 6.0], [0.0, -4.0, 1.0], [3.0, 3.0, 9.0]],
         [[1, 1, 0], [1, 0, 1], [0, 1, 1]]),
        ([0.5, -1.5], [[0.25, -3.0, 1.0, 7.0], [2.0, 0.5, -0.5, 4.5]], [[1, 0, 0, 1], [1, 1, 0, 1]]),
        ([2.0, 0.25], [[4.0, -1.0, 0.5], [1.5, 2.5, -7.0]], [[1, 1, 1], [1, 1, 1]]),
    ]  # fmt: skip
    rows = [
        (torch.tensor(V)[:, None], torch.tensor(A), torch.tensor(legal).bool())
        for V, A, legal in batches
    ]
    cases = cases_of("value advantages legal", rows)
    trained = ["value", "advantages"]
    mistake = compare(answer, dueling_q, cases, DUELING_MISTAKES, give=tensors(trained))
    if mistake is None:
        check_gradient(answer, dueling_q, cases[1], trained)
    return mistake


# 04.3: the half-life of a soft target ------------------------------------------------------------


def half_life(tau: float) -> float:
    return math.log(0.5) / math.log(1 - tau)


def series(terms: int) -> Function:
    """`half_life` with −log(1 − τ) = τ + τ²/2 + τ³/3 + … cut off."""
    return lambda tau: math.log(2) / sum(tau**k / k for k in range(1, terms + 1))


HALF_LIFE_MISTAKES = [
    *((lambda tau, rounded=rounded: rounded(half_life(tau)),
       "right but for the rounding: leave the fraction.")
      for rounded in (np.ceil, np.floor, lambda n: np.floor(n) + 1,
                      *(lambda n, digits=digits: round(n, digits) for digits in range(5)))),
    (lambda tau: 0.5 / tau,
     "each update takes the share τ of what is *left* of the difference, so it does not shrink "
     "by the same amount each time."),
    (lambda tau: 1 / tau, "after 1/τ updates about a third is left; one half comes earlier."),
    (lambda tau: math.log(2) / tau,
     "nearly: that is the limit of small τ, where 1 − τ is as good as exp(−τ)."),
    *((series(terms), "nearly: a series that is cut off is right for small τ alone; log is exact.")
      for terms in range(2, 30)),
    (lambda tau: -half_life(tau), "both logarithms are negative, so their ratio is not."),
    (lambda tau: 1 / half_life(tau), "upside down."),
    (lambda tau: math.log(0.5) / math.log(tau), "one update leaves 1 − τ of the distance, not τ."),
    (lambda tau: math.log(0.5) / math.log(1 + tau),
     "the difference shrinks: one update leaves 1 − τ of it, not 1 + τ."),
    *((wrong, "(1 − τ)ⁿ is what is left after n updates: find the n for which that is one half.")
      for wrong in (lambda tau: (1 - tau) ** 0.5, lambda tau: 1 - 0.5**tau)),
    (lambda tau: math.log10(0.5) / math.log(1 - tau), "both logarithms need the same base."),
    (lambda tau: -1 / math.log(1 - tau),
     "after so many updates 1/e is left; one half comes earlier. (Or was it log₂ in one place and "
     "log in the other? Both need the same base.)"),
]  # fmt: skip


@checks("04.3")
def check_half_life(answer: object) -> str | None:
    def otherwise(case: Case, got: Any) -> str:
        tau, updates = case["tau"], float(got)
        left = 100 * (1 - tau) ** updates
        return f"with τ = {tau:g}, {left:.4g} % is left after {shown(updates)} updates."

    cases = cases_of("tau", [(tau,) for tau in (0.02, 0.2, 0.01, 0.45, 0.6, 0.75, 0.95)])
    return compare(answer, half_life, cases, HALF_LIFE_MISTAKES, otherwise=otherwise)


# 04.4: the target of n steps ---------------------------------------------------------------------


def ahead(rewards: list[float], discount: float) -> float:
    return sum(discount**k * reward for k, reward in enumerate(rewards))


def n_step_target(
    rewards: list[float], terminated: bool, next_value: float, discount: float
) -> float:
    value = 0.0 if terminated else next_value
    return ahead(rewards, discount) + discount ** len(rewards) * value


def with_power(power: Function) -> Function:
    """`n_step_target` with γ to the `power(k)` in front of the value, for k rewards."""

    def wrong(rewards, terminated, next_value, discount):
        factor = (not terminated) * discount ** power(len(rewards))
        return ahead(rewards, discount) + factor * next_value

    return wrong


def with_rewards(summed: Function) -> Function:
    """`n_step_target` with rewards added up by `summed(rewards, discount)`."""

    def wrong(rewards, terminated, next_value, discount):
        value = 0.0 if terminated else discount ** len(rewards) * next_value
        return summed(rewards, discount) + value

    return wrong


N_STEP_MISTAKES = [
    (lambda r, end, v, g: ahead(r, g) + g ** len(r) * (~end) * v,
     "`~` is meant for arrays. Of Python's own bools it makes numbers: ~False is −1, and ~True "
     "is −2. Write `not terminated`."),
    (lambda r, end, v, g: n_step_target(r, False, v, g),
     "after termination nothing follows: the rewards are all there is."),
    (lambda r, end, v, g: n_step_target(r, not end, v, g),
     "upside down: what did *not* terminate has a future."),
    (lambda r, end, v, g: ahead(r, g), "the value of what comes after the window is missing."),
    (with_power(lambda k: 0), "the value lies k steps ahead: it is discounted by γᵏ."),
    (with_power(lambda k: 1), "γ is the discount of one step; the value lies k steps ahead."),
    *((with_power(power),
       "off by one: the first reward has γ⁰, the last of k has γᵏ⁻¹, and the value after them γᵏ.")
      for power in (lambda k: k - 1, lambda k: k + 1)),
    *((with_power(lambda k, n=n: n),
       f"you discount the value by γ^{n} always: the exponent is the number of rewards.")
      for n in (2, 3, 4, 5)),
    (with_rewards(lambda r, g: sum(r)),
     "the rewards are not discounted: each comes a step later than the one before."),
    (lambda r, end, v, g: n_step_target(r, end, v, 1.0), "nothing is discounted."),
    *((wrong, "the first reward is not discounted: it comes with the step itself.")
      for wrong in (with_rewards(lambda r, g: g * ahead(r, g)),
                    lambda r, end, v, g: g * n_step_target(r, end, v, g))),
    (with_rewards(lambda r, g: ahead(r[::-1], g)), "back to front: the *first* counts in full."),
    (with_rewards(lambda r, g: r[0]),
     "only the first reward is counted; the others come later, and are discounted."),
    (with_rewards(lambda r, g: 0.0), "the rewards are missing."),
    *((lambda r, end, v, g, cut=cut: n_step_target(r, end, cut(v), g),
       "the value after the window may be negative: it counts as it is.")
      for cut in (abs, lambda v: max(v, 0.0))),
    (with_rewards(lambda r, g: ahead(r[:-1], g)), "the last reward is missing."),
    (with_rewards(lambda r, g: ahead(r[:3], g)),
     "you count three rewards at most; a window holds as many as `rewards` is long."),
    (lambda r, end, v, g: 0.0 if end else n_step_target(r, end, v, g),
     "termination cuts off what follows, not the rewards."),
]  # fmt: skip


@checks("04.4")
def check_n_steps(answer: object) -> str | None:
    rows = [([1.0, 3.0, 2.0], False, 10.0, 0.9), ([1.0, 3.0, 2.0], True, 10.0, 0.9),
            ([1.0, 3.0, 2.0], False, 10.0, 0.5), ([1.0, 3.0, 2.0], False, -4.0, 0.9),
            ([1.0, 3.0, 2.0, 0.0, 5.0], False, 10.0, 0.9), ([1.0, 3.0], True, 10.0, 0.8),
            ([4.0], False, 10.0, 0.9), ([0.5, -2.0], False, 6.0, 0.95),
            ([0.5, -2.0, 1.5, 0.25], True, -3.0, 0.7),
            ([0.5, -2.0, 1.5], False, -3.0, 0.7)]  # fmt: skip
    cases = cases_of("rewards terminated next_value discount", rows)
    return compare(answer, n_step_target, cases, N_STEP_MISTAKES)


# 04.5: the standard error of a paired difference -------------------------------------------------


def standard_error(a: Array, b: Array) -> float:
    return float((a - b).std(ddof=1) / len(a) ** 0.5)


ERROR_MISTAKES = [
    *((lambda a, b, ddof=ddof: ((a.var(ddof=ddof) + b.var(ddof=ddof)) / len(a)) ** 0.5,
       "you add the variances of the arms, as if the runs were no pairs: take the differences.")
      for ddof in (0, 1)),
    (lambda a, b: (a - b).std() / len(a) ** 0.5,
     "divided by n, the variance is too small on average, for the mean was fitted to the same "
     "runs: divide by n − 1 (`ddof=1`)."),
    (lambda a, b: (a - b).std(ddof=1) / (len(a) - 1) ** 0.5,
     "n − 1 is for the variance (`ddof=1`); the mean of n pairs scatters less by √n."),
    *((lambda a, b, ddof=ddof: (a - b).std(ddof=ddof),
       "that is how far single pairs scatter; the mean of n pairs scatters less, by √n.")
      for ddof in (0, 1)),
    (lambda a, b: (a - b).std(ddof=1) / len(a), "the mean of n pairs scatters less by √n, not n."),
    (lambda a, b: standard_error(a, b) ** 2, "that is the mean's variance; take the square root."),
    (lambda a, b: (a - b).var(ddof=1),
     "that is the variance of one pair; take the square root, and divide it by √n."),
    *((lambda a, b, sign=sign: sign * (a - b).mean(), "that is the mean difference; how far off may it be?")
      for sign in (1, -1)),
    *((lambda a, b, arm=arm: standard_error((a, b)[arm], 0 * a),
       "that is the error of one arm alone: take the standard deviation of the differences.")
      for arm in (0, 1)),
    *((lambda a, b, std=std: std(np.array([a, b])) / len(a) ** 0.5,
       "the standard deviation of both arms together is not that of the differences.")
      for std in (np.std, lambda c: c.std(ddof=1), lambda c: c.var(axis=1, ddof=1).mean() ** 0.5)),
    *((lambda a, b, n=n: (a - b).std(ddof=1) / n(a) ** 0.5, "n is the number of pairs, len(a).")
      for n in (lambda a: 2 * len(a), lambda a: 2 * len(a) - 1)),
    (lambda a, b: standard_error(np.abs(a - b), 0 * b), "leave the differences their signs."),
    *((lambda a, b, z=z: z * standard_error(a, b),
       "that is half the width of a 95 % interval; return the standard error alone.")
      for z in (1.96, 2.0)),
    *((lambda a, b, sign=sign: standard_error(a, 0 * b) + sign * standard_error(b, 0 * b),
       f"the error of a difference is not the {word} of two errors.")
      for sign, word in ((-1, "difference"), (1, "sum"))),
    (lambda a, b: standard_error(a, -b), "that is the error of a + b; take the differences."),
    (lambda a, b: standard_error(np.sort(a), np.sort(b)),
     "you sort the arms on their own, and the pairs fall apart."),
    *((lambda a, b, size=size: (a - b).std(ddof=1) / size**0.5,
       f"you divide by √{size} always: n is the number of pairs, len(a).")
      for size in (5, 8, 10, 12, 30)),
]  # fmt: skip


@checks("04.5")
def check_standard_error(answer: object) -> str | None:
    def otherwise(case: Case, got: Any) -> str | None:
        resampled = (case["a"] - case["b"]).std() / len(case["a"]) ** 0.5
        if abs(float(got) / resampled - 1) < 0.03:
            return "nearly: a bootstrap is random, and divides by n (`ddof=0`): use the formula."
        return None

    pairs = [
        ([182.0, 95.0, 140.0, 200.0, 61.0, 168.0, 120.0, 188.0],
         [160.0, 90.0, 131.0, 171.0, 66.0, 150.0, 104.0, 179.0]),
        ([3.5, -1.25, 0.75, 6.0, 2.25], [1.5, -0.5, 2.0, 3.25, 1.0]),
        ([10.0, 40.0, 20.0, 80.0, 60.0, 30.0, 90.0, 15.0, 55.0, 75.0, 25.0, 5.0],
         [12.0, 31.0, 24.0, 69.0, 48.0, 36.0, 70.0, 20.0, 41.0, 80.0, 11.0, 9.0]),
    ]  # fmt: skip
    cases = cases_of("a b", [map(np.array, pair) for pair in pairs])
    return compare(answer, standard_error, cases, ERROR_MISTAKES, otherwise=otherwise)
