"""Notebook 04: double, dueling, soft targets, n steps, paired runs."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from per_tutorial.notebook.checking.answers import Case, shown
from per_tutorial.notebook.checking.declaring import Array, Function, function_exercise

# 04.1: the targets of double DQN, after windows of several steps ----------------------------------


def rated(choosing: Tensor, rating: Tensor) -> Tensor:
    """One network's Q of the actions that the other would choose."""
    return rating.gather(1, choosing.argmax(dim=1, keepdim=True))[:, 0]


def double_targets(
    rewards: Tensor,
    steps: Tensor,
    terminated: Tensor,
    online: Tensor,
    target: Tensor,
    discount: float,
    values: Function = rated,
    future: Function = torch.logical_not,
    factor: Function = pow,
) -> Tensor:
    return rewards + factor(discount, steps) * future(terminated) * values(online, target)


def either(values: Function) -> tuple[dict[str, Function], ...]:
    """Other values of the next states, first without and then with those after a termination."""
    return dict(values=values), dict(values=values, future=torch.ones_like)


SEEDED = torch.Generator().manual_seed(0)
# The first has as many transitions as actions: `gather` along the wrong axis raises no error.
WINDOWS = [
    ([1.5, 0.25, -2.0], [3, 2, 1], [False, True, False],
     [[-1.0, -5, -2], [0.5, 2.5, 4.5], [9, 8, 1]], [[-3.0, -4, -7], [6.5, 5, 1.5], [-8, 3, 2]]),
    ([1.0, 0.0, -1.0, 0.5], [2, 4, 4, 1], [False, False, True, False],
     [[1.0, 5, 2], [4, 0, 3], [0, 1, 6], [2, 3, 1]],
     [[3.0, 4, 7], [6, 5, 2], [8, 1, 2], [1, 2, 9]]),
]  # fmt: skip

function_exercise(
    "04.1", double_targets,
    "rewards steps terminated next_q_online next_q_target discount",
    [(*map(torch.tensor, batch), discount) for batch in WINDOWS for discount in (0.9, 0.5)], [
    (dict(future=torch.ones_like),
     "after termination nothing follows: there the target is the rewards alone."),
    (dict(future=lambda ended: ended), "upside down: what did *not* terminate has a future."),
    (lambda r, n, end, o, t, g: double_targets(r, n, end, o, t, g) * ~end,
     "termination cuts off what follows, not the rewards of the window itself."),
    (dict(factor=lambda g, n: 1.0), "the future is not discounted."),
    (dict(factor=lambda g, n: g),
     "γ is the discount of one step; the value comes `steps` steps later, so it is discounted by "
     "γ to the power of `steps`."),
    (dict(factor=lambda g, n: g * n),
     "each step multiplies by γ: that is a power of γ, not a multiple."),
    (dict(factor=lambda g, n: g ** n.max()),
     "the windows differ in length: `steps` holds a number for each of them."),
    (dict(factor=lambda g, n: g ** (n - 1)), dict(factor=lambda g, n: g ** (n + 1)),
     "off by one: after a window of k rewards, the value is discounted by γᵏ."),
    (lambda r, n, end, o, t, g: g**n * double_targets(r, n, end, o, t, 1.0),
     lambda *given: given[-1] * double_targets(*given),
     "the rewards of the window are discounted already; only the value after it is left."),
    (lambda r, n, end, o, t, g: double_targets(0 * r, n, end, o, t, g), "the rewards are missing."),
    (lambda r, n, end, o, t, g: r, "the future is missing."),
    (*either(lambda o, t: t.amax(dim=1)),
     "that is plain DQN, the largest Q of the target network: let the online network choose the "
     "action."),
    (*either(lambda o, t: o.amax(dim=1)),
     "the online network both chooses and rates; let the target network rate its choice."),
    (*either(lambda o, t: rated(t, o)),
     "the roles are swapped: you choose by the target network and rate by the online one."),
    (*either(lambda o, t: torch.minimum(o, t).amax(dim=1)),
     *either(lambda o, t: torch.minimum(o.amax(dim=1), t.amax(dim=1))),
     "the smaller of two estimates is another remedy; here one network chooses, the other rates."),
    (*either(lambda o, t: (o + t).amax(dim=1) / 2),
     "the mean of both networks is not double DQN: one chooses, the other rates."),
    (*either(lambda o, t: o.argmax(dim=1)),
     "argmax says *which* action is chosen; look up what the target network says of it."),
    (*either(lambda o, t: t.mean(dim=1)),
     "that is the mean over the actions; the online network chooses one of them."),
    (*either(lambda o, t: rated(-o, t)),
     "argmin takes the worst action: the online network chooses the one with its *largest* Q."),
    (*either(lambda o, t: -rated(o, t)), "the value after the window is added, not subtracted."),
    (lambda r, n, end, o, t, g: double_targets(g * r, n, end, o, t, g),
     "the rewards of the window are discounted already: take them as they are."),
    (*(lambda *given, digits=digits: double_targets(*given).round(decimals=digits)
       for digits in range(1, 5)),
     "right but for the rounding: do not round."),
    (*either(lambda o, t: t.gather(0, o.argmax(dim=1)[None])[0]),
     "`gather` has run along the wrong axis: actions are axis 1."),
    (*either(lambda o, t: t.gather(1, o.argmax(dim=0)[:, None])[:, 0]),
     *either(lambda o, t: t.gather(1, o.argmax(dim=0, keepdim=True))[:, 0]),
     *either(lambda o, t: t.gather(0, o.argmax(dim=0, keepdim=True))[0, : len(t)]),
     "`argmax` has run over the minibatch: take it over the actions, `dim=1`."),
], larger=[(torch.linspace(-1.0, 2.0, 64), torch.arange(64) % 5 + 1, torch.arange(64) % 7 == 3,
            torch.randn(64, 6, generator=SEEDED), torch.randn(64, 6, generator=SEEDED), 0.99)],
)  # fmt: skip

