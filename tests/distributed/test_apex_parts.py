"""What actors and memories of Ape-X do, without a cluster."""

import dataclasses
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from another_setting import another_value

from per_tutorial.distributed.acting import Acting, as_batch
from per_tutorial.distributed.apex import _Training, train_apex
from per_tutorial.distributed.apex_files import resolve_auto, restore_learner, save_learner
from per_tutorial.distributed.apex_settings import ApexConfig
from per_tutorial.distributed.memory import Memory
from per_tutorial.distributed.processes import Report
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.replay.samplers import make_replay

CONFIG = DQNConfig(
    sampler="proportional",
    double=True,
    n_step=3,
    discount=0.9,
    hidden=(8,),
    batch_size=8,
    learning_starts=20,
    max_episode_steps=9,
    terminal_reward=-1,
)


def test_the_ladder_is_that_of_the_paper():
    ladder = ApexConfig(actors=360).epsilons
    assert ladder[0] == 0.4 and ladder[-1] == pytest.approx(0.4**8)
    for i in (1, 100, 358):
        assert ladder[i] == pytest.approx(0.4 ** (1 + i / 359 * 7))
    assert ApexConfig(actors=1).epsilons.tolist() == [0.4]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"actors": 0}, "actors: must be at least 1, got 0"),
        ({"lead": -1}, "lead: must be at least 0, got -1"),
        ({"actors": 2, "shards": 3}, "shards: must be at most actors .2., got 3"),
        ({"base": 2}, r"base: must be in \[0, 1\], got 2"),
        ({"environments_each": 3}, "fetch_every: must be a multiple of environments_each"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ApexConfig(**changes)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"sampler": "laber"},
            "sampler: must need neither candidates nor episodes nor reducible losses, got 'laber'",
        ),
        ({"capacity": 20}, "shards: each must hold a minibatch of 8, got 3 with a capacity of 20"),
        (
            {"env": "ALE/Pong-v5", "environments": 2},
            "environments: must be 1, since each actor has its own .*, got 2",
        ),
    ],
)
def test_trainings_that_cannot_be_are_refused_before_a_cluster_is_needed(changes, message):
    with pytest.raises(ValueError, match=message):
        train_apex(CONFIG.replace(**changes), ApexConfig(shards=3), address="nowhere")


def test_the_files_of_another_or_a_damaged_training_are_refused(tmp_path):
    agent, history = DQNLearner(CONFIG, (4,), 2, [0]), History(CONFIG, [0])
    save_learner(tmp_path, {"lead": 3}, agent, history)
    restore_learner(tmp_path, {"lead": 3}, agent, history)
    with pytest.raises(ValueError, match="made with lead = 3, not 4; choose another folder"):
        restore_learner(tmp_path, {"lead": 4}, agent, history)
    path = tmp_path / "learner.npz"
    with np.load(path) as file:
        arrays = dict(file)
    arrays.pop("agent.updates")
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="learner.npz' is damaged .arrays are missing"):
        restore_learner(tmp_path, {"lead": 3}, agent, history)


def test_what_was_chosen_for_auto_stays(tmp_path):
    config = CONFIG.replace(compiled="auto")
    assert resolve_auto(tmp_path, config) == config  # nothing is there
    agent = DQNLearner(CONFIG, (4,), 2, [0])
    save_learner(tmp_path, {"compiled": True}, agent, History(CONFIG, [0]))
    assert resolve_auto(tmp_path, config).compiled is True
    assert resolve_auto(tmp_path, CONFIG) is CONFIG


class Recorded:
    """Environments whose steps are kept."""

    def __init__(self, environments):
        self._environments, self.steps = environments, []

    def __getattr__(self, name):
        return getattr(self._environments, name)

    def step(self, actions):
        before = self._environments.observation.copy()
        step = self._environments.step(actions)
        self.steps.append((before, actions.copy(), step))
        return step


def naive_windows(steps, count, config):
    """The n-step windows of recorded steps, by their definition."""
    windows = []
    for row in range(count):
        for t, (observation, actions, _) in enumerate(steps):
            total, k = 0.0, 0
            while k < config.n_step and t + k < len(steps):
                step = steps[t + k][2]
                reward = config.terminal_reward if step.terminated[row] else step.reward[row]
                total += config.discount**k * reward
                k += 1
                if step.terminated[row] or step.truncated[row]:
                    break
            over = step.terminated[row] or step.truncated[row]
            if k == config.n_step or over:
                after = step.next_observation[row]
                start = observation[row]
                windows.append((*start, actions[row], total, *after, step.terminated[row], k))
    return np.array(sorted(windows))


