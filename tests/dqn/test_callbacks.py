"""What watches a training from outside: after an interrupt, and when it is used again."""

import pytest

from per_tutorial import DQNConfig, train
from per_tutorial.dqn.callbacks import ProgressBar

CONFIG = DQNConfig(steps=200, learning_starts=50, hidden=(4,))


@pytest.mark.slow
def test_a_bar_after_an_interrupted_one_stays_in_its_line(capsys):
    """tqdm #375: a notebook keeps the interrupted bar, and each new one moved down a line."""
    interrupted = ProgressBar("interrupted")

    def stop(history):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(CONFIG, 0, callbacks=[interrupted, stop])
    capsys.readouterr()
    train(CONFIG, 0, callbacks=[ProgressBar("next")])
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert "100%" in shown


def test_a_bar_can_be_used_again(capsys):
    bar = ProgressBar()
    for _ in range(2):
        train(CONFIG, 0, callbacks=[bar])
        assert "200/200 steps" in capsys.readouterr().out
