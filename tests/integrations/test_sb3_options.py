"""The options of Stable-Baselines3: every row of docs/sb3_options.md is what happens."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import torch as th
from gymnasium import spaces
from stable_baselines3 import DDPG, DQN, HerReplayBuffer
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.callbacks import CheckpointCallback, ConvertCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import SimpleMultiObsEnv
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecNormalize

from per_tutorial import replay
from per_tutorial.integrations.sb3 import (
    FrameReplayBuffer,
    PrioritizedDictReplayBuffer,
    PrioritizedDQN,
    PrioritizedQRDQN,
    PrioritizedReplayBuffer,
    PrioritizedSAC,
    PrioritizedTD3,
)
from per_tutorial.integrations.sb3.samples import PrioritizedSamples

PAGE = Path(__file__).parents[2] / "docs" / "sb3_options.md"
STEPS = 40


def make(kind=PrioritizedDQN, world=None, policy="MlpPolicy", **kwargs):
    if world is None:
        world = "CartPole-v1" if issubclass(kind, DQN | PrioritizedQRDQN) else "Pendulum-v1"
    settings = {"buffer_size": 100, "learning_starts": 10, "batch_size": 8, "seed": 3}
    settings |= {"policy_kwargs": {"net_arch": [4]}, "device": "cpu"}
    return kind(policy, world, **(settings | kwargs))


def assert_learns(kind=PrioritizedDQN, *args, **kwargs):
    """The agent learns, and its priorities differ afterwards; returns it."""
    model = make(kind, *args, **kwargs)
    before = copy.deepcopy(model.policy.state_dict())
    model.learn(STEPS)
    assert any((after != before[name]).any() for name, after in model.policy.state_dict().items())
    shares = model.replay_buffer.probabilities
    assert len(np.unique(shares[shares > 0].round(9))) > 3
    return model


def dicts(**kwargs):
    small = {"net_arch": [4], "features_extractor_kwargs": {"cnn_output_dim": 4}}
    env = SimpleMultiObsEnv(random_start=True, discrete_actions=True)
    return {"world": env, "policy": "MultiInputPolicy", "policy_kwargs": small} | kwargs


def ddpg(tmp_path):
    """The same minibatches make the same agent."""
    one = {"net_arch": [4], "n_critics": 1}
    theirs = make(DDPG, policy_kwargs=one).learn(STEPS)
    ours = make(
        PrioritizedTD3, policy_kwargs=one, policy_delay=1, target_noise_clip=0.0, alpha=0.5
    ).learn(STEPS)
    ours.set_parameters(copy.deepcopy(theirs.get_parameters()))
    batch = theirs.replay_buffer.sample(8)
    ones = PrioritizedSamples(*batch).with_draw(th.ones(8, 1), np.arange(8))
    for model, minibatch in ((theirs, batch), (ours, ones)):
        model.replay_buffer.sample = lambda size, env=None, minibatch=minibatch: minibatch
        model.train(3, 8)
    for name, expected in theirs.policy.state_dict().items():
        np.testing.assert_allclose(ours.policy.state_dict()[name], expected, rtol=1e-5, atol=1e-7)


def replay_buffer_class(tmp_path):
    pictures = spaces.Box(0, 255, (4, 36, 36), np.uint8)
    world = make_vec_env("CartPole-v1")
    world.observation_space = pictures
    world.reset = lambda: np.zeros((1, *pictures.shape), np.uint8)
    small = {"net_arch": [4], "features_extractor_kwargs": {"features_dim": 4}}
    model = make(
        world=world, policy="CnnPolicy", policy_kwargs=small, replay_buffer_class=FrameReplayBuffer
    )
    assert type(model.replay_buffer) is FrameReplayBuffer
    assert type(make().replay_buffer) is PrioritizedReplayBuffer


def nstep_replay_buffer(tmp_path):
    assert make(n_steps=3).replay_buffer.n_steps == 3
    with pytest.raises(TypeError, match=r"got .*\.NStepReplayBuffer, which has no priorities"):
        make(replay_buffer_class=NStepReplayBuffer)


def replay_buffer_kwargs(tmp_path):
    model = assert_learns(replay_buffer_kwargs={"sampler": "proportional", "normalize": "buffer"})
    assert model.replay_buffer._sampler.sampler.settings["normalize"] == "buffer"
    ranked = make(replay_buffer_kwargs={"sampler": "rank"})
    assert type(ranked.replay_buffer._sampler.sampler).__name__ == "RankBasedSampler"


def optimize_memory_usage(tmp_path):
    model = assert_learns(optimize_memory_usage=True)
    assert model.replay_buffer.handle_timeout_termination
    assert model.replay_buffer.nbytes < make().replay_buffer.nbytes


def handle_timeout_termination(tmp_path):
    """Pendulum never terminates, and its time limit comes after 200 steps."""
    for handled in (True, False):
        given = {} if handled else {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
        model = make(PrioritizedTD3, buffer_size=210, learning_starts=1000, **given).learn(205)
        assert model.replay_buffer.dones.sum() == 1
        assert model.replay_buffer.sample(2000).dones.any() == (not handled)


def dict_observations(tmp_path):
    model = assert_learns(**dicts())
    assert type(model.replay_buffer) is PrioritizedDictReplayBuffer
    assert set(model.replay_buffer.sample(3).observations) == {"vec", "img"}


def n_steps(tmp_path):
    for model in (
        assert_learns(n_steps=3),
        assert_learns(n_steps=3, optimize_memory_usage=True),
        assert_learns(**dicts(n_steps=3)),
    ):
        lengths = np.log(model.replay_buffer.sample(200).discounts.numpy()) / np.log(0.99)
        assert lengths.max().round() == 3


def vec_normalize(tmp_path):
    env = VecNormalize(make_vec_env("Pendulum-v1", seed=0))
    model = assert_learns(PrioritizedSAC, env, gamma=0.99)
    buffer = model.replay_buffer
    raw, seen = buffer.sample(50), buffer.sample(50, env=model._vec_normalize_env)
    assert raw.rewards.abs().max() > 1
    np.testing.assert_allclose(
        seen.rewards[:, 0], env.normalize_reward(buffer.rewards[seen.indices, 0]), rtol=1e-5
    )


def several_environments(tmp_path):
    model = assert_learns(world=make_vec_env("CartPole-v1", 3, seed=0))
    assert model.replay_buffer.probabilities.shape == (33, 3)
    assert set(model.replay_buffer.sample(300).indices % 3) == {0, 1, 2}


def callbacks(tmp_path):
    called = []
    saving = CheckpointCallback(20, str(tmp_path), save_replay_buffer=True)
    counting = ConvertCallback(lambda *_: called.append(1) or True)
    model = make().learn(STEPS, callback=[saving, counting])
    assert len(called) == STEPS
    model.load_replay_buffer(tmp_path / "rl_model_replay_buffer_20_steps")
    assert model.replay_buffer.size() == 19  # SB3 calls back before it stores the step
    assert len(np.unique(model.replay_buffer.probabilities)) > 3


def logging(tmp_path):
    class Kept(KVWriter):
        def write(self, key_values, key_excluded, step=0):
            log.update(key_values)

    log = {}
    for settings, mean in (
        ({"alpha": 0.5}, lambda buffer: buffer._sampler.sampler.sums.total[0] / buffer.size()),
        (
            {"replay_buffer_kwargs": {"sampler": "rank"}},
            lambda buffer: buffer._sampler.sampler.keys[0].sum() / buffer.size(),
        ),
    ):
        model = make(beta=lambda remaining: 0.7, **settings)
        model.set_logger(Logger(None, [Kept()]))
        model.learn(STEPS, log_interval=1)
        assert 0 < log["train/mean_weight"] <= 1
        log.clear()
        model.dump_logs()
        sampler = model.replay_buffer._sampler
        largest = sampler.sampler.largest_priority[0]
        assert log["train/beta"] == 0.7
        assert log["train/mean_weight"] == pytest.approx(sampler.last_weights.mean())
        assert 0 < log["train/mean_weight"] < 1
        assert log["train/mean_td_error"] == pytest.approx(np.abs(sampler.last_errors).mean())
        assert log["train/priority"] == pytest.approx(mean(model.replay_buffer))
        assert log["train/largest_priority"] == largest
        theirs = {"train/learning_rate", "train/loss", "train/n_updates"}
        ours = {name for name in log if name.startswith("train/")} - theirs
        assert set(re.findall(r"train/\w+", rows()["logging"][1])) == ours


def dqn_becomes_prioritized(tmp_path):
    theirs = make(DQN, n_steps=3).learn(STEPS)
    theirs.save(tmp_path / "agent")
    with pytest.raises(TypeError, match="got .*NStepReplayBuffer, which has no priorities"):
        PrioritizedDQN.load(tmp_path / "agent", env=theirs.get_env())
    model = PrioritizedDQN.load(
        tmp_path / "agent", env=theirs.get_env(), replay_buffer_class=None, alpha=0.3
    )
    assert type(model.replay_buffer) is PrioritizedReplayBuffer
    assert (model.replay_buffer.settings["alpha"], model.replay_buffer.n_steps) == (0.3, 3)
    for name, expected in theirs.policy.state_dict().items():
        assert (model.policy.state_dict()[name].cpu() == expected).all()
    model.learn(STEPS)
    assert len(np.unique(model.replay_buffer.probabilities)) > 3


def prioritized_becomes_dqn(tmp_path):
    ours = make(replay_buffer_kwargs={"sampler": "rank"}).learn(STEPS)
    assert ours.replay_buffer._sampler.last_errors.size
    ours.save(tmp_path / "agent")
    model = DQN.load(tmp_path / "agent", env=ours.get_env()).learn(STEPS)
    assert type(model.replay_buffer) is PrioritizedReplayBuffer
    assert model.replay_buffer._sampler.last_weights.size
    assert not model.replay_buffer._sampler.last_errors.size
    plain = {"replay_buffer_class": None, "replay_buffer_kwargs": {}}
    model = DQN.load(tmp_path / "agent", env=ours.get_env(), **plain).learn(STEPS)
    assert type(model.replay_buffer) is ReplayBuffer


def save_and_load_model(tmp_path):
    model = make(alpha=0.8, beta=0.7, replay_buffer_kwargs={"normalize": "buffer"}).learn(STEPS)
    model.save(tmp_path / "agent")
    loaded = PrioritizedDQN.load(tmp_path / "agent", env=model.get_env())
    assert (loaded.alpha, loaded.beta, loaded.replay_buffer.size()) == (0.8, 0.7, 0)
    before, after = (one.replay_buffer._sampler.sampler.settings for one in (model, loaded))
    assert before == after
    loaded.learn(STEPS, reset_num_timesteps=False)


def save_and_load_buffer(tmp_path):
    model = make().learn(STEPS)
    model.save_replay_buffer(tmp_path / "buffer")
    other = make(seed=9)
    other.load_replay_buffer(tmp_path / "buffer")
    for _ in range(2):
        np.testing.assert_array_equal(
            other.replay_buffer.sample(20).indices, model.replay_buffer.sample(20).indices
        )
    np.testing.assert_array_equal(
        other.replay_buffer.probabilities, model.replay_buffer.probabilities
    )
    for kind in (DQN, PrioritizedDQN):
        make(kind).save_replay_buffer(tmp_path / "buffer")
        smaller = make(kind, buffer_size=50)
        smaller.load_replay_buffer(tmp_path / "buffer")
        assert smaller.replay_buffer.buffer_size == 100


def load_other_settings(tmp_path):
    make(alpha=0.6).save_replay_buffer(tmp_path / "buffer")
    make(alpha=0.3).load_replay_buffer(tmp_path / "buffer")


def load_sb3s_buffer(tmp_path):
    make(DQN).save_replay_buffer(tmp_path / "buffer")
    make().load_replay_buffer(tmp_path / "buffer")


def truncate_last_traj(tmp_path):
    for given in (True, False):
        model = make(PrioritizedTD3, n_steps=3).learn(20)
        model.save_replay_buffer(tmp_path / "buffer")
        model.load_replay_buffer(tmp_path / "buffer", truncate_last_traj=given)
        assert model.replay_buffer.timeouts.sum() == 0
        model.learn(5)
        assert np.flatnonzero(model.replay_buffer.timeouts).tolist() == [19]


def set_env(tmp_path):
    model = make(PrioritizedTD3).learn(20)
    model.set_env(make_vec_env("Pendulum-v1", seed=5))
    model.learn(5, reset_num_timesteps=False)
    assert np.flatnonzero(model.replay_buffer.timeouts).tolist() == [19]


#: Option → what the page answers, and what shows that it is so; a refused one raises.
CASES = {
    "DQN": ("supported", lambda _: assert_learns(PrioritizedDQN)),
    "quantiles (QR-DQN)": ("supported", lambda _: assert_learns(PrioritizedQRDQN)),
    "SAC": ("supported", lambda _: assert_learns(PrioritizedSAC)),
    "TD3": ("supported", lambda _: assert_learns(PrioritizedTD3)),
    "DDPG": ("not needed", ddpg),
    "HER": ("refused", lambda _: make(replay_buffer_class=HerReplayBuffer)),
    "replay_buffer_class": ("supported", replay_buffer_class),
    "replay_buffer_class, the buffer for a loop of your own": (
        "refused",
        lambda _: make(replay_buffer_class=replay.PrioritizedReplayBuffer),
    ),
    "NStepReplayBuffer": ("not needed", nstep_replay_buffer),
    "replay_buffer_kwargs": ("supported", replay_buffer_kwargs),
    "replay_buffer_kwargs, an unknown one": (
        "refused",
        lambda _: make(replay_buffer_kwargs={"alhpa": 0.5}),
    ),
    "replay_buffer_kwargs, one of the agent's": (
        "refused",
        lambda _: make(replay_buffer_kwargs={"buffer_size": 5}),
    ),
    "replay_buffer_kwargs, β": ("refused", lambda _: make(replay_buffer_kwargs={"beta": 0.4})),
    "optimize_memory_usage": ("supported", optimize_memory_usage),
    "optimize_memory_usage, Dict": ("refused", lambda _: make(**dicts(optimize_memory_usage=True))),
    "handle_timeout_termination": ("supported", handle_timeout_termination),
    "Dict observations": ("supported", dict_observations),
    "n-step (n_steps)": ("supported", n_steps),
    "VecNormalize": ("supported", vec_normalize),
    "several environments": ("supported", several_environments),
    "callbacks": ("supported", callbacks),
    "logging": ("supported", logging),
    "PrioritizedDQN.load of a DQN": ("supported", dqn_becomes_prioritized),
    "DQN.load of a PrioritizedDQN": ("supported", prioritized_becomes_dqn),
    "save and load, model": ("supported", save_and_load_model),
    "save and load, replay buffer": ("supported", save_and_load_buffer),
    "load_replay_buffer, other settings": ("refused", load_other_settings),
    "load_replay_buffer, a buffer of SB3's": ("refused", load_sb3s_buffer),
    "truncate_last_traj": ("not needed", truncate_last_traj),
    "set_env": ("supported", set_env),
    "set_env, another number of environments": (
        "refused",
        lambda _: make().set_env(make_vec_env("CartPole-v1", 2)),
    ),
}


def rows():
    """{option: (answer, what that means)} of the page, without the marks of code."""
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    plain = [[cell.replace("`", "") for cell in row] for row in found if row[0] != "option"]
    assert len({option for option, *_ in plain}) == len(plain), "an option has two rows"
    return {option: (answer, meaning) for option, answer, meaning in plain}


def test_the_page_has_a_row_for_each_case_and_no_other():
    page = {option: answer for option, (answer, _) in rows().items()}
    assert page == {option: answer for option, (answer, _) in CASES.items()}
    assert set(page.values()) == {"supported", "refused", "not needed"}


@pytest.mark.slow
@pytest.mark.parametrize("option", CASES)
def test_an_option_does_what_the_page_says(option, tmp_path):
    answer, case = CASES[option]
    if answer != "refused":
        case(tmp_path)
        return
    with pytest.raises((AssertionError, TypeError, ValueError)) as refusal:
        case(tmp_path)
    assert str(refusal.value).replace("`", "") in rows()[option][1]
