"""Agents and buffers that are saved, loaded and copied go on as if nothing had happened."""

import copy
import io

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

from sb3_steps import assert_same_batches
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.save_util import save_to_pkl

from per_tutorial.integrations.sb3 import (
    PrioritizedDQN,
    PrioritizedQRDQN,
    PrioritizedSAC,
    PrioritizedTD3,
)


def make(kind=PrioritizedDQN, n_envs=1, **kwargs):
    world = "CartPole-v1" if kind in (PrioritizedDQN, PrioritizedQRDQN) else "Pendulum-v1"
    settings = {"buffer_size": 90, "learning_starts": 20, "batch_size": 16, "seed": 3}
    settings |= {"policy_kwargs": {"net_arch": [8]}, "device": "cpu"}
    return kind("MlpPolicy", make_vec_env(world, n_envs, seed=1), **(settings | kwargs))


def test_the_alpha_of_one_sampler_is_not_that_of_the_next(tmp_path):
    make(PrioritizedDQN).save(tmp_path / "agent")
    path, rank = tmp_path / "agent", {"sampler": "rank"}
    buffer = PrioritizedDQN.load(path, replay_buffer_kwargs=rank).replay_buffer
    assert buffer.settings["alpha"] == 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, settings",
    [
        (PrioritizedDQN, {}),
        (PrioritizedQRDQN, {"replay_buffer_kwargs": {"sampler": "rank"}}),
        (PrioritizedSAC, {}),
        (PrioritizedTD3, {}),
    ],
)
def test_an_agent_goes_on_from_its_files(kind, settings, tmp_path):
    model = make(kind, n_envs=2, n_steps=2, alpha=0.8, beta=lambda left: 1 - left / 2, **settings)
    model.learn(120)
    model.save(tmp_path / "agent")
    model.save_replay_buffer(tmp_path / "buffer")

    loaded = kind.load(tmp_path / "agent", env=model.get_env(), device="cpu")
    assert loaded.replay_buffer.size() == 0
    with pytest.raises(ValueError, match="^beta, or what its schedule returns: must be in"):
        kind.load(tmp_path / "agent", env=model.get_env(), beta=5)
    assert (loaded.alpha, loaded.beta(0.5), loaded.n_steps) == (0.8, 0.75, 2)
    assert loaded.replay_buffer.n_steps == 2
    assert loaded.replay_buffer.settings["alpha"] == 0.8
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert loaded.replay_buffer.size() == model.replay_buffer.size() == 45
    twin = copy.deepcopy(model.replay_buffer)
    for _ in range(2):
        assert_same_batches(loaded.replay_buffer, twin, 40)
    before = loaded.num_timesteps
    loaded.learn(20, reset_num_timesteps=False)
    assert loaded.num_timesteps >= before + 20


def saved(thing):
    file = io.BytesIO()
    save_to_pkl(file, thing)
    file.seek(0)
    return file


def test_files_that_are_no_such_buffer_are_refused():
    model = make().learn(30)
    kept, priorities = model.replay_buffer, model.replay_buffer.probabilities()
    uniform = DQN("MlpPolicy", "CartPole-v1", buffer_size=50, device="cpu").replay_buffer
    ranked = make(replay_buffer_kwargs={"sampler": "rank"}).replay_buffer
    for other, message in [
        (uniform, "must hold a PrioritizedReplayBuffer, got a ReplayBuffer, which has no"),
        ({"weights": 1}, "must hold a PrioritizedReplayBuffer, got a dict"),
        (make(PrioritizedSAC).replay_buffer, "saved with observation_space = Box"),
        (make(n_envs=2).replay_buffer, "saved with n_envs = 2, not 1"),
        (make(n_steps=3).replay_buffer, "saved with n_steps = 3, not 1"),
        (make(alpha=0.3).replay_buffer, "saved with alpha = 0.3, not 0.6"),
        (ranked, "sampler = 'rank', not 'proportional'"),
    ]:
        with pytest.raises(ValueError, match=f"^path: .*{message}"):
            model.load_replay_buffer(saved(other))
        assert model.replay_buffer is kept
        np.testing.assert_array_equal(kept.probabilities(), priorities)
