"""The exercises of notebook 04: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest
import torch
from scipy.stats import sem

from per_tutorial.dqn.losses import td_targets


def rated(choosing, rating):
    return rating.gather(1, choosing.argmax(dim=1, keepdim=True))[:, 0]


def double_targets(rewards, steps, terminated, online, target, discount):
    return rewards + discount**steps * ~terminated * rated(online, target)


def targets_one_by_one(rewards, steps, terminated, online, target, discount):
    targets = []
    for k, reward in enumerate(rewards.tolist()):
        best = int(online[k].argmax())
        value = 0.0 if terminated[k] else float(target[k, best])
        targets.append(reward + discount ** int(steps[k]) * value)
    return targets


def packaged_targets(rewards, steps, terminated, next_q_online, next_q_target, discount):
    """The package's own, for a stack of one run."""
    stack = (each[None] for each in (rewards, terminated, next_q_target))
    return td_targets(*stack, discount**steps, next_q_online[None])[0]


def with_next_values(next_values, terminated=True):
    """`double_targets` with another value of what follows, given (online, target)."""

    def answer(rewards, steps, ends, online, target, discount):
        goes_on = ~ends if terminated else torch.ones_like(ends)
        return rewards + discount**steps * goes_on * next_values(online, target)

    return answer


def with_factor(factor):
    """`double_targets` with another factor before the value, given (discount, steps)."""

    def answer(rewards, steps, terminated, online, target, discount):
        return rewards + factor(discount, steps) * ~terminated * rated(online, target)

    return answer


def kept_axis(rewards, steps, terminated, online, target, discount):
    next_values = target.gather(1, online.argmax(dim=1, keepdim=True))
    return rewards + discount**steps * ~terminated * next_values


def all_kept_axes(rewards, steps, terminated, *rest):
    return kept_axis(rewards[:, None], steps[:, None], terminated[:, None], *rest)


def chosen_over_the_batch(rewards, steps, terminated, online, target, discount):
    next_values = target[torch.arange(len(target)), online.argmax(0)]
    return rewards + discount**steps * ~terminated * next_values


def zeroed_in_place(rewards, steps, terminated, online, target, discount):
    target[terminated] = 0
    return double_targets(rewards, steps, terminated, online, target, discount)


def plain_max(online, target):
    return target.max(dim=1).values


def legal_mean(A, legal):
    return (A * legal).sum(dim=1, keepdim=True) / legal.sum(dim=1, keepdim=True)


def dueling_q(V, A, legal):
    return V + A - legal_mean(A, legal)


def dueling_by_nan(V, A, legal):
    return V + A - A.masked_fill(~legal, float("nan")).nanmean(dim=1, keepdim=True)


def dueling_by_where(V, A, legal):
    return V + A - torch.where(legal, A, 0.0).sum(1, keepdim=True) / legal.float().sum(1)[:, None]


def dueling_in_place(V, A, legal):
    A -= legal_mean(A, legal)
    return V + A


def half_life(tau):
    return np.log(2) / -np.log(1 - tau)


def half_life_by_counting(tau):
    left, updates = 1.0, 0
    while left > 0.5:
        left, updates = left * (1 - tau), updates + 1
    return updates


def cut_series(tau):
    return np.log(2) / (tau + tau**2 / 2 + tau**3 / 3)


def n_step_target(rewards, terminated, next_value, discount):
    target = 0.0 if terminated else next_value
    for reward in reversed(rewards):
        target = reward + discount * target
    return target


def emptied(rewards, terminated, next_value, discount):
    target = 0.0 if terminated else next_value
    while rewards:
        target = rewards.pop() + discount * target
    return target


def with_exponent(exponent):
    """The target whose value after the window is discounted by γ to the `exponent(k)`."""

    def answer(rewards, terminated, next_value, discount):
        ahead = n_step_target(rewards, True, 0.0, discount)
        return ahead + (not terminated) * discount ** exponent(len(rewards)) * next_value

    return answer


def with_rewards(summed):
    """The target whose rewards are added up by `summed(rewards, discount)`."""

    def answer(rewards, terminated, next_value, discount):
        value = 0.0 if terminated else discount ** len(rewards) * next_value
        return summed(rewards, discount) + value

    return answer


def discounted(rewards, discount):
    return n_step_target(rewards, True, 0.0, discount)


