"""Stable-Baselines3's agents with prioritised replay: they learn what SB3's learn, weighted."""

import copy
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
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecNormalize

from per_tutorial.integrations.sb3 import (
    FrameReplayBuffer,
    PrioritizedDictReplayBuffer,
    PrioritizedDQN,
    PrioritizedQRDQN,
    PrioritizedReplayBuffer,
    PrioritizedSAC,
    PrioritizedTD3,
)
from per_tutorial.integrations.sb3.algorithms import weighted_mean
from per_tutorial.integrations.sb3.samples import PrioritizedSamples

ENV_SPECS = {DQN: "CartPole-v1", QRDQN: "CartPole-v1", SAC: "Pendulum-v1", TD3: "Pendulum-v1"}
PAIRS = [
    (DQN, PrioritizedDQN),
    (QRDQN, PrioritizedQRDQN),
    (SAC, PrioritizedSAC),
    (TD3, PrioritizedTD3),
]
OURS = [ours for _, ours in PAIRS]
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


def trained_on(model, minibatches):
    """The parameters of a model after its `train` has been given these minibatches."""
    waiting = iter(minibatches)
    model.replay_buffer.sample = lambda batch_size, env=None: next(waiting)
    if isinstance(model.replay_buffer, PrioritizedReplayBuffer):
        model.replay_buffer.update_priorities = lambda indices, td_errors: None
    th.manual_seed(7)
    model.train(len(minibatches), batch_size=16)
    return {name: array.numpy() for name, array in model.policy.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("theirs, ours", PAIRS)
def test_the_same_minibatches_make_the_same_agent(theirs, ours, n_steps):
    model = make(theirs, n_steps=n_steps).learn(60)
    twin = make(ours, n_steps=n_steps, alpha=0.0, beta=0.0).learn(24)
    twin.set_parameters(copy.deepcopy(model.get_parameters()))
    twin._n_updates = model._n_updates  # TD3 delays its actor by them
    if theirs is SAC:
        twin.log_ent_coef.data[:] = model.log_ent_coef.data
    minibatches = [model.replay_buffer.sample(16) for _ in range(10)]
    ones = [
        PrioritizedSamples(*each).with_draw(th.ones(16, 1), np.arange(16)) for each in minibatches
    ]
    assert (minibatches[0].discounts is None) == (n_steps == 1)
    before = copy.deepcopy(model.policy.state_dict())
    expected, got = trained_on(model, minibatches), trained_on(twin, ones)
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    assert any((before[name].numpy() != expected[name]).any() for name in expected)


def huber(errors):
    return np.where(np.abs(errors) < 1, errors**2 / 2, np.abs(errors) - 0.5)


def test_each_entry_of_the_loss_is_multiplied_by_its_weight():
    model = make(PrioritizedDQN, learning_rate=0.0).learn(60)
    batch = model.replay_buffer.sample(16)
    batch.rewards[:] *= 3
    weights = th.linspace(0.1, 1, 16)[:, None]
    batch.weights = weights
    with th.no_grad():
        following = model.q_net_target(batch.next_observations).max(dim=1)[0].numpy()
        values = model.q_net(batch.observations).numpy()
    values = values[np.arange(16), batch.actions[:, 0].numpy()]
    targets = batch.rewards[:, 0].numpy() + 0.99 * (1 - batch.dones[:, 0].numpy()) * following
    errors = targets - values
    model.replay_buffer.sample = lambda batch_size, env=None: batch
    returned = []
    model.replay_buffer.update_priorities = lambda *told: returned.append(told)
    model.train(1, 16)
    np.testing.assert_allclose(
        model.logger.name_to_value["train/loss"],
        (weights[:, 0].numpy() * huber(errors)).mean(),
        rtol=1e-5,
    )
    [(indices, td_errors)] = returned
    assert indices is batch.indices
    np.testing.assert_allclose(td_errors[:, 0], errors, rtol=1e-4, atol=1e-5)  # raw, not clipped
    assert np.abs(errors).max() > 1


def test_the_priorities_are_the_td_errors_of_the_minibatch():
    model = make(PrioritizedDQN, learning_rate=0.0, alpha=1.0).learn(40)
    drawn = []
    sample = model.replay_buffer.sample

    def remember(*args, **kwargs):
        drawn.append(sample(*args, **kwargs))
        return drawn[-1]

    model.replay_buffer.sample = remember
    model.train(30, 16)
    buffer = model.replay_buffer
    with th.no_grad():
        following = model.q_net_target(th.tensor(buffer.next_observations[:40, 0])).max(dim=1)[0]
        values = model.q_net(th.tensor(buffer.observations[:40, 0]))
    values = values[np.arange(40), buffer.actions[:40, 0, 0]].numpy()
    alive = 1 - buffer.dones[:40, 0] * (1 - buffer.timeouts[:40, 0])
    errors = np.abs(buffer.rewards[:40, 0] + 0.99 * alive * following.numpy() - values) + 1e-6
    seen = np.unique(np.concatenate([batch.indices for batch in drawn]))
    assert len(seen) > 20
    shares = buffer.probabilities[seen, 0]
    np.testing.assert_allclose(shares / shares.sum(), errors[seen] / errors[seen].sum(), rtol=1e-4)


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
    model.replay_buffer.sample = lambda batch_size, env=None: batch
    returned = []
    model.replay_buffer.update_priorities = lambda indices, td_errors: returned.append(td_errors)
    model.train(1, 16)
    np.testing.assert_allclose(returned[0], (np.abs(errors[0]) + np.abs(errors[1])) / 2, rtol=1e-5)
    loss = half * sum((batch.weights.numpy() * each**2).mean() for each in errors)
    np.testing.assert_allclose(model.logger.name_to_value["train/critic_loss"], loss, rtol=1e-5)


def test_weights_of_another_shape_are_refused():
    with pytest.raises(AssertionError):
        weighted_mean(th.ones(4, 1), th.ones(4))
    assert weighted_mean(th.tensor([[1.0], [3.0]]), th.tensor([[1.0], [0.5]])).item() == 1.25


def test_the_loss_of_quantiles_is_that_of_sb3_contrib():
    from sb3_contrib.common.utils import quantile_huber_loss

    from per_tutorial.integrations.sb3.quantiles import quantile_losses

    quantiles, targets = 3 * th.randn(7, 5), 3 * th.randn(7, 5)
    ours = quantile_losses(quantiles, targets)
    assert ours.shape == (7, 1)
    np.testing.assert_allclose(ours.mean(), quantile_huber_loss(quantiles, targets), rtol=1e-6)


class Watch(BaseCallback):
    def __init__(self):
        super().__init__()
        self.betas = []

    def _on_step(self):
        self.betas.append(self.model.replay_buffer.beta)
        return True


@pytest.mark.slow
def test_beta_follows_its_schedule():
    for beta, expected in [
        (None, lambda t: 0.4 + 0.6 * t / 200),
        (0.7, lambda t: 0.7),
        (lambda remaining: 1 - remaining, lambda t: t / 200),
    ]:
        watch = Watch()
        model = make(PrioritizedDQN, beta=beta, train_freq=1).learn(200, callback=watch)
        times = np.arange(30, 199)
        np.testing.assert_allclose(
            np.array(watch.betas)[times + 1], [expected(t + 1) for t in times]
        )
        assert model.logger.name_to_value["train/beta"] == pytest.approx(expected(200))


@pytest.mark.parametrize("kind", OURS)
def test_the_same_seed_makes_the_same_agent(kind):
    def run(seed):
        model = make(kind, seed=seed, n_steps=2).learn(80)
        return parameters(model)

    first = run(1)
    np.testing.assert_array_equal(first, run(1))
    assert (first != run(2)).any()


def parameters(model):
    return np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])


