"""The checks of notebook 04's exercises name the mistake that was made."""

import numpy as np
import pytest
import torch

from per_tutorial.dqn.learner import td_targets
from per_tutorial.notebook.exercises import check


def double_targets(rewards, terminated, next_q_online, next_q_target, discount):
    actions = next_q_online.argmax(dim=1, keepdim=True)
    next_values = next_q_target.gather(1, actions)[:, 0]
    return rewards + discount * ~terminated * next_values


def packaged_targets(rewards, terminated, next_q_online, next_q_target, discount):
    """The package's own, for a stack of one run."""
    stack = (each[None] for each in (rewards, terminated, next_q_target))
    return td_targets(*stack, discount, next_q_online[None])[0]


def with_next_values(next_values, terminated=True):
    """`double_targets` with another value of what follows, given (online, target)."""

    def wrong(rewards, ends, online, target, discount):
        goes_on = ~ends if terminated else torch.ones_like(ends)
        return rewards + discount * goes_on * next_values(online, target)

    return wrong


def rated(choosing, rating):
    return rating.gather(1, choosing.argmax(dim=1, keepdim=True))[:, 0]


def kept_axis(rewards, terminated, online, target, discount):
    next_values = target.gather(1, online.argmax(dim=1, keepdim=True))
    return rewards + discount * ~terminated * next_values


def all_kept_axes(rewards, terminated, *rest):
    return kept_axis(rewards[:, None], terminated[:, None], *rest)


def plain_max(online, target):
    return target.max(dim=1).values


def dueling_q(V, A):
    return V + A - A.mean(dim=1, keepdim=True)


def half_life(tau):
    return np.log(2) / -np.log(1 - tau)


def n_step_target(rewards, terminated, next_value, discount):
    target = 0.0 if terminated else next_value
    for reward in reversed(rewards):
        target = reward + discount * target
    return target


def with_exponent(exponent):
    """The target whose value after the window is discounted by γ to the `exponent(k)`."""

    def wrong(rewards, terminated, next_value, discount):
        ahead = n_step_target(rewards, True, 0.0, discount)
        return ahead + (not terminated) * discount ** exponent(len(rewards)) * next_value

    return wrong


def with_rewards(summed):
    """The target whose rewards are added up by `summed(rewards, discount)`."""

    def wrong(rewards, terminated, next_value, discount):
        value = 0.0 if terminated else discount ** len(rewards) * next_value
        return summed(rewards, discount) + value

    return wrong


def discounted(rewards, discount):
    return n_step_target(rewards, True, 0.0, discount)


def standard_error(a, b):
    return (a - b).std(ddof=1) / len(a) ** 0.5


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("04.1", double_targets),
        ("04.1", packaged_targets),
        ("04.1", lambda *given: double_targets(*given).double()),
        ("04.2", dueling_q),
        ("04.2", lambda V, A: V + (A - A.mean(1)[:, None])),
        ("04.3", half_life),
        ("04.3", lambda tau: np.log(0.5) / np.log1p(-tau)),
        ("04.3", lambda tau: 1 / -np.log2(1 - tau)),
        ("04.4", n_step_target),
        ("04.4", with_exponent(lambda k: k)),
        ("04.5", standard_error),
        ("04.5", lambda a, b: np.sqrt(np.var(a - b, ddof=1) / len(a))),
        ("04.5", lambda a, b: np.sqrt(np.cov(a, b).dot([1, -1]).dot([1, -1]) / len(a))),
    ],
)
def test_right_answers_pass(capsys, name, answer):
    assert check(name, answer) is True, capsys.readouterr().out


@pytest.mark.parametrize("name", ["04.1", "04.2", "04.3", "04.4", "04.5"])
def test_a_stub_is_not_solved_yet(capsys, name):
    assert check(name, lambda *given: ...) is False
    assert capsys.readouterr().out.startswith(f"○ {name}: not solved yet")


