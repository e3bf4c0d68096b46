"""Whole trainings: the plain twin's, one run beside others, what is stored, and evaluations."""

import pickle
import random
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from counting import (
    COUNTING,
    ENDLESS,
    assert_true_transitions,
    ends_in_termination,
    episode_length,
    episode_return,
    reward_of,
)
from plain_dqn import (
    DoublePrecisionLearner,
    PlainQNetwork,
    PlainReplay,
    plain_train,
)
from recorded_trainings import RECORDED, SHORT

from per_tutorial.dqn import training
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import evaluate, train
from per_tutorial.replay import (
    FrameStorage,
    PrioritizedReplayBuffer,
    Replay,
    ReplayBuffer,
    TransitionStorage,
    UniformSampler,
)
from per_tutorial.replay.contracts import Batch
from per_tutorial.replay.random_streams import RandomStreams


@pytest.mark.slow
@pytest.mark.parametrize("sampler", RECORDED)
@pytest.mark.parametrize(
    "changes",
    [
        {"max_episode_steps": 12, "max_grad_norm": 1.0, "update_every": 3, "double": True},
        {"n_step": 100, "discount": 0.9, "dueling": True, "tau": 0.1, "target_update_every": 1},
        {"max_episode_steps": 12, "terminal_reward": -10.0, "n_step": 3, "loss": "squared"},
    ],
    ids=str,
)
def test_training_is_algorithm_1(sampler, changes, monkeypatch):
    """With the same random numbers, every action, minibatch and TD error is the plain twin's.

    The memory is smaller than the training is long, so that transitions are overwritten.
    """
    monkeypatch.setattr(training, "DQNLearner", DoublePrecisionLearner)
    config = SHORT.replace(sampler=sampler, batch_size=4, capacity=100, **changes)
    seed, options = 11, {"n_step": config.n_step, "discount": config.discount}
    replay = RECORDED[sampler](config.capacity, (4,), runs=1, seed=seed, **options)
    history = train(config, seed, replay=replay)

    first = DQNLearner(config, (4,), 2, [seed])
    streams = [RandomStreams([seed], purpose) for purpose in ("exploration", "replay")]
    explore, draw = (lambda stream=stream: stream.uniform(1).item() for stream in streams)
    plain, actions, replayed, td_errors = plain_train(
        config, seed, PlainQNetwork(first.online, run=0), explore, PlainReplay(config, draw)
    )
    assert replay.actions == actions
    assert set(actions) == {0, 1}
    assert replay.replayed == replayed and len(replayed) > 60
    np.testing.assert_allclose(replay.td_errors, td_errors, rtol=1e-7, atol=1e-9)
    probes = np.random.default_rng(0).normal(size=(1, 20, 4)).astype(np.float32)
    np.testing.assert_allclose(
        history.agent.q_values(probes)[0], plain.online(probes[0]).detach(), rtol=1e-7, atol=1e-9
    )


# Runs beside one another


def everything(history, run):
    """All that a training leaves of one run, as a dict of arrays."""
    parameters = enumerate(history.agent.online.parameters())
    steps, returns = history.returns(run)
    return {
        "episode steps": steps,
        "returns": returns,
        **{name: history.measure(name)[:, run] for name in history.measures},
        **{f"parameter {number}": values[run].detach().numpy() for number, values in parameters},
    }


def assert_identical(one, other):
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_a_run_depends_on_no_seed_but_its_own():
    """Bit for bit: other weights, data and episodes in run 0 leave runs 1 and 2 as they are."""
    config = SHORT.replace(sampler="proportional", steps=120)
    history, other = train(config, [0, 1, 2]), train(config, [7, 1, 2])
    for run in (1, 2):
        assert_identical(everything(history, run), everything(other, run))
    with pytest.raises(AssertionError):
        assert_identical(everything(history, 0), everything(other, 0))


def test_a_run_beside_others_is_the_run_alone(monkeypatch):
    """But for rounding: a batched matrix product may add in another order."""
    monkeypatch.setattr(training, "DQNLearner", DoublePrecisionLearner)
    config = SHORT.replace(sampler="proportional", steps=120)
    beside, alone = train(config, [3, 4, 5]), train(config, 4)
    found = everything(beside, 1)
    for name, values in everything(alone, 0).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-9, err_msg=name)


