"""The exercises of notebook 02: right answers of any form pass, wrong ones hear their mistake."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch


def td_target(reward, terminated, truncated, next_q, discount):
    return reward + (0.0 if terminated else discount * max(next_q))


def with_future(share):
    """The target with the future times `share(terminated, truncated)`."""
    return lambda r, te, tr, q, g: r + share(te, tr) * g * q.max()


def with_value(value):
    """The target with another value of the next state, given its Q-values."""
    return lambda r, te, tr, q, g: r + (not te) * g * value(q)


def zeroed_in_place(reward, terminated, truncated, next_q, discount):
    if terminated:
        next_q[:] = 0
    return reward + discount * next_q.max()


def falling(step):
    return max(0, step - 200)


def line(step):
    return 1.0 - 0.9 * min(falling(step) / 1000, 1.0)


def accumulated_over(step, fall=0.0009):
    """The same by a loop, without any memory between calls."""
    value = 1.0
    for _ in range(200, min(step, 1200)):
        value -= fall
    return value


def accumulated():
    """ε that falls with each call, whatever the step."""
    value = [1.0]

    def epsilon(step):
        before = value[0]
        if step >= 200:
            value[0] = max(0.1, value[0] - 0.0009)
        return before

    return epsilon


def chosen(q_values, actions):
    return q_values.gather(1, actions[:, None])


def td_errors(q_values, actions, targets):
    return targets - q_values[torch.arange(len(actions)), actions]


def with_errors(change):
    return lambda *given: change(td_errors(*given))


def with_estimate(estimate):
    return lambda q, actions, targets: targets - estimate(q, actions)


def one_by_one(q_values, actions, targets):
    each = zip(q_values, actions, targets, strict=True)
    return torch.stack([target - row[action] for row, action, target in each])


def one_hot(q_values, actions, targets):
    return targets - (torch.nn.functional.one_hot(actions, q_values.shape[1]) * q_values).sum(1)


def in_place(q_values, actions, targets):
    targets -= q_values[torch.arange(len(actions)), actions]
    return targets


RIGHT = [
    ("02.1", td_target),
    ("02.1", lambda r, te, tr, q, g: r + (1 - te) * g * np.max(q)),
    ("02.1", lambda r, te, tr, q, g: np.float32(r + (not te) * g * sorted(q)[-1])),
    ("02.1", lambda r, te, tr, q, g: torch.tensor(r) + g * torch.tensor(q).max() * (te is False)),
    ("02.1", lambda r, te, tr, q, g: np.where(te, r, r + g * q.max())),
    ("02.2", line),
    ("02.2", lambda step: min(1.0, max(0.1, 1.18 - 0.9 * step / 1000))),
    ("02.2", lambda step: np.interp(step, [200, 1200], [1, 0.1])),
    ("02.2", lambda step: np.clip(np.float32(1.18 - 0.0009 * step), 0.1, 1)),
    ("02.2", accumulated_over),
    ("02.2", lambda step: torch.tensor(line(step))),
    ("02.3", td_errors),
    ("02.3", lambda q, actions, targets: targets - chosen(q, actions)[:, 0]),
    ("02.3", lambda q, actions, targets: (targets[:, None] - chosen(q, actions)).squeeze(1)),
    ("02.3", one_by_one),
    ("02.3", one_hot),
    ("02.3", lambda *given: td_errors(*given).double()),
    ("02.4", 0.98),
    ("02.4", 1 - 1 / 50),
    ("02.4", np.float32(0.98)),
    ("02.4", torch.tensor(0.98)),
    ("02.4", Fraction(49, 50)),
    ("02.4", Decimal("0.98")),
    ("02.5", 32),
    ("02.5", 10_000 * 32 / 10_000),
    ("02.5", np.array(32)),
    ("02.5", 32 * (1 - 1e-4)),
]

WRONG = [
    ("02.1", with_future(lambda te, tr: not (te or tr)), "at the time limit"),
    ("02.1", with_future(lambda te, tr: 1), "after termination nothing follows"),
    ("02.1", with_future(lambda te, tr: not tr), "a fallen pole keeps its future"),
    ("02.1", with_future(lambda te, tr: not te or tr), "it has fallen"),
    ("02.1", with_future(lambda te, tr: not (te and tr)), "it has fallen"),
    ("02.1", with_future(lambda te, tr: te), "did *not* terminate"),
    ("02.1", with_future(lambda te, tr: ~te), "~False is −1"),
    ("02.1", lambda r, te, tr, q, g: r + (not te) * q.max(), "not discounted"),
    (
        "02.1",
        lambda r, te, tr, q, g: td_target(r, te, tr, q, 0.9),
        "does not change with `discount`",
    ),
    ("02.1", lambda r, te, tr, q, g: td_target(1.0, te, tr, q, g), "does not change with `reward`"),
    ("02.1", lambda r, te, tr, q, g: r, "the future is missing"),
    ("02.1", lambda r, te, tr, q, g: (not te) * g * q.max(), "the reward is missing"),
    ("02.1", lambda r, te, tr, q, g: (not te) * td_target(r, te, tr, q, g), "not the reward of"),
    ("02.1", with_value(lambda q: q[0]), "the first action"),
    ("02.1", with_value(np.mean), "the mean Q"),
    ("02.1", with_value(np.argmax), "*which* action"),
    ("02.1", with_value(lambda q: abs(q).max()), "no absolute value"),
    ("02.1", with_value(lambda q: max(0, *q)), "nothing cuts it off at 0"),
    ("02.1", with_value(lambda q: max(q[0], q[1])), "the first two actions alone"),
    ("02.1", lambda r, te, tr, q, g: td_target(r, te, tr, q, g) + tr, "truncated = True"),
    ("02.1", zeroed_in_place, "it changes `next_q`"),
    ("02.1", lambda r, te, tr, q, g: r + (not te) * g * q, "a single number"),
    ("02.1", lambda r, te, tr, q, g: q[7], "IndexError"),
    ("02.2", accumulated(), "remembers the calls"),
    ("02.2", lambda step: 1.0 - 0.9 * min(step / 1000, 1.0), "from step 0 on"),
    ("02.2", lambda step: 1.0 - 0.9 * min(step / 1200, 1.0), "from step 0 on"),
    ("02.2", lambda step: max(0.1, 1.0 - 0.9 * (step - 200) / 1000), "above 1"),
    (
        "02.2",
        lambda step: 1.0 if step < 200 else max(0.1, 1.0 - 0.9 * step / 1000),
        "at step 200 it jumps",
    ),
    ("02.2", lambda step: max(0.1, 1.0 - 0.9 * falling(step) / 800), "in step 1,000"),
    ("02.2", lambda step: max(0.1, 1.0 - 0.9 * falling(step) / 1200), "in step 1,400"),
    ("02.2", lambda step: 1.0 - 0.9 * falling(step) / 1000, "goes on"),
    ("02.2", lambda step: max(0.0, 1.0 - falling(step) / 1000), "heads for 0"),
    ("02.2", lambda step: max(0.1, 1.0 - falling(step) / 1000), "a hundred steps too early"),
    ("02.2", lambda step: max(0.1, 1.0 - 0.9 * (falling(step) // 1000)), "drops the fraction"),
    ("02.2", lambda step: 0.1 + 0.9 * min(falling(step) / 1000, 1.0), "upside down"),
    ("02.2", lambda step: 0.1 ** min(falling(step) / 1000, 1), "same *factor*"),
    ("02.2", lambda step: 0.1 + 0.9 * (1 - min(falling(step) / 1000, 1)) ** 2, "it is no line"),
    (
        "02.2",
        lambda step: 0.1 + 0.9 * np.exp(-falling(step) / 1000),
        "at step 300 it should be 0.91, yours is 0.9144",
    ),
    ("02.2", lambda step: line(step) + (step == 700) / 1e4, "it should be 0.55, yours is 0.5501"),
    ("02.2", lambda step: line(step) if step < 1000 else 0.1, "it jumps to 0.1"),
    ("02.2", lambda step: line(step) if step <= 1000 else 0.1, "it jumps to 0.1"),
    (
        "02.2",
        lambda step: line(step) if step < 1100 else 0.1,
        "at step 1150 it should be 0.145, yours is 0.1",
    ),
    ("02.2", lambda step: 1.0 - 0.95 * min(falling(step) / 1000, 1.0), "it goes to 0.05"),
    ("02.2", lambda step: 1.0 - 0.95 * min(step / 5000, 1.0), "`linear` of section 6"),
    ("02.2", lambda step: line(step + 1), "one step too early"),
    ("02.2", lambda step: line(step - 1), "one step too late"),
    ("02.2", lambda step: 0.5, "your answer is always 0.5"),
    ("02.2", lambda step: 0.95 * line(step), "it starts at 1, yours is 0.95"),
    ("02.2", lambda step: f"{line(step)}", "without quotation marks"),
    ("02.2", lambda step: 1000 / step, "ZeroDivisionError"),
    ("02.3", lambda q, a, targets: targets - chosen(q, a), "a table of (3, 3)"),
    ("02.3", lambda q, a, targets: targets[:, None] - chosen(q, a), "(3, 1), a column"),
    ("02.3", with_errors(lambda errors: -errors), "other way round"),
    ("02.3", with_errors(torch.abs), "no absolute value"),
    ("02.3", with_errors(torch.round), "rounding"),
    ("02.3", with_errors(torch.square), "those are the squares"),
    ("02.3", with_errors(torch.mean), "should have 3 numbers; yours has 1"),
    ("02.3", with_errors(torch.detach), "no gradient flows back"),
    ("02.3", with_errors(lambda errors: errors.detach().numpy()), "no gradient flows back"),
    ("02.3", with_errors(torch.Tensor.tolist), "no gradient flows back"),
    ("02.3", lambda q, a, targets: targets.numpy() - q.numpy()[range(len(a)), a], "leaves torch"),
    ("02.3", with_estimate(lambda q, a: q.max(dim=1).values), "the best action's Q"),
    ("02.3", with_estimate(lambda q, a: q[:, 0]), "the first action's Q"),
    ("02.3", with_estimate(lambda q, a: torch.where(a == 0, q[:, 0], q[:, 1])), "two actions"),
    ("02.3", with_estimate(lambda q, a: q.gather(0, a[None])[0]), "along the wrong axis"),
    ("02.3", lambda q, a, targets: targets, "the estimate is missing"),
    ("02.3", in_place, "it changes `targets`"),
    ("02.3", lambda q, a, targets: targets - q[a], "picks whole rows"),
    ("02.3", lambda q, a, targets: targets - q[:, a], "columns in *every* row"),
    ("02.3", lambda q, a, targets: targets[:, None] - q[:, a], "columns in *every* row"),
    ("02.3", lambda q, a, targets: (targets - chosen(q, a))[:, 0], "you keep a column"),
    ("02.3", lambda q, a, targets: (targets - chosen(q, a))[0], "you keep a row"),
    ("02.3", lambda q, a, targets: (targets[:, None] - chosen(q, a).T)[:, 0], "every estimate"),
    ("02.3", lambda q, a, targets: (targets - chosen(q, a)).mean(1), "you keep the means"),
    ("02.3", lambda q, a, targets: (targets - chosen(q, a)).mean(0), "you keep the means"),
    ("02.3", lambda q, a, targets: (targets - chosen(q, a)).sum(1), "you keep the sums"),
    ("02.4", 0.02, "1 − γ"),
    ("02.4", 50, "between 0 and 1"),
    ("02.4", 98, "in percent"),
    ("02.4", 0.99, "it is worth 100."),
    ("02.4", 0.9801, "it is worth 50.25"),
    ("02.4", 50 / 51, "counts in full"),
    ("02.4", "0.98", "'0.98' is text"),
    ("02.4", None, "that is None"),
    ("02.4", [0.98], "a single number"),
    ("02.4", lambda: 0.98, "that is a function"),
    ("02.4", True, "True is no number"),
    ("02.5", 32 / 10_000, "in one step"),
    ("02.5", 10_000 / 32, "how many updates"),
    ("02.5", 10_000, "how many steps it stays"),
    ("02.5", 1, "how many are drawn"),
    ("02.5", 320_000, "in all"),
    ("02.5", 7, "multiply by its chance"),
    ("02.5", "32", "without quotation marks"),
    ("02.5", (32, 32), "a single number"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