@pytest.mark.parametrize("given", ["global", "model", "own"])
def test_a_seed_reaches_the_buffer_as_in_sb3(given):
    def run(seed):
        if given == "global":
            set_random_seed(seed)
        th.manual_seed(9)  # the same network at first
        own = {"replay_buffer_kwargs": {"seed": seed}} if given == "own" else {}
        env = make_vec_env("CartPole-v1", seed=5)
        model = make(PrioritizedDQN, env, seed=3 if given == "own" else None, **own)
        if given == "model":
            model.set_random_seed(seed)
        return parameters(model.learn(80))

    first = run(0)
    np.testing.assert_array_equal(first, run(0))
    assert (first != run(1)).any()


def test_alpha_is_the_samplers_own_where_it_is_left_out(tmp_path):
    model = make(PrioritizedDQN)
    assert model.alpha == 0.6
    model.save(tmp_path / "agent")
    ranked = {"replay_buffer_kwargs": {"sampler": "rank"}}
    assert make(PrioritizedDQN, **ranked).alpha == 0.7
    loaded = PrioritizedDQN.load(tmp_path / "agent", env=model.get_env(), **ranked)
    assert loaded.alpha == loaded.replay_buffer.settings["alpha"] == 0.7
    uniform = make(PrioritizedDQN, replay_buffer_kwargs={"sampler": "uniform"})
    assert uniform.alpha is None


