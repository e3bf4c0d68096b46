"""Ape-X on a cluster: it goes on whatever is lost."""

import os
import signal

import numpy as np
import pytest

from per_tutorial.__main__ import main
from per_tutorial.distributed.apex import train_apex
from per_tutorial.distributed.apex_settings import ApexConfig
from per_tutorial.distributed.cluster import ClusterError
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.training import evaluate

CONFIG = DQNConfig(
    sampler="proportional", steps=2000, hidden=(16,), batch_size=16, learning_starts=200, n_step=3
)
ALONE = ApexConfig(actors=1, fetch_every=50, lead=400)


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


def test_the_command_learns_a_game_from_pixels_and_writes(cluster, tmp_path, capsys):
    out, agent = tmp_path / "history.csv", tmp_path / "agent.safetensors"
    options = (
        "--actors 1 --environments-each 2 --fetch-every 40 --env ALE/Pong-v5 --frame-size 20 "
        "--max-episode-steps 50 --steps 400 --learning-starts 100 --hidden 16 --n-step 3 "
        "--sampler proportional"
    )
    files = ("--out", str(out), "--save", str(agent))
    main(["apex", "--ray", cluster.address, "--quiet", *options.split(), *files])
    said = capsys.readouterr().out
    assert "greedy return, the mean of 20 episodes: " in said
    assert "replaced: 0 actors, 0 shards; windows lost: 0; the learner waited" in said
    history = History.load(out)
    assert history.log_steps[-1] == 400 and agent.stat().st_size > 1000
    assert history.config.compiled is False  # not "auto"


def test_a_killed_node_is_replaced_and_training_goes_on(cluster):
    lost = cluster.add(2)
    cluster.block(2)  # so that two of the three processes are on the other node
    history = train_apex(
        CONFIG,
        ALONE.replace(actors=2),
        address=cluster.address,
        callbacks=[At(800, lambda: (cluster.release(), cluster.kill(lost)))],
    )
    whole(history)
    assert history.actors_replaced + history.shards_replaced == 2


class Killed(BaseException):
    """The learner ends here."""


def test_a_shard_and_then_the_learner_are_back_with_their_checkpoints(
    cluster, ray_processes, tmp_path
):
    def kill_memory():
        (pid,) = ray_processes("MemoryProcess")
        os.kill(pid, signal.SIGKILL)

    def die():
        raise Killed

    apex = ALONE.replace(checkpoint_every=500)
    options = {"address": cluster.address, "checkpoints": tmp_path}
    found, kill = [], At(900, kill_memory)
    with pytest.raises(Killed):
        train_apex(CONFIG, apex, callbacks=[found.append, kill, At(1500, die)], **options)
    history = found[-1]
    assert history.shards_replaced == 1
    assert 0 < history.windows_lost < 1000  # it held 900, of which the checkpoint had 500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["learner.npz", "shard-0.npz"]

    before = (tmp_path / "learner.npz").read_bytes()
    with pytest.raises(ValueError, match="made with double = False, not True; choose another"):
        train_apex(CONFIG.replace(double=True), apex, **options)
    assert (tmp_path / "learner.npz").read_bytes() == before
    steps = []
    whole(train_apex(CONFIG, apex, callbacks=[lambda one: steps.append(one.step)], **options))
    assert min(steps) >= 1000  # it did not begin anew


def test_an_actor_that_raises_is_named_with_its_node(cluster, monkeypatch):
    from per_tutorial.distributed import processes

    class Wrong(processes.ActorProcess):
        def act(self, *_):
            raise ArithmeticError("it cannot go on")

    Wrong.__module__ = "__main__"  # sent as code
    monkeypatch.setattr("per_tutorial.distributed.apex.ActorProcess", Wrong)
    wrong = r"ray: Wrong 0 failed on node 127.0.0.1.* .ArithmeticError: it cannot go on"
    with pytest.raises(ClusterError, match=wrong):
        train_apex(CONFIG, ALONE, address=cluster.address)


def test_what_cannot_be_is_said_at_once(cluster):
    many = ALONE.replace(actors=90)
    with pytest.raises(ClusterError, match="90 actors and 1 shards need 91 CPUs. node 127.* has 3"):
        train_apex(CONFIG, many, address=cluster.address)
