"""Whole trainings: the plain twin's, one run beside others, the bugs put in, and real learning."""

import itertools
import pickle
import random
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from counting import COUNTING, ENDLESS, episode_return
from plain_dqn import (
    DictatedReplay,
    DoublePrecisionLearner,
    PlainQNetwork,
    PlainReplay,
    plain_train,
)
from recorded_trainings import RECORDED, SHORT, RecordedRankBased

from per_tutorial.dqn import training
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import epsilon_greedy, evaluate, make_replay, train
from per_tutorial.replay import PrioritizedReplayBuffer, ReplayBuffer
from per_tutorial.replay.random_streams import RandomStreams


def assert_training_is_algorithm_1(config, memory_class, seed, dictated=False):
    """With the same random numbers, every action, minibatch and TD error is the plain twin's.

    ``dictated``: the twin does not draw itself, it is told what to replay and with which weights.
    Returns the number of updates and what is in the memory.
    """
    options = {"n_step": config.n_step, "discount": config.discount}
    replay = memory_class(config.capacity, (4,), runs=1, seed=seed, **options)
    history = train(config, seed, replay=replay)

    first = DQNLearner(config, (4,), 2, [seed])
    streams = [RandomStreams([seed], purpose) for purpose in ("exploration", "replay")]
    explore, draw = (lambda stream=stream: stream.uniform(1).item() for stream in streams)
    batches = zip(replay.replayed, replay.weights, strict=True)
    memory = DictatedReplay(config, batches) if dictated else PlainReplay(config, draw)
    plain, actions, replayed, td_errors = plain_train(
        config, seed, PlainQNetwork(first.online, run=0), explore, memory
    )
    assert replay.actions == actions
    assert set(actions) == {0, 1}
    assert replay.replayed == replayed
    np.testing.assert_allclose(replay.td_errors, td_errors, rtol=1e-7, atol=1e-9)
    probes = np.random.default_rng(0).normal(size=(1, 20, 4)).astype(np.float32)
    np.testing.assert_allclose(
        history.agent.q_values(probes)[0], plain.online(probes[0]).detach(), rtol=1e-7, atol=1e-9
    )
    return len(replayed), replay.storage.rows


@pytest.mark.slow
@pytest.mark.parametrize("sampler", RECORDED)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_episode_steps": 12, "max_grad_norm": 1.0, "update_every": 3},
        {"n_step": 100, "discount": 0.9},
        {"max_episode_steps": 12, "terminal_reward": -10.0},
    ],
    ids=str,
)
def test_training_is_algorithm_1(sampler, changes, monkeypatch):
    """The memory is smaller than the training is long, so that transitions are overwritten."""
    monkeypatch.setattr(training, "DQNLearner", DoublePrecisionLearner)
    config = SHORT.replace(sampler=sampler, batch_size=4, capacity=100, **changes)
    updates, _ = assert_training_is_algorithm_1(config, RECORDED[sampler], seed=11)
    assert updates > 60


SWITCHES = {
    "double": (False, True),
    "dueling": (False, True),
    "n_step": (1, 3),
    "loss": ("huber", "squared"),
    "td_error_clip": (None, 0.5),
    "target": ({"tau": 1.0, "target_update_every": 7}, {"tau": 0.1, "target_update_every": 1}),
}


# 16 of the 64 combinations: any three switches meet in all eight ways (a design of resolution IV).
DESIGN = [(a, b, c, d, a ^ b ^ c, b ^ c ^ d) for a, b, c, d in itertools.product((0, 1), repeat=4)]


