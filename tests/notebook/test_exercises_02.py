"""The checks of notebook 02's exercises name the mistake that was made."""

import numpy as np
import pytest

from per_tutorial.notebook.exercises import check


def accumulated():
    """ε that falls with each call, whatever the step."""
    value = [1.0]

    def epsilon(step):
        before = value[0]
        value[0] = max(0.1, value[0] - 0.0009)
        return before

    return epsilon


def td_target(reward, terminated, truncated, next_q, discount):
    return reward + (0.0 if terminated else discount * max(next_q))


def line(step):
    return 1.0 - 0.9 * min(step / 1000, 1.0)


def chosen(q_values, actions):
    return q_values.gather(1, actions[:, None])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("02.1", td_target),
        ("02.2", line),
        ("02.3", lambda q, a, targets: targets - chosen(q, a)[:, 0]),
        ("02.4", 0.98),
        ("02.5", 32.0),
    ],
)
def test_right_answers_pass(capsys, name, answer):
    assert check(name, answer) is True, capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("02.1", lambda r, te, tr, q, g: r + (not (te or tr)) * g * max(q), "at the time limit"),
        ("02.1", lambda r, te, tr, q, g: r + g * max(q), "after termination nothing follows"),
        ("02.1", lambda r, te, tr, q, g: r + (not te) * max(q), "not discounted"),
        ("02.1", lambda r, te, tr, q, g: r + (not te) * g * q[0], "the first action"),
        ("02.1", lambda r, te, tr, q, g: r + (not te) * g * np.mean(q), "the mean Q"),
        ("02.1", lambda r, te, tr, q, g: (not te) * g * max(q), "in mid-episode"),
        ("02.1", lambda r, te, tr, q, g: r + (not te or tr) * g * max(q), "it has fallen"),
        ("02.1", lambda r, te, tr, q, g: r + (not te) * (g + tr) * max(q), "should not matter"),
        ("02.2", accumulated(), "remembers the calls"),
        ("02.2", lambda step: 1.0 - 0.9 * step / 1000, "goes on"),
        ("02.2", lambda step: max(0.0, 1.0 - step / 1000), "heads for 0"),
        ("02.2", lambda step: 0.1 + 0.9 * (1 - min(step / 1000, 1)) ** 2, "not a line"),
        ("02.2", lambda step: 0.1 + 0.9 * np.exp(-step / 1000), "half-way"),
        ("02.2", lambda step: 0.5, "it starts at 1"),
        ("02.3", lambda q, a, targets: targets - chosen(q, a), "(batch, batch)"),
        ("02.3", lambda q, a, targets: targets[:, None] - chosen(q, a), "(batch, 1)"),
        ("02.3", lambda q, a, targets: chosen(q, a)[:, 0] - targets, "other way round"),
        ("02.3", lambda q, a, targets: targets - q.max(dim=1).values, "the best action's Q"),
        ("02.3", lambda q, a, targets: (targets - chosen(q, a)[:, 0]).mean(), "have the shape ()"),
        ("02.3", lambda q, a, targets: targets, "for these Q-values"),
        ("02.4", 0.02, "1 − γ"),
        ("02.4", 50, "between 0 and 1"),
        ("02.4", 0.99, "it is worth 100.0"),
        ("02.5", 32 / 10_000, "in one step"),
        ("02.5", 10_000 / 32, "how many updates"),
        ("02.5", 1, "how many are drawn"),
        ("02.5", 320_000, "in all"),
        ("02.5", 7, "multiply by its chance"),
    ],
)
def test_wrong_answers_hear_their_mistake(capsys, name, answer, mistake):
    assert check(name, answer) is False
    assert mistake in capsys.readouterr().out
