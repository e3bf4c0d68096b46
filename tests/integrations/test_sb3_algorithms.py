"""Stable-Baselines3's agents with prioritised replay: they learn what SB3's learn, weighted."""

import copy
import inspect
import warnings

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import torch as th
from gymnasium import spaces
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import set_random_seed
from toy_samplers import LowSlots

from per_tutorial.integrations.sb3 import (
    PrioritizedDQN,
    PrioritizedQRDQN,
    PrioritizedSAC,
    PrioritizedTD3,
)
from per_tutorial.replay.samplers import SAMPLERS

ENV_SPECS = {DQN: "CartPole-v1", QRDQN: "CartPole-v1", SAC: "Pendulum-v1", TD3: "Pendulum-v1"}
PAIRS = [
    (DQN, PrioritizedDQN),
    (QRDQN, PrioritizedQRDQN),
    (SAC, PrioritizedSAC),
    (TD3, PrioritizedTD3),
]
SMALL = {
    "buffer_size": 200,
    "learning_starts": 20,
    "batch_size": 16,
    "policy_kwargs": {"net_arch": [8]},
    "train_freq": 4,
}


def make(kind, world=None, **kwargs):
    if world is None:
        world = next(ENV_SPECS[theirs] for theirs in ENV_SPECS if issubclass(kind, theirs))
    model = kind(
        "MlpPolicy", world, **(copy.deepcopy(SMALL) | {"seed": 3, "device": "cpu"} | kwargs)
    )
    model.set_logger(configure(None, []))
    return model


def short_episodes(kind):
    """A world in which episodes end and time runs out, with rewards as small as first values."""
    env = gym.make(ENV_SPECS[kind], max_episode_steps=9)
    small = isinstance(env.action_space, spaces.Discrete)
    return gym.wrappers.TransformReward(env, lambda reward: reward / 10) if small else env


def learned(model, sample):
    """The parameters after each `train` of an agent that gets its minibatches from ``sample``."""
    model.replay_buffer.sample, train, after = sample, model.train, []

    def noted(*args, **kwargs):
        train(*args, **kwargs)
        after.append({k: each.numpy().copy() for k, each in model.policy.state_dict().items()})

    model.train = noted
    model.learn(150)
    return after


@pytest.mark.parametrize("theirs, ours", PAIRS)
@pytest.mark.slow
def test_with_alpha_0_an_agent_is_sb3s_own_step_by_step(theirs, ours):
    """SB3's own agent is given the minibatches that ours draws, from a buffer of SB3's own."""
    given = {"n_steps": 1 if theirs is SAC else 3, "learning_rate": 0.01, "buffer_size": 100}
    given |= {"target_noise_clip": 0.1} if theirs is TD3 else {}  # which clips most of it
    given |= {"target_update_interval": 30, "max_grad_norm": 0.1} if theirs in (DQN, QRDQN) else {}
    given |= {"use_sde": True, "target_update_interval": 2} if theirs is SAC else {}
    model = make(ours, short_episodes(theirs), alpha=0.0, **given)
    buffer, drawn, errors = model.replay_buffer, [], []
    sample, update = buffer.sample, buffer.update_priorities
    buffer.update_priorities = lambda ids, told: (errors.append(told.numpy()), update(ids, told))
    got = learned(model, lambda *asked, **env: drawn.append(sample(*asked, **env)) or drawn[-1])
    twin = make(theirs, short_episodes(theirs), **given)
    rows = iter([batch.indices % 100 for batch in drawn])
    expected = learned(twin, lambda *_, **env: twin.replay_buffer._get_samples(next(rows), **env))
    assert len(got) == len(expected) > 30
    for mine, sb3s in zip(got, expected, strict=True):
        for name in sb3s:
            np.testing.assert_allclose(mine[name], sb3s[name], rtol=1e-5, atol=1e-6, err_msg=name)
    assert buffer.timeouts.any()
    if theirs in (DQN, QRDQN):  # Huber's loss shows a target only where |δ| < 1
        assert (np.abs(errors) < 1).mean() > 0.9
        assert any(batch.dones.any() for batch in drawn)


def written_back(model, batch):
    """The ids and TD errors that `train` writes back after this minibatch."""
    told = []
    model.replay_buffer.sample = lambda batch_size, env=None: batch
    model.replay_buffer.update_priorities = lambda *given: told.extend(given)
    model.train(1, 16)
    return told


def huber(errors):
    return np.where(np.abs(errors) < 1, errors**2 / 2, np.abs(errors) - 0.5)


