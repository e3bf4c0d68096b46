"""The exercises of notebook 10: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest

from per_tutorial.notebook.checking import check
from per_tutorial.notebook.exercises import notebook_10

RIGHT = {
    "10.1": [
        notebook_10.mean_gain,
        lambda u, p: (np.log2(u) - np.log2(p)).mean(),
        lambda u, p: sum(np.log2(a / b) for a, b in zip(u, p, strict=True)) / len(u),
    ],
    "10.2": [
        notebook_10.effective_share,
        lambda e: np.abs(e).mean() ** 2 / np.mean(e**2),
        lambda e: sum(map(abs, e)) ** 2 / sum(x * x for x in e) / len(e),
    ],
    "10.3": [
        notebook_10.relo_probabilities,
        lambda o, t, a: [
            p / sum((max(x * x - y * y, 0) + 1e-6) ** a for x, y in zip(o, t, strict=True))
            for p in [(max(x * x - y * y, 0) + 1e-6) ** a for x, y in zip(o, t, strict=True)]
        ],
    ],
}
WRONG = {
    "10.1": notebook_10.GAIN_MISTAKES,
    "10.2": notebook_10.SHARE_MISTAKES,
    "10.3": notebook_10.RELO_MISTAKES,
}


@pytest.mark.parametrize(
    ("exercise", "answer"), [(name, one) for name, every in RIGHT.items() for one in every]
)
def test_right_answers_pass(exercise, answer):
    assert check(exercise, answer)


@pytest.mark.parametrize(
    ("exercise", "answer", "hint"),
    [(name, *mistake) for name, every in WRONG.items() for mistake in every],
)
def test_each_mistake_gets_its_hint(exercise, answer, hint, capsys):
    assert not check(exercise, answer)
    assert hint in capsys.readouterr().out
