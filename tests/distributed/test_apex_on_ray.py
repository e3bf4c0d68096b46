"""Ape-X on a cluster: it learns, and goes on whatever is lost."""

import numpy as np
import pytest
from platforms import posix_only

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.training import evaluate

ray = pytest.importorskip("ray")
pytestmark = [posix_only, pytest.mark.slow]

from per_tutorial.distributed.apex import train_apex  # noqa: E402
from per_tutorial.distributed.apex_settings import ApexConfig  # noqa: E402
from per_tutorial.distributed.cluster import ClusterError  # noqa: E402

CONFIG = DQNConfig(
    sampler="proportional", steps=2000, hidden=(16,), batch_size=16, learning_starts=200, n_step=3
)
APEX = ApexConfig(actors=2, shards=2, fetch_every=50, lead=400)


class At:
    """Calls a function once, when a training has come so far."""

    def __init__(self, step, function):
        self._step, self._function, self.result = step, function, None

    def __call__(self, history):
        if self._function is not None and history.step >= self._step:
            function, self._function = self._function, None
            self.result = function()


def whole(history, config=CONFIG):
    """What every training promises, whatever was lost."""
    assert history.step == config.steps == history.log_steps[-1]
    updates = (config.steps - config.learning_starts) // config.update_every + 1
    assert history.agent.updates == updates
    assert evaluate(history.agent, 2).shape == (1, 2)
    assert 0 < np.nanmean(history.measure("parameter_age")) < 3000
    assert np.nanmax(history.measure("priority_age")) >= 0
    assert sum(length for *_, length in history.episodes) <= config.steps + 1000


def test_a_training_makes_its_steps_and_updates(cluster):
    cluster.add(4)
    history = train_apex(CONFIG, APEX, address=cluster.address)
    whole(history)
    assert (history.actors_replaced, history.shards_replaced, history.windows_lost) == (0, 0, 0)


def test_a_killed_node_is_replaced_and_training_goes_on(cluster):
    cluster.add(4)
    lost = cluster.add(2)
    history = train_apex(
        CONFIG,
        APEX.replace(actors=4),
        address=cluster.address,
        watchers=[At(800, lambda: (cluster.add(2), cluster.kill(lost)))],
    )
    whole(history)
    assert history.actors_replaced + history.shards_replaced >= 2


def kill_processes(kind, count=1):
    """End processes of a kind as a crash would; returns how many."""
    import os
    import signal
    from pathlib import Path

    killed = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if f"ray::{kind}".encode() in text and killed < count:
            os.kill(int(path.parent.name), signal.SIGKILL)
            killed += 1
    return killed


def test_a_killed_shard_is_back_with_its_checkpoint(cluster, tmp_path):
    cluster.add(4)
    kill = At(1200, lambda: kill_processes("MemoryProcess"))
    history = train_apex(
        CONFIG,
        APEX.replace(checkpoint_every=500),
        address=cluster.address,
        checkpoints=tmp_path,
        watchers=[kill],
    )
    whole(history)
    assert kill.result == 1
    assert history.shards_replaced == 1
    assert 0 < history.windows_lost < 1000  # it held 700 at least, of which the checkpoint had 250
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["learner.npz", "shard-0.npz", "shard-1.npz"]


class Killed(BaseException):
    """The learner ends here."""


def test_a_killed_learner_continues_from_its_checkpoint(cluster, tmp_path):
    def die():
        raise Killed

    cluster.add(4)
    options = {"address": cluster.address, "checkpoints": tmp_path}
    apex = APEX.replace(checkpoint_every=500)
    with pytest.raises(Killed):
        train_apex(CONFIG, apex, watchers=[At(1200, die)], **options)
    before = (tmp_path / "learner.npz").read_bytes()
    with pytest.raises(ValueError, match="made with double = False, not True; choose another"):
        train_apex(CONFIG.replace(double=True), apex, **options)
    assert (tmp_path / "learner.npz").read_bytes() == before
    steps = []
    whole(train_apex(CONFIG, apex, watchers=[lambda one: steps.append(one.step)], **options))
    assert min(steps) >= 500  # it did not begin anew


def test_what_cannot_be_is_said_at_once(cluster):
    cluster.add(1)
    with pytest.raises(
        ClusterError, match="2 actors and 2 shards need 4 CPUs. node 127.* has 1 CPU"
    ):
        train_apex(CONFIG, APEX, address=cluster.address)
    with pytest.raises(ValueError, match="sampler: must need neither candidates nor episodes"):
        train_apex(CONFIG.replace(sampler="laber"), APEX, address=cluster.address)
    with pytest.raises(ValueError, match="shards: each must hold a minibatch of 16, got 2 with"):
        train_apex(
            CONFIG.replace(capacity=20, learning_starts=16), address=cluster.address, apex=APEX
        )


def test_an_actor_that_raises_is_named_with_its_node(cluster, monkeypatch):
    from per_tutorial.distributed import processes

    class Wrong(processes.ActorProcess):
        def act(self, *_):
            raise ArithmeticError("it cannot go on")

    cluster.add(4)
    Wrong.__module__ = "__main__"  # sent as code
    monkeypatch.setattr("per_tutorial.distributed.apex.ActorProcess", Wrong)
    wrong = r"ray: Wrong \d failed on node 127.0.0.1.* .ArithmeticError: it cannot go on"
    with pytest.raises(ClusterError, match=wrong):
        train_apex(CONFIG, APEX, address=cluster.address)