def test_both_arms_of_a_comparison_start_alike():
    """The same seed: the same network, first observation and exploration, whatever is replayed."""
    config = SHORT.replace(steps=40)  # one update, at the last step
    seen = {}
    for sampler in ("uniform", "proportional"):
        replay = RECORDED[sampler](100, (4,), runs=1, seed=5)
        history = train(config.replace(sampler=sampler), 5, replay=replay)
        seen[sampler] = replay.storage.rows[0, :40].tolist(), history.agent.target
    assert repr(seen["uniform"][0]) == repr(seen["proportional"][0])
    targets = [target.parameters() for _, target in seen.values()]
    assert all(torch.equal(*pair) for pair in zip(*targets, strict=True))


@pytest.mark.parametrize(
    "seeds, message",
    [
        ([], "seeds: at least one is needed, got none"),
        ([1, 1], r"seeds: must differ from one another, got \[1, 1\]"),
        (-1, "seeds: must be at least 0, got -1"),
        (2**64, "seeds: must be at most 18446744073709551615, got 18446744073709551616"),
    ],
)
def test_wrong_seeds_are_refused(seeds, message):
    with pytest.raises(ValueError, match=message):
        train(SHORT, seeds)


# What is stored, and which priorities: bugs of many training loops


def test_true_transitions_are_stored_and_all_of_them():
    """No step into another episode, and a time limit terminates nothing."""
    seeds = [0, 1, 2]
    replay = ReplayBuffer(100, (3,), runs=3, seed=seeds)
    history = train(SHORT.replace(env=COUNTING, steps=100, epsilon_end=1.0), seeds, replay=replay)
    for run, seed in enumerate(seeds):
        rows = replay.storage.rows[run, : replay.storage.sizes[run]]
        assert_true_transitions(rows.tolist(), seed)
        mine = [episode[1:] for episode in history.episodes if episode[0] == run]
        lengths = [episode_length(seed, k) for k in range(len(mine))]
        ends = np.cumsum(lengths)
        returns = [episode_return(seed, k) for k in range(len(mine))]
        assert mine == [*zip(ends.tolist(), returns, lengths, strict=True)]
        assert len(mine) > 10


@pytest.mark.slow
def test_a_terminal_reward_is_learned_from_where_episodes_terminate():
    """Stored there and nowhere else; the returns stay those of the environment."""
    config = SHORT.replace(env=COUNTING, steps=100, epsilon_end=1.0, terminal_reward=0)
    replay = ReplayBuffer(100, (3,), runs=2, seed=[0, 1])
    history = train(config, [0, 1], replay=replay)
    for seed in (0, 1):
        expected = []
        for episode, steps, _ in replay.storage.rows["next_observation"][seed].astype(int):
            over = steps == episode_length(seed, episode)
            terminated = over and ends_in_termination(episode)
            expected.append(0 if terminated else reward_of(episode, steps))
        assert replay.storage.rows["reward"][seed].tolist() == expected
        assert expected.count(0) > 10
        returns = history.returns(seed)[1].tolist()
        assert returns == [episode_return(seed, number) for number in range(len(returns))]


# Parts of the loop


def test_watchers_are_called_at_every_log_point_and_at_the_end():
    seen = {"one": [], "other": []}
    callbacks = [lambda history, steps=steps: steps.append(history.step) for steps in seen.values()]
    config = SHORT.replace(steps=451, update_every=10)
    history = train(config, 0, callbacks=callbacks)  # every 451 // 200 = 2 steps
    assert history.log_steps == [*range(2, 451, 2), 451]
    assert seen == {"one": history.log_steps, "other": history.log_steps}


def test_evaluation_gives_a_run_the_same_episodes_beside_any_others():
    def returns(seeds):
        return evaluate(DQNLearner(SHORT.replace(env=COUNTING), (3,), 5, seeds), 3, seed=50)

    np.testing.assert_array_equal(returns([0, 1, 2, 7])[[1, 3]], returns([7, 1])[[1, 0]])
    assert returns([1]).tolist() == [[episode_return(seed, 0) for seed in (53, 54, 55)]]