def test_each_entry_of_the_loss_is_multiplied_by_its_weight():
    model = make(PrioritizedDQN, learning_rate=0.0).learn(60)
    batch = model.replay_buffer.sample(16)
    batch.rewards[:] *= 3
    batch.dones[:] = 1  # the target is the reward
    batch.weights = th.linspace(0.1, 1, 16)[:, None]
    with th.no_grad():
        values = model.q_net(batch.observations).gather(1, batch.actions)
    errors = (batch.rewards - values).numpy()
    indices, td_errors = written_back(model, batch)
    loss = (batch.weights.numpy() * huber(errors)).mean()
    np.testing.assert_allclose(model.logger.name_to_value["train/loss"], loss, rtol=1e-5)
    assert indices is batch.indices
    np.testing.assert_allclose(td_errors, errors, rtol=1e-4, atol=1e-5)  # raw, not clipped
    assert np.abs(errors).max() > 1


@pytest.mark.parametrize("kind, half", [(PrioritizedSAC, 0.5), (PrioritizedTD3, 1.0)])
def test_a_priority_is_the_mean_error_of_all_critics(kind, half):
    model = make(kind, learning_rate=0.0, ent_coef=0.0) if half == 0.5 else make(kind)
    model.learn(40)
    for group in model.critic.optimizer.param_groups + model.actor.optimizer.param_groups:
        group["lr"] = 0.0
    batch = model.replay_buffer.sample(16)
    batch.dones[:] = 1  # the target is the reward
    batch.weights = th.linspace(0.1, 1, 16)[:, None]
    with th.no_grad():
        critics = [q.numpy() for q in model.critic(batch.observations, batch.actions)]
    errors = [batch.rewards.numpy() - q for q in critics]
    _, td_errors = written_back(model, batch)
    np.testing.assert_allclose(td_errors, (np.abs(errors[0]) + np.abs(errors[1])) / 2, rtol=1e-5)
    loss = half * sum((batch.weights.numpy() * each**2).mean() for each in errors)
    np.testing.assert_allclose(model.logger.name_to_value["train/critic_loss"], loss, rtol=1e-5)


def test_the_priority_of_quantiles_is_the_error_of_their_means():
    model = make(PrioritizedQRDQN).learn(40)
    batch = model.replay_buffer.sample(16)
    batch.dones[:] = 1  # the target is the reward
    with th.no_grad():
        values = model.quantile_net(batch.observations).mean(dim=1).gather(1, batch.actions)
    _, td_errors = written_back(model, batch)
    expected = (batch.rewards - values)[:, 0]
    np.testing.assert_allclose(td_errors, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "beta, expected",
    [
        (None, lambda t: 0.4 + 0.6 * t / 200),
        (0.7, lambda t: 0.7),
        (lambda remaining: 1 - remaining, lambda t: t / 200),
    ],
)
def test_beta_follows_its_schedule(beta, expected):
    model, betas = make(PrioritizedDQN, beta=beta, train_freq=3), []
    buffer = model.replay_buffer
    sample = buffer.sample
    buffer.sample = lambda *given, **env: betas.append(buffer.beta) or sample(*given, **env)
    model.learn(200)  # which are 201 steps, one more than the schedule is made for
    np.testing.assert_allclose(betas, [min(expected(t), 1) for t in range(21, 202, 3)])
    assert model.logger.name_to_value["train/beta"] == pytest.approx(min(expected(201), 1))


def test_a_beta_that_falls_when_an_agent_is_continued_is_said():
    with warnings.catch_warnings(action="error"):
        again = {"total_timesteps": 40, "reset_num_timesteps": False}
        make(PrioritizedDQN, beta=0.7).learn(40).learn(**again)
        model = make(PrioritizedDQN).learn(0).learn(40)
    with pytest.warns(UserWarning, match="^beta: falls from 1.00 to 0.70, since its schedule"):
        model.learn(**again)


def parameters(model):
    return np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])


@pytest.mark.parametrize("given", ["global", "model", "own", "sampler of one's own"])
@pytest.mark.slow
def test_a_seed_reaches_the_buffer_as_in_sb3(given, monkeypatch):
    monkeypatch.setitem(SAMPLERS, "low slots", LowSlots)

    def run(seed):
        if given == "global":
            set_random_seed(seed)
        th.manual_seed(9)  # the same network at first
        own = {"seed": seed} if given == "own" else {}
        own |= {"sampler": "low slots"} if given.startswith("sampler") else {}
        env = make_vec_env("CartPole-v1", seed=5)
        seed_of_agent = 3 if given == "own" else None
        model = make(PrioritizedDQN, env, seed=seed_of_agent, replay_buffer_kwargs=own)
        if given not in ("global", "own"):
            model.set_random_seed(seed)
        return parameters(model.learn(80))

    first = run(0)
    np.testing.assert_array_equal(first, run(0))
    assert (first != run(1)).any()