# 04.2: dueling, where some actions are illegal ----------------------------------------------------


def legal_mean(advantages: Tensor, legal: Tensor) -> Tensor:
    return (advantages * legal).sum(dim=1, keepdim=True) / legal.sum(dim=1, keepdim=True)


def dueling_q(
    value: Tensor, advantages: Tensor, legal: Tensor, mean: Function = legal_mean
) -> Tensor:
    return value + advantages - mean(advantages, legal)


def largest_legal(advantages: Tensor, legal: Tensor) -> Tensor:
    return advantages.masked_fill(~legal, float("-inf")).amax(dim=1, keepdim=True)


# The first has as many transitions as actions: a mean along the wrong axis raises no error.
STATES = [
    ([1.0, -2.0, 5.0], [[1.0, 2.0, 6.0], [0.0, -4.0, 1.0], [3.0, 3.0, 9.0]],
     [[1, 1, 0], [1, 0, 1], [0, 1, 1]]),
    ([0.5, -1.5], [[0.25, -3.0, 1.0, 7.0], [2.0, 0.5, -0.5, 4.5]], [[1, 0, 0, 1], [1, 1, 0, 1]]),
    ([2.0, 0.25], [[4.0, -1.0, 0.5], [1.5, 2.5, -7.0]], [[1, 1, 1], [1, 1, 1]]),
]  # fmt: skip

