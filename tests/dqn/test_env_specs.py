"""Kinds of worlds: which environment is of which, and what follows from that."""

import subprocess
import sys

import numpy as np
from counting import CountingEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.env_specs import ENV_SPECS, EnvSpec
from per_tutorial.dqn.environments import gymnasium_envs
from per_tutorial.dqn.training import evaluate, train


class Counting:
    """A new kind of world, as a module: whatever follows the prefix, one counts."""

    asked = []

    @classmethod
    def training_environments(cls, config, seeds):
        cls.asked.append(("train", config.env, list(seeds)))
        vector_env = SyncVectorEnv(
            [CountingEnv] * len(seeds), autoreset_mode=AutoresetMode.SAME_STEP
        )
        return gymnasium_envs.Environments(vector_env, list(seeds))

    @classmethod
    def evaluation_environments(cls, config, seeds):
        made = cls.training_environments(config, seeds)
        cls.asked[-1] = ("evaluate", config.env, list(seeds))
        return made


def test_a_new_kind_of_world_is_one_entry(monkeypatch):
    monkeypatch.setitem(sys.modules, "per_tutorial.dqn.environments.counting", Counting)
    monkeypatch.setitem(ENV_SPECS, "Count/", EnvSpec("counting", evaluation_epsilon=0.5))
    config = DQNConfig(env="Count/any", steps=60, hidden=(4,), batch_size=4, learning_starts=20)
    agent = train(config, [3, 4]).agent
    assert agent.observation_shape == (3,)
    assert np.isfinite(evaluate(agent, 2)).all()
    assert f"None: {ENV_SPECS['ALE/'].evaluation_epsilon} in Atari games" in evaluate.__doc__
    evaluated = [10_000 + 2 * seed + k for seed in (3, 4) for k in (0, 1)]
    assert Counting.asked == [("train", "Count/any", [3, 4]), ("evaluate", "Count/any", evaluated)]


def test_settings_load_neither_gymnasium_nor_torch():
    code = (
        "import sys\n"
        "from per_tutorial.dqn.config import DQNConfig\n"
        "DQNConfig(env='ALE/Pong-v5', environments=4)\n"
        "DQNConfig(env='MinAtar/Breakout-v1')\n"
        "names = ('gymnasium', 'torch', 'ale_py', 'minatar')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