def by_powers(rewards, terminated, next_value, discount):
    values = np.array([*rewards, (1 - terminated) * next_value])
    return values @ discount ** np.arange(len(values))


def with_tilde(rewards, terminated, next_value, discount):
    return discounted(rewards, discount) + ~terminated * discount ** len(rewards) * next_value


def standard_error(a, b):
    return (a - b).std(ddof=1) / len(a) ** 0.5


def error_by_hand(a, b):
    differences = [x - y for x, y in zip(a, b, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    return (sum((each - mean) ** 2 for each in differences) / (n * (n - 1))) ** 0.5


def error_by_bootstrap(a, b):
    rng = np.random.default_rng(0)
    return rng.choice(a - b, (20_000, len(a))).mean(axis=1).std()


def error_in_place(a, b):
    a -= b
    return a.std(ddof=1) / len(a) ** 0.5


RIGHT = [
    ("04.1", double_targets),
    ("04.1", lambda *given: double_targets(*given).double()),
    ("04.1", lambda *given: double_targets(*given).numpy()),
    ("04.1", lambda r, n, end, o, t, g: torch.where(end, r, r + g**n * rated(o, t))),
    (
        "04.1",
        lambda r, n, end, o, t, g: r + torch.tensor(g).pow(n) * (1 - end.float()) * rated(o, t),
    ),
    ("04.1", targets_one_by_one),
    ("04.1", packaged_targets),
    ("04.2", dueling_q),
    ("04.2", dueling_by_nan),
    ("04.2", dueling_by_where),
    ("04.2", lambda *r: torch.stack([v + a - a[k].mean() for v, a, k in zip(*r, strict=True)])),
    (
        "04.2",
        lambda V, A, legal: (
            (V + A) - torch.einsum("ba,ba->b", A, legal / legal.sum(1)[:, None])[:, None]
        ),
    ),
    ("04.3", half_life),
    ("04.3", lambda tau: np.log(0.5) / np.log1p(-tau)),
    ("04.3", lambda tau: 1 / -np.log2(1 - tau)),
    ("04.3", lambda tau: float(np.emath.logn(1 - tau, 0.5))),
    ("04.3", lambda tau: torch.tensor(0.5).log() / torch.tensor(1 - tau).log()),
    ("04.4", n_step_target),
    ("04.4", with_exponent(lambda k: k)),
    ("04.4", by_powers),
    ("04.4", lambda *given: torch.tensor(n_step_target(*given))),
    ("04.5", standard_error),
    ("04.5", lambda a, b: np.sqrt(np.var(a - b, ddof=1) / len(a))),
    ("04.5", lambda a, b: np.sqrt(np.cov(a, b).dot([1, -1]).dot([1, -1]) / len(a))),
    ("04.5", lambda a, b: sem(b - a)),
    ("04.5", error_by_hand),
    ("04.5", lambda a, b: (torch.tensor(a) - torch.tensor(b)).std() / len(a) ** 0.5),
]

WRONG = [
    ("04.1", with_next_values(plain_max), "plain DQN"),
    ("04.1", with_next_values(plain_max, terminated=False), "plain DQN"),
    ("04.1", with_next_values(lambda o, t: o.max(dim=1).values), "both chooses and rates"),
    ("04.1", with_next_values(lambda o, t: rated(t, o)), "roles are swapped"),
    ("04.1", with_next_values(lambda o, t: torch.minimum(o, t).amax(1)), "another remedy"),
    ("04.1", with_next_values(rated, terminated=False), "nothing follows"),
    ("04.1", lambda r, n, end, *rest: double_targets(r, n, ~end, *rest), "did *not* terminate"),
    ("04.1", lambda r, n, end, *rest: double_targets(r, n, end, *rest) * ~end, "not the rewards"),
    ("04.1", with_factor(lambda g, n: 1.0), "not discounted"),
    ("04.1", with_factor(lambda g, n: g), "the discount of one step"),
    ("04.1", with_factor(lambda g, n: n * g), "a power of γ, not a multiple"),
    ("04.1", with_factor(lambda g, n: g ** n.max()), "the windows differ in length"),
    ("04.1", with_factor(lambda g, n: g ** (n - 1)), "off by one"),
    ("04.1", with_factor(lambda g, n: g ** (n + 1)), "off by one"),
    ("04.1", with_factor(lambda g, n: 0.9**n), "with `discount`"),
    (
        "04.1",
        lambda r, n, end, o, t, g: g**n * (r + ~end * rated(o, t)),
        "discounted already",
    ),
    ("04.1", kept_axis, "a table of (3, 3)"),
    ("04.1", all_kept_axes, "(3, 1), a column"),
    ("04.1", with_next_values(lambda o, t: 0.0), "the future is missing"),
    (
        "04.1",
        with_next_values(lambda o, t: rated(o, t) + 0.5),
        "it should be [-0.687, 0.25, -9.2], yours is [-0.3225,",
    ),
    ("04.1", lambda r, n, end, o, t, g: r + g**n * (1 - end) * o, "stopped with RuntimeError"),
    ("04.1", zeroed_in_place, "it changes `next_q_target`"),
    ("04.1", chosen_over_the_batch, "over the actions, `dim=1`"),
    ("04.2", lambda V, A, legal: V + A, "nothing is subtracted"),
    (
        "04.2",
        lambda V, A, legal: dueling_q(V, A, legal).masked_fill(~legal, -np.inf),
        "keep their Q",
    ),
    (
        "04.2",
        lambda V, A, legal: V + A - (A * legal).sum(1, keepdim=True) / legal.sum(),
        "sum and count over the actions",
    ),
    (
        "04.2",
        lambda V, A, legal: V + A - (A * legal).sum(0) / legal.sum(0),
        "sum and count over the actions",
    ),
    ("04.2", lambda V, A, legal: V + A - A.mean(1, keepdim=True), "illegal in a state"),
    ("04.2", lambda V, A, legal: V + A - (A * legal).mean(1, keepdim=True), "number of *legal*"),
    ("04.2", lambda V, A, legal: dueling_q(V, A, ~legal), "upside down"),
    ("04.2", lambda V, A, legal: V + A - A.max(dim=1, keepdim=True).values, "equation 8"),
    ("04.2", lambda V, A, legal: V + A - A.mean(), "mean of the whole minibatch"),
    ("04.2", lambda V, A, legal: V + A - A[legal].mean(), "mean of the whole minibatch"),
    ("04.2", lambda V, A, legal: V + A - A.mean(dim=0), "over the actions, the last axis"),
    ("04.2", lambda V, A, legal: V + A - legal_mean(A, legal).squeeze(), "`keepdim=True`"),
    ("04.2", lambda V, A, legal: dueling_q(V.squeeze(), A, legal), "leave it (batch, 1)"),
    ("04.2", lambda V, A, legal: V + A + legal_mean(A, legal), "not added"),
    ("04.2", lambda V, A, legal: V + A - (A * legal).sum(1, keepdim=True), "not their mean"),
    ("04.2", lambda V, A, legal: legal * dueling_q(V, A, legal), "keep their Q"),
    ("04.2", lambda V, A, legal: V + A * legal - legal_mean(A, legal), "keep their advantage"),
    ("04.2", lambda V, A, legal: dueling_q(0, A, legal), "where is V"),
    ("04.2", lambda V, A, legal: V, "yours has the shape (3, 1)"),
    ("04.2", lambda V, A, legal: V + A - legal_mean(A, legal).detach(), "the gradient is not"),
    ("04.2", lambda V, A, legal: dueling_q(V, A, legal).detach(), "no gradient flows back"),
    ("04.2", lambda V, A, legal: V.numpy() + A.numpy(), "leaves torch"),
    ("04.2", dueling_in_place, "it changes `advantages`"),
    ("04.3", lambda tau: np.ceil(half_life(tau)), "leave the fraction"),
    ("04.3", lambda tau: round(half_life(tau)), "leave the fraction"),
    ("04.3", lambda tau: int(half_life(tau)), "leave the fraction"),
    ("04.3", lambda tau: round(half_life(tau), 2), "leave the fraction"),
    ("04.3", half_life_by_counting, "leave the fraction"),
    ("04.3", lambda tau: 0.5 / tau, "of what is *left*"),
    ("04.3", lambda tau: 1 / tau, "one half comes earlier"),
    ("04.3", lambda tau: np.log(2) / tau, "limit of small τ"),
    ("04.3", cut_series, "a series that is cut off"),
    ("04.3", lambda tau: half_life(tau) if tau < 0.5 else 1.2, "33.3 % is left after 1.2 "),
    ("04.3", lambda tau: -half_life(tau), "both logarithms are negative"),
    ("04.3", lambda tau: 1 / half_life(tau), "upside down"),
    ("04.3", lambda tau: np.log(0.5) / np.log(tau), "1 − τ of the distance, not τ"),
    ("04.3", lambda tau: 1.0, "your answer is always 1"),
    ("04.3", lambda tau: 34.0 if tau == 0.02 else 3.1, "50.31 % is left after 34 updates"),
    ("04.4", lambda r, end, v, g: n_step_target(r, False, v, g), "after termination nothing"),
    ("04.4", lambda r, end, v, g: n_step_target(r, True, v, g), "after the window is missing"),
    ("04.4", with_tilde, "~False is −1"),
    ("04.4", lambda r, end, v, g: n_step_target(r, end, v, 0.9), "does not change with `discount`"),
    ("04.4", lambda r, end, v, g: n_step_target(r, end, 10.0, g), "with `next_value`"),
    ("04.4", with_exponent(lambda k: 0), "k steps ahead"),
    ("04.4", with_exponent(lambda k: 1), "the discount of one step"),
    ("04.4", with_exponent(lambda k: k - 1), "off by one"),
    ("04.4", with_exponent(lambda k: k + 1), "off by one"),
    ("04.4", with_exponent(lambda k: 3), "by γ^3 always"),
    ("04.4", with_rewards(lambda r, g: sum(r)), "the rewards are not discounted"),
    ("04.4", lambda r, end, v, g: n_step_target(r, end, v, 1.0), "nothing is discounted"),
    ("04.4", with_rewards(lambda r, g: g * discounted(r, g)), "comes with the step itself"),
    ("04.4", lambda r, end, v, g: g * n_step_target(r, end, v, g), "comes with the step itself"),
    ("04.4", with_rewards(lambda r, g: discounted(r[::-1], g)), "back to front"),
    ("04.4", lambda r, end, v, g: 0 if end else n_step_target(r, end, v, g), "not the rewards"),
    ("04.4", lambda r, *rest: n_step_target(r[:3], *rest), "rewards = [1, 3, 2, 0, 5]"),
    (
        "04.4",
        lambda r, end, v, g: r[0] + g * r[1] + g * g * r[2] + (not end) * g**3 * v,
        "it should be 14.51, yours is 12.61",
    ),
    ("04.4", lambda r, end, v, g: n_step_target(r, end, abs(v), g), "may be negative"),
    ("04.4", emptied, "it changes `rewards`"),
    ("04.5", lambda a, b: np.sqrt((a.var() + b.var()) / len(a)), "were no pairs"),
    ("04.5", lambda a, b: np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a)), "were no pairs"),
    ("04.5", lambda a, b: (a - b).std() / np.sqrt(len(a)), "`ddof=1`"),
    ("04.5", lambda a, b: (a - b).std(ddof=1), "by √n"),
    ("04.5", lambda a, b: (a - b).std(), "by √n"),
    ("04.5", lambda a, b: (a - b).std(ddof=1) / len(a), "by √n, not n"),
    ("04.5", lambda a, b: (a - b).std(ddof=1) / 8**0.5, "you divide by √8 always"),
    ("04.5", lambda a, b: standard_error(a, b) ** 2, "square root"),
    ("04.5", lambda a, b: (a - b).mean(), "the mean difference"),
    ("04.5", lambda a, b: standard_error(abs(a - b), 0), "their signs"),
    ("04.5", lambda a, b: 1.96 * standard_error(a, b), "standard error alone"),
    ("04.5", lambda a, b: standard_error(a, 0) - standard_error(b, 0), "difference of two errors"),
    ("04.5", lambda a, b: standard_error(np.sort(a), np.sort(b)), "the pairs fall apart"),
    ("04.5", lambda a, b: standard_error(a, 0), "one arm alone"),
    ("04.5", lambda a, b: np.append(a, b).std(ddof=1) / np.sqrt(len(a)), "both arms together"),
    ("04.5", lambda a, b: (a - b).std(ddof=1) / np.sqrt(2 * len(a)), "the number of pairs"),
    ("04.5", lambda a, b: (a - b).std(ddof=1) / np.sqrt(30), "you divide by √30 always"),
    ("04.5", error_by_bootstrap, "use the formula"),
    ("04.5", lambda a, b: a - b, "a single number is asked for"),
    ("04.5", lambda a, b: 0.0, "your answer is always 0"),
    ("04.5", error_in_place, "it changes `a`"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