def test_in_the_design_any_three_switches_meet_in_all_eight_ways():
    for three in itertools.combinations(range(len(SWITCHES)), 3):
        assert len({tuple(row[i] for i in three) for row in DESIGN}) == 8


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [*RECORDED, "rank"])
@pytest.mark.parametrize("row", DESIGN, ids=str)
def test_training_is_algorithm_1_whatever_three_switches_say(sampler, row, monkeypatch):
    """Few steps, but with overwritten transitions, terminations and time limits among them."""
    monkeypatch.setattr(training, "DQNLearner", DoublePrecisionLearner)
    changes = {name: ways[way] for (name, ways), way in zip(SWITCHES.items(), row, strict=True)}
    config = SHORT.replace(
        sampler=sampler,
        steps=60,
        max_episode_steps=12,
        batch_size=4,
        learning_starts=40,
        capacity=40,
        **changes.pop("target"),
        **changes,
    )
    memory_class = RECORDED.get(sampler, RecordedRankBased)
    updates, rows = assert_training_is_algorithm_1(
        config, memory_class, seed=11, dictated=sampler == "rank"
    )
    assert updates == 21
    assert rows["terminated"].any() and rows["truncated"].any()


@pytest.mark.parametrize("sampler", [*RECORDED, "rank"])
def test_the_memory_sums_and_discounts_as_the_settings_say(sampler):
    config = SHORT.replace(sampler=sampler, n_step=5, discount=0.9)
    storage = make_replay(config, (4,), [0, 1]).storage
    assert (storage.n_step, storage.discount) == (5, 0.9)


def test_a_memory_that_discounts_otherwise_is_refused():
    config = SHORT.replace(discount=0.9)
    replay = ReplayBuffer(240, (4,), runs=1, n_step=2)
    with pytest.raises(ValueError, match=r"replay: must discount .* config \(0.9\), got 0.99"):
        train(config, 0, replay=replay)
    train(config, 0, replay=ReplayBuffer(240, (4,), runs=1, seed=0))  # nothing is summed here


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


@pytest.mark.parametrize("sampler", ["uniform", "proportional"])
def test_a_run_depends_on_no_seed_but_its_own(sampler):
    """Bit for bit: other weights, data and episodes in run 0 leave runs 1 and 2 as they are."""
    config = SHORT.replace(sampler=sampler, steps=120)
    history, other = train(config, [0, 1, 2]), train(config, [7, 1, 2])
    for run in (1, 2):
        assert_identical(everything(history, run), everything(other, run))
    with pytest.raises(AssertionError):
        assert_identical(everything(history, 0), everything(other, 0))


@pytest.mark.parametrize("sampler", ["uniform", "proportional"])
def test_the_same_seeds_give_the_same_history_bit_for_bit(sampler):
    config = SHORT.replace(sampler=sampler, steps=120)
    history, again = train(config, [3, 4]), train(config, [3, 4])
    assert history.episodes == again.episodes
    for run in (0, 1):
        assert_identical(everything(history, run), everything(again, run))


@pytest.mark.parametrize("sampler", ["uniform", "proportional"])
def test_a_run_in_a_stack_is_the_run_alone(sampler, monkeypatch):
    """But for rounding: a batched matrix product may add in another order."""
    monkeypatch.setattr(training, "DQNLearner", DoublePrecisionLearner)
    config = SHORT.replace(sampler=sampler, steps=120)
    stack, alone = train(config, [3, 4, 5]), train(config, 4)
    in_stack = everything(stack, 1)
    for name, values in everything(alone, 0).items():
        np.testing.assert_allclose(in_stack[name], values, rtol=1e-6, atol=1e-9, err_msg=name)


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
    "seeds, exception, message",
    [
        ([], ValueError, "seeds: at least one is needed, got none"),
        ([1, 1], ValueError, r"seeds: must differ from one another, got \[1, 1\]"),
        (-1, ValueError, "seeds: must be at least 0, got -1"),
        ([0, 1.5], TypeError, "seeds: must be an integer, got 1.5"),
        (
            2**64,
            ValueError,
            "seeds: must be at most 18446744073709551615, got 18446744073709551616",
        ),
    ],
)
def test_wrong_seeds_are_refused(seeds, exception, message):
    with pytest.raises(exception, match=message):
        train(SHORT, seeds)


