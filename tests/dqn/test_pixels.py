"""The same algorithm from pixels: networks, learner and whole trainings on Atari games.

What a training stored and counted is compared with the same actions played again, and its networks
with PyTorch's own layers. Frames are small and games short, so that this takes seconds.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from plain_dqn import DoublePrecisionLearner, PlainLearner, PlainQNetwork
from torch import nn

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from per_tutorial.dqn import training  # noqa: E402
from per_tutorial.dqn.checkpoints import Checkpoints  # noqa: E402
from per_tutorial.dqn.config import DQNConfig  # noqa: E402
from per_tutorial.dqn.environments.atari import (  # noqa: E402
    make_atari_env,
    training_environments,
)
from per_tutorial.dqn.learner import DQNLearner  # noqa: E402
from per_tutorial.dqn.networks import QNetwork  # noqa: E402
from per_tutorial.dqn.training import epsilon_greedy, evaluate, make_replay, train  # noqa: E402
from per_tutorial.replay import Batch, Replay  # noqa: E402

pytestmark = pytest.mark.slow  # a whole training each
ACTIONS = 3
CONFIG = DQNConfig(
    env="ALE/Pong-v5",
    environments=4,
    frame_size=20,
    steps=480,
    hidden=(16,),
    batch_size=8,
    learning_starts=100,
    update_every=3,
    target_update_every=10,
    tau=1.0,
    capacity=300,
    n_step=3,
    sampler="proportional",
    double=True,
    dueling=True,
    epsilon_start=1.0,
    epsilon_end=0.5,
    epsilon_steps=300,
    precision="float32",
)


def random_frames(*shape, seed=0):
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


# The network


def plain_convolutions(stacked, run):
    """PyTorch's own layers with the weights of one run; bytes in, features out."""
    layers = []
    for layer in stacked.convolutions:
        filters, channels, kernel, _ = layer.weight[run].shape
        plain = nn.Conv2d(channels, filters, kernel, layer.stride, dtype=layer.weight.dtype)
        with torch.no_grad():
            plain.weight.copy_(layer.weight[run])
            plain.bias.copy_(layer.bias[run])
        layers += [plain, nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(-3))


class PlainPixelNetwork(PlainQNetwork):
    """`PlainQNetwork` behind convolutions, for one stack of frames or for many."""

    def __init__(self, stacked, run):
        super().__init__(stacked, run)
        self.convolutions = plain_convolutions(stacked, run).double()

    def forward(self, frames):
        return super().forward(self.convolutions(torch.as_tensor(frames).double() / 255))


@pytest.mark.parametrize(
    "shape, features",
    [((4, 64, 64), 64 * 4 * 4), ((4, 42, 42), 64 * 4 * 4), ((4, 17, 17), 64), ((6, 10, 10), 1024)],
)
def test_each_run_computes_what_pytorchs_own_layers_compute(shape, features):
    """The last ones are the boards of MinAtar, of bits."""
    network = QNetwork(shape, ACTIONS, (32,), range(2), dueling=shape[1] == 42)
    assert network.layers[0].weight.shape == (2, features, 32)
    frames = random_frames(2, 5, *shape)
    if shape[1] == 10:
        frames = frames < 50
    outputs = network(torch.from_numpy(frames))
    assert outputs.shape == (2, 5, ACTIONS)
    for run in range(2):
        shown = frames[run] * np.uint8(255) if frames.dtype == np.bool_ else frames[run]
        expected = PlainPixelNetwork(network, run)(shown)
        torch.testing.assert_close(outputs[run].double(), expected, rtol=1e-5, atol=1e-6)


def test_the_network_for_whole_frames_is_that_of_the_nature_paper():
    network = QNetwork((4, 84, 84), 6, (512,), [0])
    assert [layer.weight.shape[1:] for layer in network.convolutions] == [
        (32, 4, 8, 8),
        (64, 32, 4, 4),
        (64, 64, 3, 3),
    ]
    assert [layer.stride for layer in network.convolutions] == [4, 2, 1]
    assert sum(parameter.numel() for parameter in network.parameters()) == 1_687_206


def test_bfloat16_rounds_all_layers_but_the_last():
    frames = torch.from_numpy(random_frames(1, 50, 4, 42, 42))
    exact, rounded = (
        QNetwork((4, 42, 42), ACTIONS, (64,), [0], bfloat16=on)(frames) for on in (False, True)
    )
    assert rounded.dtype == torch.float32
    assert (rounded != rounded.to(torch.bfloat16)).any()  # as the last layer left them
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.02 * exact.abs().max().item())


# The learner


