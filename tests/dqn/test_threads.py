"""Small networks on a CPU are trained with one thread, unless somebody asked for more."""

import pytest
import torch

from per_tutorial import DQNConfig, evaluate, train
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
    """The number of threads in a training with these settings, and in an evaluation."""
    seen = []

    def watch(*_):
        seen.append(torch.get_num_threads())

    agent = train(config=config, seeds=0, callbacks=[watch]).agent
    agent.online.register_forward_hook(watch)
    evaluate(agent, 1)
    assert len(set(seen)) == 1
    return seen[0]


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_a_small_network_has_one_thread_unless_somebody_asked_for_more(monkeypatch):
    assert threads_of() == 1
    with pytest.raises(KeyboardInterrupt), threads.one_thread_if_small(CONFIG):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2
    pytest.importorskip("minatar")
    frames = CONFIG.replace(env="MinAtar/Breakout-v1", batch_size=2, steps=102)
    assert threads_of(frames) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_of() == 2
    monkeypatch.delenv("OMP_NUM_THREADS")
    torch.set_num_threads(3)
    assert threads_of() == 3