class Endless(gym.Env):
    """Its observation says how often it was reset, and how often it was stepped since."""

    observation_space = spaces.Box(0, 1e4, (2,), np.float32)
    action_space = spaces.Discrete(2)
    resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets, self.steps = self.resets + 1, 0
        return np.array([self.resets, 0], np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.array([self.resets, self.steps], np.float32), 1.0, False, False, {}


@pytest.mark.parametrize("loaded", [None, True, False])
def test_returns_do_not_run_on_from_one_learn_into_the_next(loaded, tmp_path):
    model = make(PrioritizedDQN, Endless(), n_steps=3, train_freq=1)
    model.learn(10)
    if loaded is not None:
        model.save_replay_buffer(tmp_path / "buffer")
        model.load_replay_buffer(tmp_path / "buffer", truncate_last_traj=loaded)
    model.learn(5, reset_num_timesteps=False)  # the same episode goes on
    model.learn(10)
    model.set_env(model.get_env())  # where the next learn begins a new episode
    model.learn(5, reset_num_timesteps=False)
    batch = model.replay_buffer.sample(200)
    assert (batch.observations[:, 0] == batch.next_observations[:, 0]).all()
    lengths = (batch.next_observations - batch.observations)[:, 1]
    np.testing.assert_allclose(batch.discounts[:, 0], 0.99**lengths, rtol=1e-6)
    short = set(batch.indices[lengths < 3].tolist())
    assert short == {13, 14, 23, 24, 28, 29} | ({8, 9} if loaded else set())
    assert (batch.dones == 0).all()


def test_help_shows_the_arguments_of_sb3_and_ours():
    for theirs, ours in PAIRS:
        expected = [*inspect.signature(theirs).parameters, "alpha", "beta"]
        assert [*inspect.signature(ours).parameters] == expected
        own = type("Own", (ours,), {"__init__": lambda self, mine: None})
        assert [*inspect.signature(own).parameters] == ["mine"]


@pytest.mark.parametrize("kind, kappa", [(PrioritizedTD3, 1.0), (PrioritizedDQN, 2.0)])
def test_lap_is_refused_without_its_loss(kind, kappa):
    make(PrioritizedDQN, replay_buffer_kwargs={"sampler": "lap"})
    with pytest.raises(ValueError, match=f"^replay_buffer_kwargs: .* got kappa={kappa:g}$"):
        make(kind, replay_buffer_kwargs={"sampler": "lap", "kappa": kappa})


def test_n_steps_may_come_as_sb3_advises_for_buffers_of_ones_own(recwarn):
    model = make(PrioritizedDQN, replay_buffer_kwargs={"n_steps": 3, "gamma": 0.99})
    assert model.replay_buffer.n_steps == 3
    model = make(PrioritizedDQN, n_steps=5, gamma=0.9)
    assert (model.replay_buffer.n_steps, model.replay_buffer.gamma) == (5, 0.9)
    assert model.n_steps == 5
    assert not [each for each in recwarn if "n_steps" in str(each.message)]


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"replay_buffer_class": HerReplayBuffer}, TypeError, "HER's relabelled goals are not"),
        ({"replay_buffer_class": ReplayBuffer}, TypeError, r"\.ReplayBuffer; others have no prior"),
        ({"replay_buffer_kwargs": {"beta": 0.4}}, TypeError, "unexpected keyword argument .beta."),
        ({"beta": 1.5}, ValueError, "returns: must be in"),
        ({"beta": lambda remaining: 2 * remaining}, ValueError, "returns: must be in"),
        ({"beta": "linear"}, TypeError, "beta, or what its schedule returns: must be a number"),
        ({"alpha": 0.5, "replay_buffer_kwargs": {"alpha": 0.6}}, ValueError, "must be the agent's"),
        ({"replay_buffer_kwargs": {"gamma": 0.5}}, ValueError, "gamma must be the agent's, 0.99"),
        ({"n_steps": 2, "replay_buffer_kwargs": {"n_steps": 3}}, ValueError, "n_steps must be"),
    ],
)
def test_what_cannot_be_served_is_refused_when_the_agent_is_built(changes, error, message):
    with pytest.raises(error, match=message):
        make(PrioritizedDQN, **changes)