# Parts of the loop


@pytest.mark.parametrize(
    "changes, updates",
    [
        ({}, 201),  # at steps 39 to 239: 40 transitions are stored when the 40th step is done
        ({"learning_starts": 100}, 141),
        ({"update_every": 4}, 50),  # at steps 40, 44, … 236
        ({"learning_starts": 240}, 1),
    ],
    ids=str,
)
def test_when_updates_happen(changes, updates):
    assert train(SHORT.replace(**changes), 0).agent.updates == updates


def test_epsilon_beta_and_step_size_are_those_of_the_step(monkeypatch):
    epsilons, betas, step_sizes = [], [], []

    def act(agent, observations, epsilon, streams):
        epsilons.append(epsilon)
        return epsilon_greedy(agent, observations, epsilon, streams)

    class Memory(PrioritizedReplayBuffer):
        def sample(self, batch_size, beta, **options):
            betas.append(beta)
            return super().sample(batch_size, beta, **options)

    class Learner(DQNLearner):
        def update(self, batch, step_size):
            result = super().update(batch, step_size)
            step_sizes.append(self.optimizer.param_groups[0]["lr"])
            return result

    monkeypatch.setattr(training, "epsilon_greedy", act)
    monkeypatch.setattr(training, "DQNLearner", Learner)
    config = SHORT.replace(learning_rate=0.02, learning_rate_end=0.01, beta_start=0.5)
    train(config, 0, replay=Memory(240, (4,), runs=1, seed=0))
    assert epsilons == [config.epsilon(step) for step in range(240)]
    assert betas == [config.beta(step) for step in range(39, 240)]
    assert step_sizes == [config.step_size(step) for step in range(39, 240)]


def test_exploration_is_as_frequent_as_epsilon_says_and_uniform():
    class FavouritesOnly:
        def q_values(self, observations):
            runs = len(observations)
            return np.tile([0.0, 0.0, 1.0, 0.0], (runs, 1, 1))  # action 2 is the best

    runs = 20_000
    streams = RandomStreams(range(runs), "exploration")
    observations = np.zeros((runs, 3))
    for epsilon in (0.0, 0.4, 1.0):
        actions = epsilon_greedy(FavouritesOnly(), observations, epsilon, streams)
        expected = np.full(4, epsilon / 4) + [0, 0, 1 - epsilon, 0]
        # 5 standard deviations of a frequency
        deviation = 5 * np.sqrt(expected * (1 - expected) / runs)
        assert (np.abs(np.bincount(actions, minlength=4) / runs - expected) <= deviation).all()


def test_watchers_are_called_at_every_log_point_and_at_the_end():
    seen = {"one": [], "other": []}
    callbacks = [lambda history, steps=steps: steps.append(history.step) for steps in seen.values()]
    config = SHORT.replace(steps=450, update_every=10)
    history = train(config, 0, callbacks=callbacks)  # every 450 // 200 = 2 steps
    assert history.log_steps == [*range(2, 451, 2)]
    assert seen == {"one": history.log_steps, "other": history.log_steps}


def test_evaluation_returns_the_first_episode_of_every_environment():
    history = train(SHORT.replace(env=COUNTING), [0, 1])
    returns = evaluate(history.agent, episodes=3, seed=50)
    assert returns.tolist() == [
        [episode_return(50, 0), episode_return(51, 0), episode_return(52, 0)],
        [episode_return(53, 0), episode_return(54, 0), episode_return(55, 0)],
    ]


def test_evaluation_gives_a_run_the_same_episodes_in_any_stack():
    def returns(seeds):
        return evaluate(DQNLearner(SHORT.replace(env=COUNTING), (3,), 5, seeds), 3, seed=50)

    np.testing.assert_array_equal(returns([0, 1, 2, 7])[[1, 3]], returns([7, 1])[[1, 0]])
    assert returns([1]).tolist() == [[episode_return(seed, 0) for seed in (53, 54, 55)]]