MISTAKES = [
    ("04.1", with_next_values(plain_max), "plain DQN"),
    ("04.1", with_next_values(plain_max, terminated=False), "plain DQN"),
    ("04.1", with_next_values(lambda o, t: o.max(dim=1).values), "both chooses and rates"),
    ("04.1", with_next_values(lambda o, t: rated(t, o)), "roles are swapped"),
    ("04.1", with_next_values(lambda o, t: rated(o, t), terminated=False), "nothing follows"),
    ("04.1", lambda r, end, o, t, g: double_targets(r, ~end, o, t, g), "did *not* terminate"),
    ("04.1", lambda r, end, *rest: double_targets(r, end, *rest) * ~end, "not the reward"),
    ("04.1", lambda r, end, o, t, g: double_targets(r, end, o, t, 1.0), "not discounted"),
    ("04.1", kept_axis, "(batch, batch)"),
    ("04.1", all_kept_axes, "yours is (4, 1)"),
    ("04.1", with_next_values(lambda o, t: 0.0), "it is [ 4.6"),
    ("04.1", lambda r, end, o, t, g: r + g * (1 - end) * o, "stopped with RuntimeError"),
    ("04.2", lambda V, A: V + A, "nothing is subtracted"),
    ("04.2", lambda V, A: V + A - A.max(dim=1, keepdim=True).values, "equation 8"),
    ("04.2", lambda V, A: V + A - A.mean(), "mean of the whole minibatch"),
    ("04.2", lambda V, A: V + A - A.mean(dim=0), "over the actions, the last axis"),
    ("04.2", lambda V, A: V + A - A.mean(dim=1), "`keepdim=True`"),
    ("04.2", lambda V, A: dueling_q(V.squeeze(), A), "leave it (batch, 1)"),
    ("04.2", lambda V, A: V + A + A.mean(dim=1, keepdim=True), "not added"),
    ("04.2", lambda V, A: V + A - A.sum(dim=1, keepdim=True), "not their mean"),
    ("04.2", lambda V, A: dueling_q(0, A), "where is V"),
    ("04.2", lambda V, A: V, "has the shape (3, 1)"),
    ("04.2", lambda V, A: A, "it is [["),
    ("04.3", lambda tau: np.ceil(half_life(tau)), "leave the fraction"),
    ("04.3", lambda tau: round(half_life(tau)), "leave the fraction"),
    ("04.3", lambda tau: int(half_life(tau)), "leave the fraction"),
    ("04.3", lambda tau: 0.5 / tau, "of what is *left*"),
    ("04.3", lambda tau: 1 / tau, "one half comes earlier"),
    ("04.3", lambda tau: np.log(2) / tau, "limit of small τ"),
    ("04.3", lambda tau: -half_life(tau), "both logarithms are negative"),
    ("04.3", lambda tau: 1 / half_life(tau), "upside down"),
    ("04.3", lambda tau: np.log(0.5) / np.log(tau), "1 − τ of the difference, not τ"),
    ("04.3", lambda tau: 1.0, "with τ = 0.2, 80 % is left after 1 updates"),
    ("04.4", lambda r, end, v, g: n_step_target(r, False, v, g), "after termination nothing"),
    ("04.4", lambda r, end, v, g: n_step_target(r, True, v, g), "after the window is missing"),
    ("04.4", with_exponent(lambda k: 0), "k steps ahead"),
    ("04.4", with_exponent(lambda k: 1), "the discount of one step"),
    ("04.4", with_exponent(lambda k: k - 1), "off by one"),
    ("04.4", with_exponent(lambda k: k + 1), "off by one"),
    ("04.4", with_exponent(lambda k: 3), "the exponent is the number of rewards"),
    ("04.4", with_rewards(lambda r, g: sum(r)), "the rewards are not discounted"),
    ("04.4", lambda r, end, v, g: n_step_target(r, end, v, 1.0), "nothing is discounted"),
    ("04.4", with_rewards(lambda r, g: g * discounted(r, g)), "comes with the step itself"),
    ("04.4", lambda r, end, v, g: g * n_step_target(r, end, v, g), "comes with the step itself"),
    ("04.4", with_rewards(lambda r, g: discounted(r[::-1], g)), "back to front"),
    ("04.4", lambda r, end, v, g: 0 if end else n_step_target(r, end, v, g), "not the rewards"),
    ("04.4", lambda r, end, v, g: 1.0, "next_value = 10 and γ = 0.9 it is 12.61, yours is 1"),
    ("04.5", lambda a, b: np.sqrt((a.var() + b.var()) / len(a)), "were no pairs"),
    ("04.5", lambda a, b: np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a)), "were no pairs"),
    ("04.5", lambda a, b: (a - b).std() / np.sqrt(len(a)), "`ddof=1`"),
    ("04.5", lambda a, b: (a - b).std(ddof=1), "by √n"),
    ("04.5", lambda a, b: (a - b).std(), "by √n"),
    ("04.5", lambda a, b: (a - b).std(ddof=1) / len(a), "not by n"),
    ("04.5", lambda a, b: standard_error(a, b) ** 2, "square root"),
    ("04.5", lambda a, b: (a - b).mean(), "the mean difference"),
    ("04.5", lambda a, b: standard_error(abs(a - b), 0), "their signs"),
    ("04.5", lambda a, b: 1.96 * standard_error(a, b), "standard error alone"),
    ("04.5", lambda a, b: standard_error(a, 0) - standard_error(b, 0), "difference of two errors"),
    ("04.5", lambda a, b: a - b, "one number for all pairs"),
    ("04.5", lambda a, b: 0.0, "for eight pairs it is"),
]


@pytest.mark.parametrize(("name", "answer", "mistake"), MISTAKES)
def test_wrong_answers_are_told_their_mistake(capsys, name, answer, mistake):
    assert check(name, answer) is False
    assert mistake in capsys.readouterr().out