def test_an_evaluation_ends_at_its_time_limit_or_where_no_episode_does(monkeypatch):
    agent = DQNLearner(SHORT.replace(env=ENDLESS, max_episode_steps=3), (1,), 2, [0])
    assert evaluate(agent, episodes=2).tolist() == [[3.0, 3.0]]
    assert evaluate(agent, episodes=2, max_episode_steps=7).tolist() == [[7.0, 7.0]]
    monkeypatch.setattr(training, "LONGEST_EPISODE", 40)
    agent = DQNLearner(SHORT.replace(env=ENDLESS), (1,), 2, [0])
    with pytest.warns(UserWarning, match="2 of 2 episodes did not end in 40 steps"):
        assert evaluate(agent, episodes=2).tolist() == [[40.0, 40.0]]
    with warnings.catch_warnings(action="error"):  # a limit of one's own may be longer
        assert evaluate(agent, 1, max_episode_steps=50).tolist() == [[50.0]]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"episodes": 0}, "episodes: must be at least 1, got 0"),
        ({"max_episode_steps": 0}, "max_episode_steps: must be at least 1, got 0"),
        ({"epsilon": 2}, "epsilon: must be in"),
        ({"seed": -1}, "seed: must be at least 0, got -1"),
    ],
)
def test_an_evaluation_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(DQNLearner(SHORT, (4,), 2, [0]), **options)


@pytest.mark.parametrize("shape, actions", [((3,), 2), ((4,), 3)])
def test_an_agent_for_other_observations_or_actions_is_not_evaluated(shape, actions):
    message = r"^agent: must be for observations \(4,\) and 2 actions, as in 'CartPole-v1', got"
    with pytest.raises(ValueError, match=message):
        evaluate(DQNLearner(SHORT, shape, actions, [0]), 1)


@pytest.mark.slow
def test_the_default_dtype_of_pytorch_changes_nothing():
    expected = train(SHORT, 0).agent.state
    torch.set_default_dtype(torch.float64)
    try:
        state = train(SHORT, 0).agent.state
    finally:
        torch.set_default_dtype(torch.float32)
    assert_identical(state, expected)
    assert [each.dtype for each in state.values()] == [each.dtype for each in expected.values()]


def test_a_history_with_its_agent_can_be_pickled():
    """As it comes back from a worker process."""
    history = pickle.loads(pickle.dumps(train(SHORT, 0)))
    observations = np.ones((1, 3, 4), np.float32)
    assert history.agent.q_values(observations).shape == (1, 3, 2)
    assert evaluate(history.agent, 1).shape == (1, 1)


# A memory of one's own, of one run


class OwnMemory:
    """As a reader writes it: lists, one transition at a time, indices that are slots."""

    def __init__(self, seed=0):
        self.steps, self.updates, self.numbers = [], [], random.Random(seed)

    def __len__(self):
        return len(self.steps)

    def add(self, *step):
        self.steps.append(step)

    def sample(self, batch_size, beta):
        indices = self.numbers.choices(range(len(self.steps)), k=batch_size)
        fields = zip(*(self.steps[i][:5] for i in indices), strict=True)
        observations, *rest = map(np.array, fields)
        seen = torch.tensor(observations, requires_grad=True)  # which NumPy does not read
        return (seen, *rest, np.ones(batch_size), np.array(indices))

    def update_priorities(self, indices, td_errors):
        self.updates.append((indices, td_errors))