@pytest.mark.parametrize("count", [1, 2])
def test_windows_are_those_of_the_definition(count):
    acting = Acting(CONFIG, np.full(count, 0.5), range(count))
    acting.environments = Recorded(acting.environments)
    found, episodes = [], []
    for _ in range(5):  # windows go on from one call to the next
        windows, ended = acting.act(20 * count)
        episodes += ended
        columns = (windows.actions, windows.rewards, windows.terminated, windows.steps)
        found.append((windows, columns))
    rows = np.concatenate(
        [
            np.column_stack(
                [w.observations, w.actions, w.rewards, w.next_observations, w.terminated, w.steps]
            )
            for w, _ in found
        ]
    )
    wanted = naive_windows(acting.environments.steps, count, CONFIG)
    np.testing.assert_allclose(np.array(sorted(map(tuple, rows))), wanted, rtol=1e-5)
    assert {1, 2, 3} == set(np.concatenate([w.steps for w, _ in found]))
    assert all(length <= 9 and 0 < step <= 20 * count for step, _, length in episodes)


# Not the schedule of ε, which the ladder replaces, nor what `Acting` decides for itself.
ACTORS_OWN = {"environments", "device", "compiled", "precision"}
SETTINGS = [
    field
    for field in dataclasses.fields(DQNConfig)
    if not field.name.startswith("epsilon_") and field.name not in ACTORS_OWN
]