def test_evaluation_is_greedy_repeatable_and_respects_the_time_limit():
    agent = DQNLearner(SHORT.replace(max_episode_steps=20), (4,), 2, [0])
    with torch.no_grad():  # push the cart to where the pole falls: that holds it for 20 steps
        for parameter in agent.online.parameters():
            parameter.zero_()
        agent.online.layers[0].weight[0, 2:, 0] = torch.tensor([1.0, 1.0])  # unit 0: falls right
        agent.online.layers[1].weight[0, 0, 0] = 1
        agent.online.layers[2].weight[0, 0, 1] = 1
        agent.online.layers[2].bias[0, 0, 0] = 1e-9
    returns = evaluate(agent, episodes=5)
    assert returns.tolist() == [[20.0] * 5]
    assert (evaluate(agent, episodes=5, seed=1) == evaluate(agent, episodes=5, seed=1)).all()


def test_evaluation_under_another_time_limit():
    agent = DQNLearner(SHORT.replace(env=ENDLESS, max_episode_steps=3), (1,), 2, [0])
    assert evaluate(agent, episodes=2).tolist() == [[3.0, 3.0]]
    assert evaluate(agent, episodes=2, max_episode_steps=7).tolist() == [[7.0, 7.0]]
    with pytest.raises(ValueError, match="max_episode_steps: must be at least 1, got 0"):
        evaluate(agent, max_episode_steps=0)


@pytest.mark.parametrize("shape, actions", [((5,), 2), ((4,), 3), ((2, 3), 2)])
def test_an_agent_that_was_made_for_something_else_is_refused(shape, actions):
    with pytest.raises(ValueError, match=r"agent: expects .*, but 'CartPole-v1' has \(4,\) and 2"):
        evaluate(DQNLearner(SHORT, shape, actions, [0]), 1)


@pytest.mark.parametrize(
    ("seed", "exception", "message"),
    [
        (-1, ValueError, "seed: must be at least 0, got -1"),
        (1.5, TypeError, "seed: must be an integer, got 1.5"),
        (None, TypeError, "seed: must be an integer, got None"),
    ],
)
def test_a_wrong_seed_of_an_evaluation_is_named(seed, exception, message):
    agent = DQNLearner(SHORT, (4,), 2, [0])
    with pytest.raises(exception, match=message):
        evaluate(agent, 1, seed=seed)


def test_a_numpy_integer_is_a_seed_of_an_evaluation():
    agent = DQNLearner(SHORT, (4,), 2, [0])
    assert (evaluate(agent, 2, seed=np.int64(7)) == evaluate(agent, 2, seed=7)).all()


def test_a_history_with_its_agent_can_be_pickled():
    """As it comes back from a worker process."""
    history = pickle.loads(pickle.dumps(train(SHORT, 0)))
    observations = np.ones((1, 3, 4), np.float32)
    assert history.agent.q_values(observations).shape == (1, 3, 2)
    assert evaluate(history.agent, 1).shape == (1, 1)


@pytest.mark.parametrize("episodes, exception", [(0, ValueError), (1.5, TypeError)])
def test_evaluation_needs_an_episode(episodes, exception):
    agent = DQNLearner(SHORT, (4,), 2, [0])
    with pytest.raises(exception, match="episodes: must be"):
        evaluate(agent, episodes)


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
        return (*map(np.array, fields), np.ones(batch_size), np.array(indices))

    def update_priorities(self, indices, td_errors):
        self.updates.append((indices, td_errors))


