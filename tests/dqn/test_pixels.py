"""The same algorithm from pixels: networks, learner and whole trainings on Atari games.

What a training stored and counted is compared with the same actions played again, and its networks
with PyTorch's own layers. Frames are small and games short, so that this takes seconds.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from plain_dqn import DoublePrecisionLearner, PlainLearner, PlainQNetwork, needs_compiler
from torch import nn

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from per_tutorial.__main__ import main  # noqa: E402
from per_tutorial.dqn import training  # noqa: E402
from per_tutorial.dqn.checkpoints import Checkpoints  # noqa: E402
from per_tutorial.dqn.config import DQNConfig  # noqa: E402
from per_tutorial.dqn.environments.atari import (  # noqa: E402
    AtariEnvironments,
    make_atari_environments,
    make_atari_reference,
)
from per_tutorial.dqn.learner import DQNLearner  # noqa: E402
from per_tutorial.dqn.networks import QNetwork  # noqa: E402
from per_tutorial.dqn.training import epsilon_greedy, evaluate, make_replay, train  # noqa: E402
from per_tutorial.replay import Batch, Replay  # noqa: E402
from per_tutorial.replay.samplers.proportional import ProportionalSampler  # noqa: E402
from per_tutorial.replay.storages.rows import TransitionStorage  # noqa: E402

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


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("size, features", [(84, 64 * 7 * 7), (42, 64 * 4 * 4), (17, 64)])
def test_each_run_computes_what_pytorchs_own_layers_compute(size, features, dueling, runs):
    stack = QNetwork((4, size, size), ACTIONS, (32,), range(runs), dueling=dueling)
    assert stack.layers[0].weight.shape == (runs, features, 32)
    frames = random_frames(runs, 5, 4, size, size)
    outputs = stack(torch.from_numpy(frames))
    assert outputs.shape == (runs, 5, ACTIONS)
    for run in range(runs):
        expected = PlainPixelNetwork(stack, run)(frames[run])
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


def test_convolutions_start_like_pytorchs_own():
    layer = QNetwork((4, 84, 84), 6, (512,), [0]).convolutions[1]
    torchs = nn.Conv2d(32, 64, 4)
    for mine, theirs in ((layer.weight, torchs.weight), (layer.bias, torchs.bias)):
        bound = (32 * 16) ** -0.5
        assert 0.9 * bound < mine.abs().max() <= bound
        assert mine.std().item() == pytest.approx(theirs.std().item(), rel=0.2)


def test_the_initial_network_of_a_run_depends_on_its_own_seed_alone():
    stack = QNetwork((4, 20, 20), ACTIONS, (8,), [5, 6])
    other = QNetwork((4, 20, 20), ACTIONS, (8,), [6])
    for mine, theirs in zip(stack.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine[1], theirs[0]) and not torch.equal(mine[0], theirs[0])


def test_no_run_touches_the_parameters_of_another():
    stack = QNetwork((4, 20, 20), ACTIONS, (8,), [5, 6])
    stack(torch.from_numpy(random_frames(2, 5, 4, 20, 20)))[1].sum().backward()
    for parameter in stack.parameters():
        assert (parameter.grad[0] == 0).all() and (parameter.grad[1] != 0).any()


def test_bfloat16_rounds_all_layers_but_the_last():
    frames = torch.from_numpy(random_frames(1, 50, 4, 42, 42))
    exact, rounded = (
        QNetwork((4, 42, 42), ACTIONS, (64,), [0], bfloat16=on)(frames) for on in (False, True)
    )
    assert rounded.dtype == torch.float32
    assert (rounded != rounded.to(torch.bfloat16)).any()  # as the last layer left them
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.02 * exact.abs().max().item())


def test_the_precision_is_that_of_the_settings():
    config = CONFIG.replace(precision="bfloat16")
    for precise, each in ((True, CONFIG), (False, config)):
        learner = DQNLearner(each, (4, 20, 20), ACTIONS, [0])
        assert precise != learner.online.in_bfloat16 == learner.target.in_bfloat16


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
        steps=numbers.integers(1, 4, size=shape),
    )


def assert_same_as_plain(config, plain_config, learner_class=DoublePrecisionLearner, rtol=1e-8):
    stack = learner_class(config, (4, 20, 20), ACTIONS, [5, 6])
    twins = [PlainLearner(plain_config, PlainPixelNetwork(stack.online, run)) for run in (0, 1)]
    for seed in range(12):
        batch = random_batch(seed)
        update = stack.update(batch, step_size=0.001)
        for run, twin in enumerate(twins):
            fields = (field[run] for field in (*batch[:5], batch.steps))
            td_errors, loss = twin.update(zip(*fields, strict=True), batch.weights[run], 0.001)
            np.testing.assert_allclose(update.td_errors[run], td_errors, rtol=rtol, atol=rtol)
            np.testing.assert_allclose(update.losses[run], loss, rtol=rtol, atol=rtol)


LEARNER = CONFIG.replace(target_update_every=5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"double": False, "dueling": False}, {"max_grad_norm": 0.5}, {"td_error_clip": 0.7}],
    ids=str,
)
def test_the_learner_is_the_plain_algorithm(changes):
    config = LEARNER.replace(**changes)
    assert_same_as_plain(config, config)


@pytest.mark.parametrize(
    "changes", [{"double": False}, {"max_grad_norm": 0.5}, {"target_update_every": 6}], ids=str
)
def test_each_switch_matters_and_the_comparison_sees_it(changes):
    with pytest.raises(AssertionError):
        assert_same_as_plain(LEARNER, LEARNER.replace(**changes))


def test_in_single_precision_as_it_is_used():
    assert_same_as_plain(LEARNER, LEARNER, DQNLearner, rtol=2e-3)


@needs_compiler
def test_compiled_the_learner_is_the_plain_algorithm_as_well():
    config = LEARNER.replace(double=False, dueling=False)  # these compile as they do without pixels
    assert_same_as_plain(config.replace(compiled=True), config)


def test_an_agent_is_saved_and_loaded(tmp_path):
    for seeds, size in (([3], 84), ([3, 4], 42)):
        agent = DQNLearner(CONFIG.replace(frame_size=size), (4, size, size), ACTIONS, seeds)
        agent.save(tmp_path / "agent.safetensors")
        loaded = DQNLearner.load(tmp_path / "agent.safetensors")
        assert (loaded.config, loaded.seeds) == (agent.config, seeds)
        frames = random_frames(len(seeds), 5, 4, size, size)
        np.testing.assert_array_equal(loaded.q_values(frames), agent.q_values(frames))
        assert loaded.policy(0)(frames[0, 0]) == agent.q_values(frames)[0, 0].argmax()


# Settings


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"env": "CartPole-v1", "environments": 2},
            "environments: must be 1 unless env is an Atari game (ALE/…), got 2 with 'CartPole-v1'",
        ),
        ({"steps": 481}, "steps: must be a multiple of environments (4), got 481"),
        (
            {"capacity": 120, "environments": 160},
            "capacity: must be at least environments (160), got 120",
        ),
    ],
)
def test_settings_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError) as caught:
        CONFIG.replace(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize("sampler", ["uniform", "proportional", "rank"])
def test_every_sampler_replays_frames(sampler):
    config = CONFIG.replace(sampler=sampler, environments=1, n_step=1)
    replay = make_replay(config, (4, 20, 20), [0, 1])
    films = random_frames(2, 1, 14, 20, 20)
    films[:, :, :3] = 0  # an episode begins
    for k in range(10):
        numbers = np.full((2, 1), k)
        stacks = films[:, :, k : k + 4], films[:, :, k + 1 : k + 5]
        replay.add(stacks[0], numbers, numbers, stacks[1], numbers > 20, numbers > 20)
    replay.update_priorities([[3], [4]], [[50.0], [50.0]])
    assert replay.sample(5).observations.shape == (2, 5, 4, 20, 20)
    if sampler != "uniform":
        assert replay.probabilities.shape == (2, 300)
        np.testing.assert_allclose(replay.probabilities.sum(axis=1), 1)
        assert replay.probabilities.argmax(axis=1).tolist() == [3, 4]


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


def play_again(config, seed, actions, **options):
    """The same actions in the same games: a list of `Played`, and the episodes as plain sums."""
    environments = make_atari_environments(
        config.env, config.environments, seed, size=config.frame_size, **options
    )
    scores, lengths = np.zeros((2, config.environments))
    steps, episodes = [], []
    for t, action in enumerate(actions, start=1):
        observation = environments.observation
        step = environments.step(action)
        steps.append(Played(observation, action, *step[:4]))
        scores, lengths = scores + step.reward, lengths + 1
        for k in np.flatnonzero(step.terminated | step.truncated):
            episodes.append((0, t * config.environments, scores[k], lengths[k]))
            scores[k] = lengths[k] = 0
    environments.close()
    return steps, episodes


def test_the_memory_holds_what_was_played():
    """Every transition, rebuilt from frames; Pong, with games cut short so that some end."""
    config = CONFIG.replace(steps=1600, max_episode_steps=130, update_every=40)
    replay = Recorded(config, [7])
    train(config, 7, replay=replay)
    steps, _ = play_again(config, 7, replay.actions, max_frames=4 * 130)
    slots = np.arange(config.capacity)[None]
    rows, lengths = replay.storage.n_step_transitions(slots)
    for slot, number in enumerate(stored_ids(replay.storage)):
        t, k = divmod(number, config.environments)
        window = [Played(*(field[k] for field in step)) for step in steps[t : t + 3]]
        over = [step.terminated or step.truncated for step in window]
        window = window[: over.index(True) + 1 if any(over) else 3]
        assert lengths[0, slot] == len(window)
        mine = {name: field[0, slot] for name, field in rows.items()}
        np.testing.assert_array_equal(mine["observation"], window[0].observation)
        assert mine["action"] == window[0].action
        returns = sum(0.99**j * step.reward for j, step in enumerate(window))
        assert mine["reward"] == pytest.approx(returns)
        for name in ("next_observation", "terminated", "truncated"):
            np.testing.assert_array_equal(mine[name], getattr(window[-1], name))
    assert rows["truncated"].any() and len(set(lengths[0])) == 3 and rows["reward"].any()


GAME = CONFIG.replace(env="ALE/Asterix-v5", max_episode_steps=70, update_every=40)


def holds_returns_are_scores_of_whole_games():
    """Asterix is paid 50 points a time: nothing of that is clipped, nothing counted twice."""
    replay = Recorded(GAME, [3])
    history = train(GAME, 3, replay=replay)
    plain = {"clip_rewards": False, "episodic_life": False, "max_frames": 4 * 70}
    _, episodes = play_again(GAME, 3, replay.actions, **plain)
    assert history.episodes == episodes
    assert len(episodes) >= 4 and max(score for _, _, score, _ in episodes) >= 50
    assert np.abs(replay.storage.rows["reward"]).max() == 1
    assert {type(value) for episode in history.episodes for value in episode} == {int, float}


def test_returns_are_scores_of_whole_games():
    holds_returns_are_scores_of_whole_games()


def test_returns_of_clipped_rewards_are_noticed(monkeypatch):
    count = AtariEnvironments._count
    monkeypatch.setattr(
        AtariEnvironments,
        "_count",
        lambda self, reward, *others: count(self, reward.clip(-1, 1), *others),
    )
    with pytest.raises(AssertionError):
        holds_returns_are_scores_of_whole_games()


def test_a_life_ends_an_episode_for_learning_alone():
    """Breakout, played at random, for so long that balls are lost."""
    config = GAME.replace(
        env="ALE/Breakout-v5", max_episode_steps=None, steps=800, capacity=800, epsilon_end=1.0
    )
    replay = Recorded(config, [0])
    history = train(config, 0, replay=replay)
    plain = {"clip_rewards": False, "episodic_life": False}
    _, episodes = play_again(config, 0, replay.actions, **plain)
    assert history.episodes == episodes
    assert replay.storage.rows["terminated"].sum() >= 2 * len(episodes) + 4


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


# Determinism


def records(history):
    """All that a training measured; NaN is left out, as it equals nothing."""
    return history.episodes, {
        name: np.nan_to_num(history.measure(name), nan=-99).tolist() for name in history.measures
    }


SHORT = CONFIG.replace(steps=320, max_episode_steps=60)


def test_the_same_seed_gives_the_same_training_and_another_another():
    config = SHORT.replace(steps=200)
    first, again, other = (records(train(config, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first[1] != other[1]


def test_a_run_explores_the_same_games_in_any_stack():
    """Without learning, as that would round the sums of one and of two networks differently."""
    config = SHORT.replace(steps=80, epsilon_end=1.0)
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


def test_two_runs_learn_side_by_side():
    history = train(SHORT.replace(steps=200, max_episode_steps=40), [5, 6])
    assert np.isfinite(history.measure("loss")[-1]).all()
    assert {run for run, *_ in history.episodes} == {0, 1}


def test_frames_kept_once_train_like_stacks_kept_whole():
    """Bit for bit: the memory of notebooks 02 to 04 holds the same transitions."""
    config = SHORT.replace(environments=1, steps=200)
    windows = {"n_step": 3, "discount": config.discount, "observation_dtype": np.uint8}
    replay = Replay(
        TransitionStorage(config.capacity, (4, 20, 20), **windows),
        ProportionalSampler(config.capacity, [4], alpha=config.alpha),
        runs=1,
    )
    assert records(train(config, 4)) == records(train(config, 4, replay=replay))


def test_a_memory_for_other_environments_is_refused():
    replay = make_replay(CONFIG.replace(environments=2), (4, 20, 20), [0])
    with pytest.raises(
        ValueError, match=r"replay: must have the number of environments .* \(4\), got 2"
    ):
        train(CONFIG, 0, replay=replay)


@pytest.mark.parametrize("every", [100, 98])  # a multiple of 4 environments, and none
def test_a_training_that_was_stopped_goes_on_in_new_games(every, tmp_path):
    """All is as it was; the games that ran are cut, as by a time limit, and counted nowhere."""

    config = SHORT.replace(max_episode_steps=40)

    class Stop(Exception):
        pass

    def stop(history):
        if history.step == 160:
            raise Stop

    def training(replay, **options):
        return train(
            config, 1, replay=replay, checkpoints=Checkpoints(tmp_path, every=every), **options
        )

    stopped, resumed = Recorded(config, [1]), Recorded(config, [1])
    with pytest.raises(Stop):
        training(stopped, callbacks=[stop])
    history = training(resumed)
    assert history.step == resumed.storage.added[0] == 320
    assert len(resumed.actions) == (320 - 100) / 4
    assert history.log_steps == [*range(4, 321, 4)]
    assert history.agent.updates == len([k for k in range(96, 320) if k % 3 == 0])
    ids = stored_ids(resumed.storage)
    rows = {number: resumed.storage.rows[0, slot] for slot, number in enumerate(ids)}
    assert all(rows[number]["truncated"] for number in range(96, 100))
    store = resumed.storage.store
    np.testing.assert_array_equal(store.depths[100 // 4 % store.rows], 1)  # nothing from before
    assert [length for *_, length in history.episodes] == [40] * 4
    assert np.isfinite(history.measure("held_out_q")[24:]).all()


# Evaluation


@pytest.mark.parametrize("seeds", [[0], [0, 3]])
def test_evaluation_plays_games_in_the_reference_pipeline(seeds):
    """The greedy policy by hand, one game after another; scores are not clipped."""
    agent = DQNLearner(GAME, (4, 20, 20), 9, seeds)
    returns = evaluate(agent, 2, seed=50, epsilon=0)
    assert returns.shape == (len(seeds), 2) and returns.max() > 1
    for run, k in np.ndindex(*returns.shape):
        env = make_atari_reference(GAME.env, size=20, max_frames=4 * 70)
        observation, _ = env.reset(seed=50 + 2 * seeds[run] + k)
        policy, score, over = agent.policy(run), 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            score, over = score + reward, terminated or truncated
        assert returns[run, k] == score
        env.close()


def test_evaluation_explores_a_little_and_as_its_seed_says(monkeypatch):
    epsilons = set()

    def act(agent, observations, epsilon, streams):
        epsilons.add(epsilon)
        return epsilon_greedy(agent, observations, epsilon, streams)

    monkeypatch.setattr(training, "epsilon_greedy", act)
    agent = DQNLearner(GAME.replace(max_episode_steps=30), (4, 20, 20), 9, [0])
    evaluate(agent, 1)
    assert epsilons == {0.01}
    one, same, other = (evaluate(agent, 3, seed=s, epsilon=1).tolist() for s in (1, 1, 9))
    assert one == same != other
    with pytest.raises(ValueError, match="epsilon: must be in"):
        evaluate(agent, 1, epsilon=2)


def test_the_command_line_trains_from_pixels(tmp_path, capsys):
    settings = "--steps 80 --environments 4 --frame-size 20 --max-episode-steps 12 --hidden 8"
    path = tmp_path / "agent.safetensors"
    words = ["--env", "ALE/Pong-v5", *settings.split(), "--batch-size", "8"]
    words += ["--learning-starts", "20", "--runs", "1", "--save", str(path)]
    main(["train", *words, "--episodes", "2", "--quiet"])
    assert "greedy return" in capsys.readouterr().out
    assert DQNLearner.load(path).config.environments == 4


def test_an_episode_is_recorded(tmp_path):
    videos = pytest.importorskip("per_tutorial.notebook.videos")
    agent = DQNLearner(GAME, (4, 20, 20), 9, [0])
    options = {"size": 20, "max_frames": 4 * 70}
    env = make_atari_reference(GAME.env, render_mode="rgb_array", **options)
    score = videos.record_episode(agent.policy(0), env, tmp_path / "game.mp4", seed=10_000)
    assert score == evaluate(agent, 1, epsilon=0)
    frames = list(videos.read_frames(tmp_path / "game.mp4"))
    assert frames[0].shape == (210, 160, 3)
    assert 50 < len(frames) <= 71
