"""Options of Stable-Baselines3 that meet ours: other agents' files, callbacks, the log."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.envs import SimpleMultiObsEnv
from stable_baselines3.common.logger import KVWriter, Logger

from per_tutorial.integrations.sb3 import (
    PrioritizedDQN,
    PrioritizedReplayBuffer,
    PrioritizedTD3,
)

STEPS = 40


def make(kind=PrioritizedDQN, world=None, policy="MlpPolicy", **kwargs):
    if world is None:
        world = "CartPole-v1" if issubclass(kind, DQN) else "Pendulum-v1"
    settings = {"buffer_size": 100, "learning_starts": 10, "batch_size": 8, "seed": 3}
    settings |= {"policy_kwargs": {"net_arch": [4]}, "device": "cpu"}
    return kind(policy, world, **(settings | kwargs))


@pytest.mark.parametrize("handled", [True, False])
def test_a_time_limit_is_an_end_only_where_it_is_not_handled(handled):
    """Pendulum never terminates, and its time limit comes after 200 steps."""
    given = {} if handled else {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
    model = make(PrioritizedTD3, buffer_size=210, learning_starts=1000, **given).learn(205)
    assert model.replay_buffer.dones.sum() == 1
    assert model.replay_buffer.sample(2000).dones.any() == (not handled)


def test_dict_observations():
    small = {"net_arch": [4], "features_extractor_kwargs": {"cnn_output_dim": 4}}
    env = SimpleMultiObsEnv(random_start=True, discrete_actions=True)
    kwargs = {"world": env, "policy": "MultiInputPolicy", "policy_kwargs": small}
    model = make(n_steps=3, **kwargs).learn(STEPS)
    assert set(model.replay_buffer.sample(3).observations) == {"vec", "img"}
    assert len(np.unique(model.replay_buffer.probabilities())) > 3


def test_checkpoints_and_the_log(tmp_path):
    class Kept(KVWriter):
        def write(self, key_values, key_excluded, step=0):
            log.update(key_values)

    log = {}
    model = make(beta=lambda remaining: 0.7)
    model.set_logger(Logger(None, [Kept()]))
    model.learn(STEPS, callback=CheckpointCallback(20, str(tmp_path), save_replay_buffer=True))
    buffer = model.replay_buffer
    buffer.update_priorities([1, 2], np.array([-3.0, 1.0]))
    model.dump_logs()
    assert log["train/beta"] == 0.7 and 0 < log["train/mean_weight"] < 1
    assert log["train/mean_td_error"] == 2 and log["train/largest_priority"] >= 1
    sums = buffer._ledger.sampler.sums
    assert log["train/priority"] == pytest.approx(sums.total[0] / buffer.size())
    model.load_replay_buffer(tmp_path / "rl_model_replay_buffer_20_steps")
    assert model.replay_buffer.size() == 19  # SB3 calls back before it stores the step
    assert len(np.unique(model.replay_buffer.probabilities())) > 3


@pytest.mark.slow
def test_a_dqn_becomes_prioritized_and_back(tmp_path):
    theirs = make(DQN, n_steps=3).learn(STEPS)
    theirs.save(tmp_path / "agent")
    with pytest.raises(TypeError, match=r"got .*NStepReplayBuffer; others have no priorities"):
        PrioritizedDQN.load(tmp_path / "agent", env=theirs.get_env())
    model = PrioritizedDQN.load(
        tmp_path / "agent", env=theirs.get_env(), replay_buffer_class=None, alpha=0.3
    )
    assert type(model.replay_buffer) is PrioritizedReplayBuffer
    assert (model.replay_buffer.settings["alpha"], model.replay_buffer.n_steps) == (0.3, 3)
    for name, expected in theirs.policy.state_dict().items():
        assert (model.policy.state_dict()[name].cpu() == expected).all()
    model.learn(STEPS)
    assert len(np.unique(model.replay_buffer.probabilities())) > 3
    model.save(tmp_path / "agent")
    plain = {"replay_buffer_class": None, "replay_buffer_kwargs": {}, "n_steps": 1}
    back = DQN.load(tmp_path / "agent", env=theirs.get_env(), **plain).learn(STEPS)
    assert type(back.replay_buffer) is ReplayBuffer


def test_actions_that_do_not_begin_at_0_are_refused():
    class From5(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (2,))
        action_space = gym.spaces.Discrete(2, start=5)

    with pytest.raises(ValueError, match=r"env: the actions must begin at 0, .* got Discrete\(2"):
        make(world=From5())