def test_a_beta_that_falls_back_in_a_continued_training_is_told():
    model = make(PrioritizedDQN).learn(60)
    with pytest.warns(UserWarning, match="^beta: falls from 1.00 to 0.70, since its schedule"):
        model.learn(60, reset_num_timesteps=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(PrioritizedDQN, beta=0.7).learn(60).learn(20, reset_num_timesteps=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize(
    "changes",
    [
        {"train_freq": (1, "episode"), "gradient_steps": 2},
        {"gradient_steps": -1, "n_steps": 3},
        {"optimize_memory_usage": True},
        {"replay_buffer_kwargs": {"sampler": "rank", "alpha": 0.9}},
        {"replay_buffer_kwargs": {"sampler": "uniform", "handle_timeout_termination": False}},
        {"replay_buffer_kwargs": {"normalize": "buffer", "priority_epsilon": 0.01}},
    ],
    ids=str,
)
def test_options(kind, changes):
    model = make(kind, **changes)
    model.learn(50 if "episode" not in str(changes) else 210)
    assert model._n_updates > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", OURS)
def test_several_environments_over_one_tree(kind):
    world = ENV_SPECS[next(theirs for theirs, ours in PAIRS if ours is kind)]
    model = make(kind, make_vec_env(world, 3, seed=0), n_steps=2, train_freq=1).learn(240)
    buffer = model.replay_buffer
    assert buffer.probabilities.shape == (66, 3)
    batch = buffer.sample(600)
    assert set(batch.indices % 3) == {0, 1, 2}
    assert len(np.unique(np.round(buffer.probabilities, 12))) > 20


@pytest.mark.parametrize("n_envs", [1, 2])
def test_normalized_environments(n_envs):
    env = VecNormalize(make_vec_env("Pendulum-v1", n_envs, seed=0))
    model = make(PrioritizedSAC, env, n_steps=2).learn(60)
    batch = model.replay_buffer.sample(50, env=model._vec_normalize_env)
    assert batch.observations.mean(0).abs().max() < 1.5
    assert batch.rewards.abs().max() <= 20
    assert np.abs(model.replay_buffer.observations[:, :, 2]).max() > 1  # stored as they were


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


@pytest.mark.filterwarnings("ignore:The last trajectory in the replay buffer will be truncated")
@pytest.mark.parametrize("optimize_memory_usage", [False, True])
def test_returns_do_not_run_on_from_one_learn_into_the_next(optimize_memory_usage):
    form = {"optimize_memory_usage": optimize_memory_usage}
    model = make(PrioritizedDQN, Endless(), n_steps=3, train_freq=1, **form)
    model.learn(10)
    model.learn(5, reset_num_timesteps=False)  # the same episode goes on
    model.learn(10)
    batch = model.replay_buffer.sample(200)
    assert (batch.observations[:, 0] == batch.next_observations[:, 0]).all()
    lengths = (batch.next_observations - batch.observations)[:, 1]
    np.testing.assert_allclose(batch.discounts[:, 0], 0.99**lengths, rtol=1e-6)
    short = set(batch.indices[lengths < 3].tolist())
    assert short == {13, 14, 23, 24}
    assert (batch.dones == 0).all()


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
        ({"replay_buffer_kwargs": {"beta": 0.4}}, TypeError, "must not have beta, which the agent"),
        ({"replay_buffer_class": FrameReplayBuffer}, ValueError, "must be a Box of the shape"),
        ({"replay_buffer_class": PrioritizedDictReplayBuffer}, ValueError, "must be a Dict"),
        ({"alpha": 2.0}, ValueError, "alpha: must be in"),
        ({"beta": 1.5}, ValueError, "beta: must be in"),
        ({"beta": lambda remaining: 2 * remaining}, ValueError, "beta: must be in"),
        ({"beta": "linear"}, TypeError, "beta: must be a number, or a schedule"),
        ({"alpha": 0.5, "replay_buffer_kwargs": {"alpha": 0.6}}, ValueError, "must be the agent's"),
        ({"replay_buffer_kwargs": {"gamma": 0.5}}, ValueError, "gamma must be the agent's, 0.99"),
        ({"n_steps": 2, "replay_buffer_kwargs": {"n_steps": 3}}, ValueError, "n_steps must be"),
        ({"replay_buffer_kwargs": {"colour": 1}}, TypeError, "colour"),
        ({"replay_buffer_kwargs": {"sampler": "best"}}, ValueError, "sampler: must be one of"),
    ],
)
def test_what_cannot_be_served_is_refused_when_the_agent_is_built(changes, error, message):
    with pytest.raises(error, match=message):
        make(PrioritizedDQN, **changes)


@pytest.mark.parametrize("kind", OURS)
def test_an_unknown_argument_is_named_with_those_that_there_are(kind):
    with pytest.raises(TypeError) as refusal:
        make(kind, alhpa=0.5)
    said, _, listed = str(refusal.value).partition("its settings are: ")
    assert said == f"alhpa: {kind.__name__} has no such setting; "
    names = listed.split(", ")
    assert names[:2] == ["alpha", "beta"] and "_init_setup_model" not in names
    assert {"learning_rate", "replay_buffer_kwargs", "gamma"} <= set(names)
    assert len(set(names)) == len(names)


def test_an_argument_of_a_subclass_is_its_own():
    class Named(PrioritizedDQN):
        def __init__(self, *args, name, **kwargs):
            super().__init__(*args, **kwargs)
            self.name = name

    assert make(Named, name="mine").name == "mine"
    with pytest.raises(TypeError, match="^nmae: Named has no such setting"):
        make(Named, name="mine", nmae="mine")


@pytest.mark.slow
def test_an_agent_learns_to_balance():
    """Eleven trainings, on two kinds of processors, reached from 87 to 500; at random it is 22."""
    model = make(
        PrioritizedDQN,
        learning_rate=1e-3,
        batch_size=32,
        buffer_size=6000,
        learning_starts=200,
        target_update_interval=100,
        train_freq=2,
        gradient_steps=2,
        exploration_fraction=0.3,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
    ).learn(6000)
    returned, _ = evaluate_policy(model, make_vec_env("CartPole-v1", 1, seed=9), 10, warn=False)
    assert returned > 60