function_exercise(
    "04.2", dueling_q, "value advantages legal",
    [(torch.tensor(V)[:, None], torch.tensor(A), torch.tensor(ok).bool()) for V, A, ok in STATES], [
    (lambda V, A, ok: V + A,
     "nothing is subtracted: V could be anything, since A can make up for it."),
    (dict(mean=lambda A, ok: A.mean(dim=1, keepdim=True)),
     "you subtract the mean over all actions: leave out those that are illegal in the state."),
    (dict(mean=lambda A, ok: (A * ok).mean(dim=1, keepdim=True)),
     "divide by the number of *legal* actions of the state, `legal.sum(...)`."),
    (dict(mean=lambda A, ok: A.sum(dim=1, keepdim=True) / ok.sum(dim=1, keepdim=True)),
     "you add up the advantages of all actions, and divide by the number of the legal ones: add up "
     "only those."),
    (lambda V, A, ok: dueling_q(V, A, ~ok),
     dict(mean=lambda A, ok: legal_mean(A, ~ok).nan_to_num()),
     dict(mean=lambda A, ok: (A * ~ok).sum(dim=1, keepdim=True) / ok.sum(dim=1, keepdim=True)),
     dict(mean=lambda A, ok: (A * ~ok).mean(dim=1, keepdim=True)),
     dict(mean=lambda A, ok: (A * ok).sum(dim=1, keepdim=True) / (~ok).sum(dim=1, keepdim=True)),
     dict(mean=lambda A, ok: A[~ok].mean()),
     "upside down: `legal` is True where an action counts."),
    *((dict(mean=lambda A, ok, n=n, least=least: (A * ok).sum(dim=1, keepdim=True)
            / (ok.sum(dim=1, keepdim=True) + n).clamp(min=least)),
       "a mean divides by the number of legal actions itself, not by one more or one less.")
      for n, least in ((-1, 0), (-1, 1), (1, 1))),
    (dict(mean=lambda A, ok: A.amax(dim=1, keepdim=True)), dict(mean=largest_legal),
     "that is the other form, equation 8 of Wang et al.: it subtracts the largest advantage. "
     "Here it is the mean, equation 9."),
    (dict(mean=lambda A, ok: A.mean()), dict(mean=lambda A, ok: A[ok].mean()),
     dict(mean=lambda A, ok: (A * ok).mean()), dict(mean=lambda A, ok: legal_mean(A, ok).mean()),
     "you subtract the mean of the whole minibatch, so Q of one state depends on which others "
     "were drawn: take the mean over the actions alone."),
    (dict(mean=lambda A, ok: A.mean(dim=0)), dict(mean=lambda A, ok: (A * ok).mean(dim=0)),
     "you subtract the mean over the minibatch; take it over the actions, the last axis."),
    (dict(mean=lambda A, ok: legal_mean(A, ok)[:, 0]), dict(mean=lambda A, ok: A.mean(dim=1)),
     "the mean of each row is subtracted from a column: keep its axis (`keepdim=True`)."),
    (dict(mean=lambda A, ok: (A * ok).sum(dim=1, keepdim=True) / ok.sum()),
     dict(mean=lambda A, ok: (A * ok).sum(dim=0) / ok.sum(dim=0)),
     dict(mean=lambda A, ok: (A * ok).sum(dim=0, keepdim=True) / ok.sum(dim=1, keepdim=True)),
     "each state has legal actions of its own: sum and count over the actions, `dim=1`."),
    (lambda V, A, ok: dueling_q(V[:, 0], A, ok),
     "each V is added to a column: leave it (batch, 1)."),
    (lambda V, A, ok: V + A + legal_mean(A, ok), "the mean is subtracted, not added."),
    (dict(mean=lambda A, ok: (A * ok).sum(dim=1, keepdim=True)),
     "that is the sum of the advantages, not their mean."),
    (dict(mean=lambda A, ok: A.median(dim=1, keepdim=True).values),
     "that is the median of the advantages, not their mean."),
    (*(lambda V, A, ok, fill=fill: dueling_q(V, A, ok).masked_fill(~ok, fill)
       for fill in (0.0, float("-inf"), -1e9, -1e8, torch.finfo().min)),
     "illegal actions keep their Q; only the mean leaves them out."),
    (lambda V, A, ok: V + A * ok - legal_mean(A, ok),
     lambda V, A, ok: V + (A - legal_mean(A, ok)) * ok,
     "illegal actions keep their advantage; only the mean leaves them out."),
    (lambda V, A, ok: dueling_q(0 * V, A, ok),
     lambda V, A, ok: A - A.mean(dim=1, keepdim=True), "where is V?"),
    (lambda V, A, ok: A, "where is V? And the mean advantage is subtracted."),
    (lambda V, A, ok: V - dueling_q(0 * V, A, ok),
     "the advantage is added, and its mean is subtracted: yours is the other way round."),
    (lambda V, A, ok: V.mean() + A - legal_mean(A, ok),
     "each state has a V of its own; only the advantages are averaged."),
], larger=[(torch.linspace(-2.0, 5.0, 64)[:, None], torch.randn(64, 7, generator=SEEDED),
            torch.arange(64 * 7).reshape(64, 7) % 3 > 0)],
   trained=["value", "advantages"])  # fmt: skip