def test_a_memory_of_ones_own_trains_and_is_measured():
    memory, seen = OwnMemory(), []
    history = train(SHORT, 3, replay=memory, callbacks=[lambda h: seen.append(h.step)])
    assert (len(memory), history.step, seen) == (240, 240, history.log_steps)
    observation, action, reward, next_observation, terminated, truncated = memory.steps[0]
    assert observation.shape == next_observation.shape == (4,)
    assert np.shape(action) == np.shape(reward) == np.shape(terminated) == np.shape(truncated) == ()
    assert len(memory.updates) == history.agent.updates == 201
    assert all(indices.shape == errors.shape == (8,) for indices, errors in memory.updates)
    for name in ("loss", "td_error", "q_value", "weight", "held_out_q"):
        assert np.isfinite(history.measure(name)[-1]).all(), name
    assert np.isnan(history.measure("age")).all()


def test_a_memory_of_ones_own_learns_what_the_package_would_from_the_same_minibatches():
    """It draws what a recorded buffer drew."""
    replay = RECORDED["uniform"](240, (4,), runs=1, seed=1)
    expected = train(SHORT, 3, replay=replay)
    drawn = iter(replay.replayed)
    memory = OwnMemory()
    memory.numbers.choices = lambda population, k: next(drawn)
    history = train(SHORT, 3, replay=memory)
    assert history.episodes == expected.episodes
    for one, same in zip(
        history.agent.online.parameters(), expected.agent.online.parameters(), strict=True
    ):
        assert torch.equal(one, same)


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
    with pytest.raises(ValueError, match=r"replay: must have the number of runs .* \(2\), got 3"):
        train(SHORT, [0, 1], replay=ReplayBuffer(240, (4,), runs=3))


# Where nothing ends, and where actions begin elsewhere


def test_an_evaluation_ends_where_no_episode_does(monkeypatch):
    monkeypatch.setattr(training, "LONGEST_EPISODE", 40)
    agent = DQNLearner(SHORT.replace(env=ENDLESS), (1,), 2, [0])
    with pytest.warns(UserWarning, match="2 of 2 episodes did not end in 40 steps"):
        assert evaluate(agent, episodes=2).tolist() == [[40.0, 40.0]]
    with warnings.catch_warnings(action="error"):  # a limit of one's own may be longer
        assert evaluate(agent, 1, max_episode_steps=50).tolist() == [[50.0]]


class StartsAtFive(gym.Env):
    """Pays 1 for the action 6; any but 5 and 6 is an error."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return np.ones(2, np.float32), float(action == 6), False, False, {}


gym.register("tests/StartsAtFive-v0", StartsAtFive, max_episode_steps=4)


def test_every_way_an_action_leaves_adds_the_start_of_the_space(tmp_path):
    config = SHORT.replace(env="tests/StartsAtFive-v0", discount=0.5)
    replay = ReplayBuffer(240, (2,), runs=2, seed=[0, 1])
    agent = train(config, [0, 1], replay=replay).agent
    assert set(replay.storage.rows["action"].flat) == {0, 1}  # as the network counts them
    assert evaluate(agent, 2).tolist() == [[4.0, 4.0]] * 2
    agent.save(tmp_path / "agent.safetensors")
    for each in (agent, DQNLearner.load(tmp_path / "agent.safetensors")):
        assert each.policy(1)(np.ones(2, np.float32)) == 6
        assert evaluate(each, 1).tolist() == [[4.0]] * 2


# Learning


@pytest.mark.slow
def test_agents_learn_to_balance_the_pole():
    """Ten agents, 4,000 steps each, episodes of at most 200 steps: far better than chance."""
    config = SHORT.replace(
        sampler="proportional",
        steps=4000,
        max_episode_steps=200,
        hidden=(64, 64),
        learning_rate=1e-3,
        batch_size=32,
        learning_starts=100,
        target_update_every=100,
        epsilon_steps=1500,
    )
    chance = config.replace(steps=1000, epsilon_end=1.0, learning_starts=1000)
    at_random = np.mean([value for _, _, value, _ in train(chance).episodes])
    assert 15 < at_random < 30
    greedy = evaluate(train(config).agent, episodes=5).mean(axis=1)
    assert np.median(greedy) > 100 > 3 * at_random
    assert greedy.min() > 2 * at_random
