"""Small networks on a CPU are trained with one thread, unless somebody asked for more."""

import pytest
import torch

from per_tutorial import DQNConfig, train
from per_tutorial.dqn import threads

CONFIG = DQNConfig(steps=120, learning_starts=100, hidden=(8,))


@pytest.fixture
def two_threads(monkeypatch):
    """PyTorch works with two threads, and nobody asked for them."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(threads, "THREADS", 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    yield
    torch.set_num_threads(before)


def threads_of(config=CONFIG):
    """The number of threads while a training with these settings runs."""
    seen = []
    train(config=config, seeds=0, callbacks=[lambda history: seen.append(torch.get_num_threads())])
    return seen[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_a_small_network_is_trained_with_one_thread_and_then_they_are_back():
    assert threads_of() == 1
    assert torch.get_num_threads() == 2

    def fail(history):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(CONFIG, 0, callbacks=[fail])
    assert torch.get_num_threads() == 2
    pytest.importorskip("minatar")
    frames = CONFIG.replace(env="MinAtar/Breakout-v1", batch_size=2, steps=102)
    assert threads_of(frames) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_more_threads_are_used_if_somebody_asked(monkeypatch):
    torch.set_num_threads(3)
    assert threads_of() == 3
    torch.set_num_threads(2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_of() == 2