# 04.3: the half-life of a soft target -------------------------------------------------------------


def half_life(tau: float) -> float:
    return math.log(0.5) / math.log(1 - tau)


def series(terms: int) -> Function:
    """`half_life` with −log(1 − τ) = τ + τ²/2 + τ³/3 + … cut off."""
    return lambda tau: math.log(2) / sum(tau**k / k for k in range(1, terms + 1))


def what_is_left(case: Case, got: Any, results: Any) -> str:
    tau, updates = case["tau"], float(got)
    left = 100 * (1 - tau) ** updates
    return f"with τ = {tau:g}, {left:.4g} % is left after {shown(updates)} updates."


function_exercise("04.3", half_life, "tau", [
    (tau,) for tau in (0.02, 0.2, 0.01, 0.45, 0.6, 0.75, 0.95)
], [
    (lambda tau: np.floor(half_life(tau)) + 1, "right but for the rounding: do not round."),
    (lambda tau: 0.5 / tau,
     "each update takes the share τ of what is *left* of the difference, so it does not shrink "
     "by the same amount each time."),
    (lambda tau: 1 / tau, "after 1/τ updates about a third is left; one half comes earlier."),
    (lambda tau: math.log(2) / tau,
     "nearly: that is the limit for small τ, where 1 − τ is close to exp(−τ)."),
    (*map(series, range(2, 30)),
     "nearly: a series that is cut off is right for small τ alone; log is exact."),
    (lambda tau: -half_life(tau), "both logarithms are negative, so their ratio is not."),
    (lambda tau: 1 / half_life(tau), "upside down."),
    (lambda tau: math.log(0.5) / math.log(tau), "one update leaves 1 − τ of the distance, not τ."),
    (lambda tau: math.log(0.5) / math.log(1 + tau),
     "the difference shrinks: one update leaves 1 − τ of it, not 1 + τ."),
    (lambda tau: (1 - tau) ** 0.5, lambda tau: 1 - 0.5**tau,
     "(1 − τ)ⁿ is what is left after n updates: find the n for which that is one half."),
    (lambda tau: math.log10(0.5) / math.log(1 - tau),
     lambda tau: math.log(0.5) / math.log10(1 - tau), "both logarithms need the same base."),
    (lambda tau: math.log10(2) / tau,
     "`log10` is to base 10. And even log(2) / τ, to base e, is right for small τ alone."),
    (lambda tau: -1 / math.log(1 - tau),
     "after this many updates 1/e is left; one half comes earlier. (Or was it log₂ in one place "
     "and log in the other? Both need the same base.)"),
], otherwise=what_is_left)  # fmt: skip

# 04.4: the target of n steps ----------------------------------------------------------------------


def ahead(rewards: list[float], discount: float) -> float:
    return sum(discount**k * reward for k, reward in enumerate(rewards))


def n_step_target(
    rewards: list[float],
    terminated: bool,
    next_value: float,
    discount: float,
    summed: Function = ahead,
    power: Function = len,
    future: Function = lambda terminated: not terminated,
) -> float:
    value = discount ** power(rewards) * next_value if future(terminated) else 0.0
    return summed(rewards, discount) + future(terminated) * value


WINDOW = [1.0, 3.0, 2.0]