def random_batch(seed, runs=2, batch=6):
    numbers = np.random.default_rng(seed)
    shape = (runs, batch)
    return Batch(
        observations=random_frames(*shape, 4, 20, 20, seed=seed),
        actions=numbers.integers(ACTIONS, size=shape),
        rewards=numbers.normal(scale=2, size=shape).astype(np.float32),
        next_observations=random_frames(*shape, 4, 20, 20, seed=seed + 1000),
        terminated=numbers.random(shape) < 0.25,
        weights=numbers.uniform(0.1, 1, size=shape).astype(np.float32),
        indices=np.zeros(shape, dtype=np.int64),
        discounts=np.float32(0.9) ** numbers.integers(1, 4, size=shape),
    )


def test_the_learner_is_the_plain_algorithm():
    config = CONFIG.replace(target_update_every=5, max_grad_norm=0.5)
    learner = DoublePrecisionLearner(config, (4, 20, 20), ACTIONS, [5, 6])
    twins = [PlainLearner(config, PlainPixelNetwork(learner.online, run)) for run in (0, 1)]
    for seed in range(8):
        batch = random_batch(seed)
        update = learner.update(batch, step_size=0.001)
        for run, twin in enumerate(twins):
            fields = (field[run] for field in (*batch[:5], batch.discounts))
            td_errors, loss = twin.update(zip(*fields, strict=True), batch.weights[run], 0.001)
            np.testing.assert_allclose(update.td_errors[run], td_errors, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(update.losses[run], loss, rtol=1e-8, atol=1e-8)


# What a training stores and counts


def stored_ids(storage):
    """The number of the transition in each slot of the first run."""
    newest = storage.added[0] - 1
    return newest - (newest - np.arange(storage.capacity)) % storage.capacity


class Recorded(Replay):
    """Notes the actions, and the schedules' values where they arrive."""

    def __init__(self, config, seeds):
        replay = make_replay(config, (4, config.frame_size, config.frame_size), seeds)
        super().__init__(replay.storage, replay.sampler, replay.runs)
        self.actions, self.betas = [], []

    def add(self, observation, action, *others, **options):
        self.actions.append(action.reshape(-1))
        super().add(observation, action, *others, **options)

    def sample(self, batch_size, beta, **options):
        self.betas.append(beta)
        return super().sample(batch_size, beta, **options)


class Played(NamedTuple):
    """A step of every environment; the fields have a row for each."""

    observation: np.ndarray
    action: np.ndarray
    next_observation: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def test_the_memory_holds_what_was_played():
    """Every transition, rebuilt from frames; Pong, with games cut short so that some end."""
    config = CONFIG.replace(steps=1600, max_episode_steps=130, update_every=40)
    replay = Recorded(config, [7])
    train(config, 7, replay=replay)
    environments, steps = training_environments(config, [7]), []
    for action in replay.actions:
        steps.append(Played(environments.observation, action, *environments.step(action)))
    slots = np.arange(config.capacity)[None]
    rows, discounts = replay.storage.n_step_transitions(slots)
    for slot, number in enumerate(stored_ids(replay.storage)):
        t, k = divmod(number, config.environments)
        window = [Played(*(field[k] for field in step)) for step in steps[t : t + 3]]
        over = [step.terminated or step.truncated for step in window]
        window = window[: over.index(True) + 1 if any(over) else 3]
        assert discounts[0, slot] == np.float32(0.99 ** len(window) * (not window[-1].terminated))
        mine = {name: field[0, slot] for name, field in rows.items()}
        np.testing.assert_array_equal(mine["observation"], window[0].observation)
        assert mine["action"] == window[0].action
        returns = sum(0.99**j * step.reward for j, step in enumerate(window))
        assert mine["reward"] == pytest.approx(returns)
        for name in ("next_observation", "terminated", "truncated"):
            np.testing.assert_array_equal(mine[name], getattr(window[-1], name))
    assert rows["truncated"].any() and len(set(discounts[0])) == 3 and rows["reward"].any()


GAME = CONFIG.replace(env="ALE/Asterix-v5", max_episode_steps=70, update_every=40)


def test_returns_are_scores_of_whole_games():
    """Asterix is paid 50 points a time: nothing of that is clipped, nothing counted twice."""
    replay = Recorded(GAME, [3])
    history = train(GAME, 3, replay=replay)
    games, episodes = training_environments(GAME, [3]).vector_env, []
    scores, lengths = np.zeros((2, GAME.environments))
    for t, action in enumerate(replay.actions, start=1):
        _, rewards, terminated, truncated, _ = games.step(action)
        scores, lengths = scores + rewards, lengths + 1
        for k in np.flatnonzero(terminated | truncated):
            episodes.append((0, t * GAME.environments, scores[k], lengths[k]))
            scores[k] = lengths[k] = 0
    assert history.episodes == episodes
    assert len(episodes) >= 4 and max(score for _, _, score, _ in episodes) >= 50
    assert np.abs(replay.storage.rows["reward"]).max() == 1
    assert {type(value) for episode in history.episodes for value in episode} == {int, float}


def test_steps_are_those_of_all_environments_together(monkeypatch):
    """ε, β and η follow them; one update in 3 of them, from when 100 transitions are stored."""
    epsilons, step_sizes = [], []

    def act(agent, observations, epsilon, streams):
        epsilons.append(epsilon)
        return epsilon_greedy(agent, observations, epsilon, streams)

    class Learner(DQNLearner):
        def update(self, batch, step_size):
            step_sizes.append(step_size)
            return super().update(batch, step_size)

    monkeypatch.setattr(training, "epsilon_greedy", act)
    monkeypatch.setattr(training, "DQNLearner", Learner)
    replay = Recorded(CONFIG, [0])
    history = train(CONFIG, 0, replay=replay)
    assert epsilons == [CONFIG.epsilon(t) for t in range(0, 480, 4)]
    updates = [k for k in range(96, 480) if k % 3 == 0]  # the step that made 100 began at 96
    assert replay.betas == [CONFIG.beta(k) for k in updates]
    assert step_sizes == [CONFIG.step_size(k) for k in updates]
    assert history.step == replay.storage.added[0] == 480
    assert history.log_steps == [*range(4, 481, 4)]
    assert history.measure("epsilon")[:, 0].tolist() == epsilons
    assert history.measure("beta")[-1, 0] == CONFIG.beta(479)


# Runs and memories


SHORT = CONFIG.replace(steps=320, max_episode_steps=60)


def test_a_run_explores_the_same_games_in_any_stack():
    """They learn at the end, as that rounds the sums of one and of two networks differently."""
    config = SHORT.replace(steps=80, epsilon_end=1.0, learning_starts=80, update_every=79)
    stack, alone = Recorded(config, [5, 6]), Recorded(config, [6])
    train(config, [5, 6], replay=stack)
    train(config, [6], replay=alone)
    actions = np.array(stack.actions)
    np.testing.assert_array_equal(actions[:, 4:], alone.actions)
    assert (actions[:, :4] != actions[:, 4:]).any()
    slots = np.arange(80)[None].repeat(2, axis=0)
    seen = stack.storage.n_step_transitions(slots)[0]["observation"]
    np.testing.assert_array_equal(
        seen[1], alone.storage.n_step_transitions(slots[:1])[0]["observation"][0]
    )
    assert (seen[0] != seen[1]).any()


def test_a_training_that_was_stopped_goes_on_in_new_games(tmp_path):
    """All is as it was; the games that ran are cut, as by a time limit, and counted nowhere."""
    config = SHORT.replace(max_episode_steps=40)

    def stop(history):
        if history.step == 160:
            raise KeyboardInterrupt

    def training(replay, **options):
        checkpoints = Checkpoints(tmp_path, every=98)  # no multiple of 4 environments
        return train(config, 1, replay=replay, checkpoints=checkpoints, **options)

    stopped, resumed = Recorded(config, [1]), Recorded(config, [1])
    with pytest.raises(KeyboardInterrupt):
        training(stopped, callbacks=[stop])
    history = training(resumed)
    assert history.step == resumed.storage.added[0] == 320
    assert len(resumed.actions) == (320 - 100) / 4
    assert history.agent.updates == len([k for k in range(96, 320) if k % 3 == 0])
    ids = stored_ids(resumed.storage)
    rows = {number: resumed.storage.rows[0, slot] for slot, number in enumerate(ids)}
    assert all(rows[number]["truncated"] for number in range(96, 100))
    store = resumed.storage.store
    np.testing.assert_array_equal(store.depths[100 // 4 % store.rows], 1)  # nothing from before
    assert [length for *_, length in history.episodes] == [40] * 4
    assert np.isfinite(history.measure("held_out_q")[24:]).all()


# Evaluation


def test_evaluation_plays_games_in_the_reference_pipeline():
    """The greedy policy by hand, one game after another; scores are not clipped."""
    seeds = [0, 3]
    agent = DQNLearner(GAME, (4, 20, 20), 9, seeds)
    returns = evaluate(agent, 2, seed=50, epsilon=0)
    assert returns.shape == (len(seeds), 2) and returns.max() > 1
    for run, k in np.ndindex(*returns.shape):
        env = make_atari_env(GAME.env, size=20, max_frames=4 * 70)
        observation, _ = env.reset(seed=50 + 2 * seeds[run] + k)
        policy, score, over = agent.policy(run), 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            score, over = score + reward, terminated or truncated
        assert returns[run, k] == score
        env.close()