@pytest.mark.slow
def test_a_memory_of_ones_own_learns_what_the_package_would_from_the_same_minibatches():
    """It draws what a recorded buffer drew."""
    replay = RECORDED["uniform"](240, (4,), runs=1, seed=1)
    expected = train(SHORT, 3, replay=replay)
    drawn = iter(replay.replayed)
    memory, seen = OwnMemory(), []
    memory.numbers.choices = lambda population, k: next(drawn)
    history = train(SHORT, 3, replay=memory, callbacks=[lambda h: seen.append(h.step)])
    assert (len(memory), history.step, seen) == (240, 240, history.log_steps)
    assert history.episodes == expected.episodes
    ours, theirs = (each.agent.online.parameters() for each in (history, expected))
    assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))
    observation, action, reward, next_observation, terminated, truncated = memory.steps[0]
    assert observation.shape == next_observation.shape == (4,)
    assert np.shape(action) == np.shape(reward) == np.shape(terminated) == np.shape(truncated) == ()
    assert len(memory.updates) == history.agent.updates == 201  # at steps 39 to 239
    for (indices, errors), mine, td_errors in zip(
        memory.updates, replay.replayed, replay.td_errors, strict=True
    ):
        np.testing.assert_array_equal(indices, mine)
        np.testing.assert_array_equal(errors, td_errors)
    for name in ("loss", "td_error", "q_value", "weight", "held_out_q"):
        assert np.isfinite(history.measure(name)[-1]).all(), name
    assert np.isnan(history.measure("age")).all()


@pytest.mark.slow
def test_a_buffer_without_an_axis_of_runs_trains_as_one_with_it():
    alone, beside = (PrioritizedReplayBuffer(240, (4,), runs=runs, seed=5) for runs in (None, 1))
    one, same = (train(SHORT, 5, replay=replay) for replay in (alone, beside))
    assert one.episodes == same.episodes
    assert_identical(everything(one, 0), everything(same, 0))


def test_a_memory_that_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="replay: must have sample, got "):
        train(SHORT, 0, replay=type("Half", (), {"__len__": len, "add": print})())
    with pytest.raises(ValueError, match="replay: must be for one run .* got 2 and 1"):
        train(SHORT, [0, 1], replay=OwnMemory())
    with pytest.raises(ValueError, match=r"replay: must have the runs .* \(2\), got 3"):
        train(SHORT, [0, 1], replay=ReplayBuffer(240, (4,), runs=3))
    for runs in (None, 1):
        replay = ReplayBuffer(240, (4,), runs=runs, n_step=2)
        with pytest.raises(ValueError, match=r"replay: must have the n_step .* \(1\), got 2"):
            train(SHORT, 0, replay=replay)
        with pytest.raises(
            ValueError, match=r"replay: must have the discount .* \(0.9\), got 0.99"
        ):
            train(SHORT.replace(n_step=2, discount=0.9), 0, replay=replay)


@pytest.mark.parametrize(
    "changes, capacity, message",
    [
        ({"steps": 39}, 240, "steps: must be at least 40 for an update, .* got 39"),
        ({"update_every": 240}, 240, r"at least 241 .*update_every \(240\), got 240"),
        ({}, 39, r"replay: must hold learning_starts \(40\) transitions, got 39"),
    ],
)
def test_a_training_that_would_learn_nothing_is_refused(changes, capacity, message):
    config = SHORT.replace(**changes)
    replay = ReplayBuffer(capacity, (4,))
    with pytest.raises(ValueError, match=message):
        train(config, 0, replay=replay)
    assert len(replay) == 0
    nearly = {"steps": 40} if "steps" in changes else {"update_every": config.steps - 1}
    replay = ReplayBuffer(max(capacity, 40), (4,))
    assert train(config.replace(**nearly), 0, replay=replay).agent.updates == 1


def test_a_memory_of_ones_own_that_forgets_too_soon_is_said():
    memory = OwnMemory()
    memory.add = lambda *step: None
    with pytest.warns(UserWarning, match="^no update: replay never held learning_") as caught:
        assert train(SHORT, 0, replay=memory).agent.updates == 0
    assert caught.pop(UserWarning).filename == __file__


@pytest.mark.parametrize("kind", ["rows", "frames"])
def test_a_training_with_a_filled_memory_begins_new_episodes(kind):
    """The running one is truncated: no return of several steps reaches into another training."""
    config = SHORT.replace(env=COUNTING, steps=62, n_step=3)
    storage = TransitionStorage(200, (3,), n_step=3)
    if kind == "frames":
        pytest.importorskip("ale_py")
        config = config.replace(env="ALE/Pong-v5", frame_size=20, hidden=(4,))
        storage = FrameStorage(200, (4, 20, 20), n_step=3)
    replay = Replay(storage, UniformSampler(200, seeds=[0]))
    for seed, steps in ((0, 62), (1, 2)):  # the second one learns at once
        train(config.replace(steps=steps), seed, replay=replay)
    assert storage.rows["truncated"][0, 61] and not storage.rows["terminated"][0, 61]
    _, discounts = storage.n_step_transitions(np.array([[60, 61]]))
    assert discounts.tolist() == [np.float32([0.99**2, 0.99]).tolist()]  # of two steps and of one