def as_rows(steps, observations, actions, rewards, next_observations, terminated):
    """One row for each window, in an order of their own."""
    columns = (observations, actions, rewards, next_observations, terminated, steps)
    return np.array(sorted(np.column_stack(columns).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("field", SETTINGS, ids=lambda field: field.name)
def test_a_setting_does_to_the_windows_what_it_does_in_a_plain_training(field):
    """Both act at random with the same seed, so they live through the same steps."""
    steps = 240
    config = CONFIG.replace(capacity=600, learning_starts=600, epsilon_start=1, epsilon_end=1)
    config = config.replace(max_episode_steps=30)  # of the episodes some terminate, some do not
    config = config.replace(**{field.name: another_value(field)})
    acting = Acting(config, np.ones(1), [5])
    windows, _ = acting.act(steps)
    replay = make_replay(config, acting.environments.observation_shape, [5])
    train(config.replace(steps=steps), [5], replay=replay)
    rows, counts = replay.storage.n_step_transitions(np.arange(len(replay))[None])
    closed = (counts == config.n_step) | rows["terminated"] | rows["truncated"]
    rows, counts = rows[closed], counts[closed]
    names = ("observation", "action", "reward", "next_observation", "terminated")
    assert rows["terminated"].any() or field.name == "env"  # Acrobot, which takes longer
    wanted = as_rows(counts, *(rows[name] for name in names))
    assert len(wanted) > steps / 2
    np.testing.assert_allclose(as_rows(windows.steps, *windows[:5]), wanted, rtol=1e-6)


def test_first_priorities_are_what_the_learner_would_find():
    acting = Acting(CONFIG, np.array([0.5]), [0])
    learner = DQNLearner(CONFIG, (4,), 2, [7])
    acting.use({name: each.numpy() for name, each in learner.online.state_dict().items()})
    windows, _ = acting.act(60)
    np.testing.assert_array_equal(windows.td_errors, learner.td_errors(as_batch(windows))[0])
    other = DQNLearner(CONFIG, (4,), 2, [8]).td_errors(as_batch(windows))[0]
    assert not np.allclose(windows.td_errors, other)


def filled(capacity=64, **options):
    acting = Acting(CONFIG, np.array([0.5]), [0])
    memory = Memory(CONFIG, capacity, (4,), 0, **options)
    windows, _ = acting.act(50)
    memory.add(windows, 3)
    return acting, memory, windows


def test_windows_come_back_as_they_went_in_with_the_chances_of_their_priorities():
    _, memory, windows = filled()
    priorities = (np.abs(windows.td_errors) + CONFIG.priority_epsilon) ** CONFIG.alpha
    counts, draws = np.zeros(len(priorities)), 0
    for _ in range(400):
        drawn = memory.sample(8, 0.4)
        numbers = drawn.batch.indices[0]
        counts += np.bincount(numbers, minlength=len(counts))
        draws += len(numbers)
    for name, kept in zip(drawn.batch._fields[:5], windows[:5], strict=True):
        np.testing.assert_array_equal(getattr(drawn.batch, name)[0], kept[numbers])
    np.testing.assert_array_equal(drawn.batch.steps[0], windows.steps[numbers])
    assert (drawn.versions == 3).all() and drawn.added == len(priorities)
    np.testing.assert_allclose(counts / draws, priorities / priorities.sum(), atol=0.02)


def test_a_shard_may_hold_less_than_learning_starts():
    _, memory, windows = filled(capacity=CONFIG.learning_starts // 2)
    drawn = memory.sample(8, 0.4)
    assert drawn.added == len(windows.actions) > 10
    assert drawn.batch.indices.min() >= len(windows.actions) - 10


def test_a_priority_of_a_window_that_is_gone_is_skipped():
    acting, memory, windows = filled()
    drawn = memory.sample(8, 0.4)
    for version in (4, 5):
        memory.add(acting.act(50)[0], version)
    memory.update(drawn.batch.indices, np.full((1, 8), 1e6), 6)
    again = memory.sample(64, 0.4)
    assert set(np.unique(again.versions)) <= {4, 5}


def test_a_memory_begins_with_what_it_saved(tmp_path):
    _, memory, windows = filled(path=tmp_path / "shard.npz")
    assert memory.restored() == 0
    memory.save()
    again = Memory(CONFIG, 64, (4,), 0, tmp_path / "shard.npz")
    assert again.restored() == len(windows.actions)
    one, other = memory.sample(8, 0.4), again.sample(8, 0.4)
    for mine, theirs in zip(one.batch, other.batch, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_memory_with_too_little_gives_nothing():
    assert Memory(CONFIG, 64, (4,), 0).sample(8, 0.4) is None


def asking(steps):
    """A learner whose three actors only note what they are asked for: (actor, steps)."""
    asked = []

    def member(number):
        def act(parameters, version, steps, memory):
            asked.append((number, steps))
            return object()

        return SimpleNamespace(act=SimpleNamespace(remote=act))

    training = object.__new__(_Training)
    training.__dict__.update(
        apex=ApexConfig(actors=3, fetch_every=100, lead=150),
        config=CONFIG.replace(steps=steps, learning_starts=100, update_every=2),
        history=SimpleNamespace(step=0, episodes=[], windows_lost=0),
        agent=SimpleNamespace(updates=0),
        memories=SimpleNamespace(members=[None]),
        actors=SimpleNamespace(members=[member(k) for k in range(3)], done=lambda number: None),
        acting={},
        idle=deque(range(3)),
        proven={0, 1, 2},
        spare=0,
        _published=(None, 0),
    )
    return training, asked


def test_actors_are_asked_for_whole_messages_until_they_are_too_far_ahead():
    training, asked = asking(steps=640)

    def ask(step, updates):
        asked.clear()
        training.acting.clear()
        training.idle = deque(range(3))
        training.history.step, training.agent.updates = step, updates
        training._published = (None, updates)
        training._ask_actors()
        return [steps for _, steps in asked]

    assert ask(step=0, updates=0) == [100, 100, 100]  # 250 are granted
    assert ask(step=200, updates=0) == [100]
    assert ask(step=250, updates=0) == []
    assert ask(step=250, updates=1) == [100]  # not the two that an update grants
    assert ask(step=500, updates=250) == [100, 40]  # all that is left


def test_actors_take_turns_where_there_are_more_than_enough():
    training, asked = asking(steps=100_000)
    training._ray = SimpleNamespace(
        wait=lambda references, timeout: (references, []),
        get=lambda reference: Report(100, [], 0, 0),
        exceptions=SimpleNamespace(RayError=ZeroDivisionError),
    )
    training._note = lambda **_: None
    while len(asked) < 300:
        training._ask_actors()
        training._hear_actors(0)
        training.agent.updates += 50  # which grants one message
        training._published = (None, training.agent.updates)
    counts = np.bincount([number for number, _ in asked])
    assert counts.max() - counts.min() <= 1