function_exercise("04.4", n_step_target, "rewards terminated next_value discount", [
    (WINDOW, False, 10.0, 0.9), (WINDOW, True, 10.0, 0.9), (WINDOW, False, 10.0, 0.5),
    (WINDOW, False, -4.0, 0.9), ([*WINDOW, 0.0, 5.0], False, 10.0, 0.9),
    ([1.0, 3.0], True, 10.0, 0.8), ([4.0], False, 10.0, 0.9), ([0.5, -2.0], False, 6.0, 0.95),
    ([0.5, -2.0, 1.5, 0.25], True, -3.0, 0.7), ([0.5, -2.0, 1.5], False, -3.0, 0.7),
], [
    (dict(future=lambda end: ~end),
     "`~` is meant for arrays. It turns Python's own bools into numbers: ~False is −1, and ~True "
     "is −2. Write `not terminated`."),
    (dict(future=lambda end: True),
     "after termination nothing follows: the rewards are all there is."),
    (dict(future=lambda end: end), "upside down: what did *not* terminate has a future."),
    (dict(future=lambda end: False), "the value of what comes after the window is missing."),
    (*(lambda r, end, v, g, n=n: n_step_target(r, end or len(r) < n, v, g) for n in (2, 3, 4, 5)),
     "you take a short window for an end. It may be cut short by a time limit, or because nothing "
     "newer is stored: only `terminated` takes the value away."),
    (*(lambda r, end, v, g, n=n: n_step_target((r + [0.0] * n)[:n], end, v, g)
       for n in (2, 3, 4, 5)),
     *(lambda r, end, v, g, n=n: n_step_target((r + [0.0])[:n], end, v, g, power=lambda r: n)
       for n in (2, 3, 4, 5)),
     "you count on a fixed number of rewards: a window may hold fewer, or more. Add up all of "
     "`rewards`, and take its length as the power of γ."),
    (dict(power=lambda r: 0), "the value comes k steps later: it is discounted by γᵏ."),
    (dict(power=lambda r: 1), "γ is the discount of one step; the value comes k steps later."),
    (dict(power=lambda r: len(r) - 1), dict(power=lambda r: len(r) + 1),
     "off by one: the first reward has γ⁰, the last of k has γᵏ⁻¹, and the value after them γᵏ."),
    *((dict(power=lambda r, n=n: n),
       f"you always discount the value by γ^{n}: the exponent is the number of rewards.")
      for n in (2, 3, 4, 5)),
    (dict(summed=lambda r, g: sum(r)),
     "the rewards are not discounted: each comes a step later than the one before."),
    (lambda r, end, v, g: n_step_target(r, end, v, 1.0), "nothing is discounted."),
    (dict(summed=lambda r, g: g * ahead(r, g)),
     lambda r, end, v, g: g * n_step_target(r, end, v, g),
     "the first reward is not discounted: it comes with the step itself."),
    (dict(summed=lambda r, g: ahead(r[::-1], g)), "back to front: the *first* counts in full."),
    (dict(summed=lambda r, g: r[0]),
     "only the first reward is counted; the others come later, and are discounted."),
    (dict(summed=lambda r, g: 0.0), "the rewards are missing."),
    (lambda r, end, v, g: n_step_target(r, end, abs(v), g),
     lambda r, end, v, g: n_step_target(r, end, max(v, 0.0), g),
     "the value after the window may be negative: it counts as it is."),
    (dict(summed=lambda r, g: ahead(r[:-1], g)), "the last reward is missing."),
    (dict(summed=lambda r, g: ahead(r[:3], g)),
     "you count three rewards at most; `rewards` may hold more."),
    (lambda r, end, v, g: 0.0 if end else n_step_target(r, end, v, g),
     lambda r, end, v, g: n_step_target(r[:-1] if end else r, end, v, g),
     "termination cuts off what follows, not the rewards."),
], larger=[([0.5, -0.25] * 60, False, 7.0, 0.99)])  # fmt: skip

# 04.5: the standard error of a paired difference --------------------------------------------------


def standard_error(
    a: Array,
    b: Array,
    spread: Function = lambda d: d.std(ddof=1),
    root: Function = lambda n: n**0.5,
) -> float:
    return float(spread(a - b) / root(len(a)))


def close_by(case: Case, got: Any, results: Any) -> str | None:
    resampled = (case["a"] - case["b"]).std() / len(case["a"]) ** 0.5
    if abs(float(got) / resampled - 1) < 0.03:
        return "nearly: a bootstrap is random, and divides by n (`ddof=0`): use the formula."
    return None