@pytest.mark.parametrize("name", ["weights", "rewards"])
def test_a_minibatch_of_a_memory_of_ones_own_has_one_axis(name):
    class Memory(OwnMemory):
        def sample(self, batch_size, beta):
            batch = Batch(*super().sample(batch_size, beta))
            return batch._replace(**{name: getattr(batch, name)[:, None]})

    message = rf"^batch: must have {name} of the shape \(1, (8|batch)\), got \("
    with pytest.raises(ValueError, match=message):
        train(SHORT, 0, replay=Memory())


@pytest.mark.parametrize(
    "n_step, order, message",
    [
        (1, [0, 1, 2, 3, 4, 6, 5], "indices: must be integers, got float64"),
        (3, range(7), "batch: must have discounts with n_step = 3, got none"),
    ],
)
def test_a_minibatch_that_would_be_misread_is_refused(n_step, order, message):
    class Memory(OwnMemory):
        def sample(self, batch_size, beta):
            return [super(Memory, self).sample(batch_size, beta)[k] for k in order]

    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        train(SHORT.replace(n_step=n_step), 0, replay=Memory())


# Stopped by the user


def stop_at(step):
    def stop(history):
        if history.step == step:
            raise KeyboardInterrupt

    return stop


def test_in_a_notebook_a_stopped_training_returns_what_it_has(monkeypatch, tmp_path):
    with pytest.raises(KeyboardInterrupt):  # in a script, Ctrl-C ends it
        train(SHORT, 0, callbacks=[stop_at(100)])
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    with pytest.warns(UserWarning, match="^stopped after 100 of 240 steps$") as caught:
        history = train(SHORT, [0, 1], callbacks=[stop_at(100)])
    assert caught.pop(UserWarning).filename == __file__
    assert (history.step, history.agent.updates) == (100, 61)
    assert history.learning_curve([50, 100]).shape == (2, 2)
    assert evaluate(history.agent, 1).shape == (2, 1)
    history.save(tmp_path / "history.csv")
    whole = train(SHORT, [0, 1])
    assert history.episodes == whole.episodes[: len(history.episodes)]


def test_a_row_that_an_interrupt_cut_short_is_dropped(monkeypatch):
    class Stop:
        def __array__(self, *_, **__):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    replay = ReplayBuffer(240, (4,), seed=0)
    replay.sampler.metrics = lambda sizes: {"mine": Stop() if sizes[0] == 100 else sizes}
    with pytest.warns(UserWarning, match="stopped after 100 of 240 steps"):
        history = train(SHORT, 0, replay=replay)
    assert history.log_steps == [*range(1, 100)]
    assert {len(rows) for rows in history.measures.values()} == {99}


# Where actions begin elsewhere


class StartsBelowZero(gym.Env):
    """Pays 1 for the action -4; any but -5 and -4 is an error."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2, start=-5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return np.ones(2, np.float32), float(action == -4), False, False, {}


gym.register("tests/StartsBelowZero-v0", StartsBelowZero, max_episode_steps=4)


def test_every_way_an_action_leaves_adds_the_start_of_the_space(tmp_path):
    config = SHORT.replace(env="tests/StartsBelowZero-v0", discount=0.5)
    replay = ReplayBuffer(240, (2,), discount=0.5, runs=2, seed=[0, 1])
    agent = train(config, [0, 1], replay=replay).agent
    assert set(replay.storage.rows["action"].flat) == {0, 1}  # as the network counts them
    assert evaluate(agent, 2).tolist() == [[4.0, 4.0]] * 2
    agent.save(tmp_path / "agent.safetensors")
    for each in (agent, DQNLearner.load(tmp_path / "agent.safetensors")):
        assert each.policy(1)(np.ones(2, np.float32)) == -4
        assert evaluate(each, 1).tolist() == [[4.0]] * 2