PAIRS = [
    ([182.0, 95.0, 140.0, 200.0, 61.0, 168.0, 120.0, 188.0],
     [160.0, 90.0, 131.0, 171.0, 66.0, 150.0, 104.0, 179.0]),
    ([3.5, -1.25, 0.75, 6.0, 2.25], [1.5, -0.5, 2.0, 3.25, 1.0]),
    ([10.0, 40.0, 20.0, 80.0, 60.0, 30.0, 90.0, 15.0, 55.0, 75.0, 25.0, 5.0],
     [12.0, 31.0, 24.0, 69.0, 48.0, 36.0, 70.0, 20.0, 41.0, 80.0, 11.0, 9.0]),
]  # fmt: skip

function_exercise("04.5", standard_error, "a b", [map(np.array, pair) for pair in PAIRS], [
    *((lambda a, b, ddof=ddof: ((a.var(ddof=ddof) + b.var(ddof=ddof)) / len(a)) ** 0.5,
       "you add the variances of the arms, as if the runs were not paired: take the differences.")
      for ddof in (0, 1)),
    (dict(spread=np.std),
     "divided by n, the variance is too small on average, since the mean was fitted to the same "
     "runs: divide by n − 1 (`ddof=1`)."),
    (dict(root=lambda n: (n - 1) ** 0.5),
     "n − 1 is for the variance (`ddof=1`); the mean of n pairs scatters less by a factor of √n."),
    (dict(root=lambda n: 1), dict(root=lambda n: 1, spread=np.std),
     "that is how far single pairs scatter; the mean of n pairs scatters less, by a factor of √n."),
    (dict(root=lambda n: n), "the mean of n pairs scatters less by a factor of √n, not n."),
    *((dict(spread=lambda d, ddof=ddof: ((d**2).sum() / (len(d) - ddof)) ** 0.5, root=root),
       "the mean difference is still in it: subtract that before you square, as `std` does.")
      for ddof in (0, 1) for root in (np.sqrt, lambda n: (n - 1) ** 0.5, lambda n: n, lambda n: 1)),
    (lambda a, b: standard_error(a, b) ** 2, "that is the mean's variance; take the square root."),
    (lambda a, b: (a - b).var(ddof=1),
     "that is the variance of one pair; take the square root, and divide it by √n."),
    (lambda a, b: (a - b).mean(), lambda a, b: (b - a).mean(),
     "that is the mean difference; how far off may it be?"),
    (lambda a, b: standard_error(a, 0 * a), lambda a, b: standard_error(b, 0 * a),
     "that is the error of one arm alone: take the standard deviation of the differences."),
    (lambda a, b: np.std([a, b]) / len(a) ** 0.5,
     lambda a, b: np.append(a, b).std(ddof=1) / len(a) ** 0.5,
     lambda a, b: ((a.var(ddof=1) + b.var(ddof=1)) / 2 / len(a)) ** 0.5,
     "the standard deviation of both arms together is not that of the differences."),
    (dict(root=lambda n: (2 * n) ** 0.5), dict(root=lambda n: (2 * n - 1) ** 0.5),
     "n is the number of pairs, len(a)."),
    (lambda a, b: standard_error(np.abs(a - b), 0 * b), "keep the signs of the differences."),
    (lambda a, b: 1.96 * standard_error(a, b), lambda a, b: 2.0 * standard_error(a, b),
     "that is half the width of a 95 % interval; return the standard error alone."),
    *((lambda a, b, sign=sign: standard_error(a, 0 * b) + sign * standard_error(b, 0 * b),
       f"the error of a difference is not the {word} of two errors.")
      for sign, word in ((-1, "difference"), (1, "sum"))),
    (lambda a, b: standard_error(a, -b), "that is the error of a + b; take the differences."),
    (lambda a, b: standard_error(np.sort(a), np.sort(b)),
     "you sort each arm on its own, and the pairs fall apart."),
    *((dict(root=lambda n, size=size: size**0.5),
       f"you always divide by √{size}: n is the number of pairs, len(a).")
      for size in (5, 8, 10, 12, 30)),
], larger=[(np.linspace(0.0, 9.0, 300), np.cos(np.arange(300.0)))], otherwise=close_by)  # fmt: skip
