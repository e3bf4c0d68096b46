"""Ape-X from pixels: each frame travels and is kept once, and every stack is what the agent saw."""

import numpy as np
import pytest
from per_tutorial.common.states import checked_state

from per_tutorial.distributed.acting import Acting, as_batch
from per_tutorial.distributed.memory import Memory
from per_tutorial.distributed.n_step_batches import FramePool, NStepBatch
from per_tutorial.dqn.config import DQNConfig

CONFIG = DQNConfig(
    env="ALE/Breakout-v5",
    sampler="proportional",
    frame_size=20,
    hidden=(8,),
    n_step=3,
    batch_size=8,
    learning_starts=20,
    max_episode_steps=70,
)
SHAPE = (4, 20, 20)


@pytest.fixture(scope="module")
def games():
    """An `Acting` of two games that plays at random, and the steps that it made."""
    pytest.importorskip("ale_py")
    acting = Acting(CONFIG, np.ones(2), [3, 4])
    steps, step_of = [], acting.environments.step

    def step(actions):
        before = acting.environments.observation.copy()
        made = step_of(actions)
        steps.append((before, actions.copy(), made))
        return made

    acting.environments.step = step
    return acting, [acting.act(100)[0] for _ in range(4)], steps


@pytest.mark.slow
def test_stacks_are_what_the_environments_showed(games):
    _, messages, steps = games
    wanted = {0: [], 1: []}  # in each game, the windows in the order of their first steps
    for row, windows in wanted.items():
        for t, (before, actions, _) in enumerate(steps):
            for k in range(CONFIG.n_step):
                if t + k == len(steps):
                    break
                step = steps[t + k][2]
                over = step.terminated[row] or step.truncated[row]
                if over or k == CONFIG.n_step - 1:
                    windows.append((before[row], actions[row], step.next_observation[row], k + 1))
                    break
    # What is closed in one step comes game after game: the games are told apart by what they show.
    found = [list(zip(*_whole(each), each.actions, each.steps, strict=True)) for each in messages]
    left = [windows for message in found for windows in message]
    assert len(left) == len(wanted[0]) + len(wanted[1])
    for observation, following, action, k in left:
        for windows in wanted.values():
            if windows and np.array_equal(windows[0][0], observation):
                _, wanted_action, wanted_following, wanted_k = windows.pop(0)
                break
        else:
            pytest.fail("a stack was never shown")
        np.testing.assert_array_equal(following, wanted_following)
        assert (action, k) == (wanted_action, wanted_k)
    assert wanted == {0: [], 1: []}
    terminated = np.concatenate([each.terminated for each in messages])
    lost_lives = sum(int(step.terminated.sum()) for _, _, step in steps)
    truncated = sum(int(step.truncated.sum()) for _, _, step in steps)
    assert lost_lives >= 2 and truncated >= 2
    assert lost_lives <= terminated.sum() <= CONFIG.n_step * lost_lives


def _whole(windows):
    """Both stacks of windows, (n, stack, size, size) each."""
    batch = as_batch(windows)
    return batch.observations[0], batch.next_observations[0]


@pytest.mark.slow
def test_a_message_holds_each_frame_once(games):
    _, messages, steps = games
    for windows in messages:
        ends = sum(int((step.terminated | step.truncated).sum()) for _, _, step in steps)
        frames = len(windows.frames)
        # A frame for each step; of each game, what an observation and a window need beside it
        assert frames <= 1 + 100 + 2 * (4 + CONFIG.n_step) + ends
        used = np.unique(np.stack((windows.observations, windows.next_observations)))
        np.testing.assert_array_equal(used, np.arange(frames))
        assert windows.frames.dtype == np.uint8 and not windows.frames[0].any()


def test_first_priorities_are_those_of_whole_stacks(games):
    acting, messages, _ = games
    windows = messages[-1]
    np.testing.assert_array_equal(windows.td_errors, acting.agent.td_errors(as_batch(windows))[0])


def test_a_pool_keeps_what_is_needed_and_grows():
    random = np.random.default_rng(0)
    pool, kept = FramePool((2, 2), 10), []
    for _ in range(300):
        if kept and random.random() < 0.45:
            places, _ = kept.pop(int(random.integers(len(kept))))
            pool.drop(places)
        else:
            frames = random.integers(1, 256, (6, 2, 2)).astype(np.uint8)
            frames[0] = 0
            places = random.integers(0, 6, (2, 3, 4)).astype(np.int32)
            kept.append((pool.add(frames, places), frames[places]))
        for places, stacks in kept:
            np.testing.assert_array_equal(pool.stacks(places), stacks)
        used = {int(place) for places, _ in kept for place in np.unique(places)} - {0}
        assert len(pool) == len(used)
    assert len(pool.frames) > 11  # it has grown
    assert not pool.frames[0].any()

    places = np.concatenate([places for places, _ in kept])
    state = {name: array.copy() for name, array in pool.state.items()}
    assert len(state["frames"]) == len(pool)
    FramePool.check(state, places)
    again = FramePool((2, 2), 3)
    again.restore(state, places)
    for kept_places, stacks in kept:
        np.testing.assert_array_equal(again.stacks(kept_places), stacks)
        again.drop(kept_places)
    assert len(again) == 0
    with pytest.raises(ValueError, match="frames must be those of the stored stacks, each once"):
        FramePool.check(state, places[1:] * 0)


def test_a_file_cannot_ask_for_much_memory():
    pool = FramePool((2, 2), 3)
    state = {"indices": np.array([2**31 - 1], np.int32), "frames": np.ones((1, 2, 2), np.uint8)}
    with pytest.raises(ValueError, match="indices"):
        checked_state(state, pool.schema)


def message(random, count):
    """NStepBatch whose frames, rewards and actions are random."""
    frames = random.integers(1, 256, (count + 7, *SHAPE[1:])).astype(np.uint8)
    frames[0] = 0
    places = np.arange(1, count + 1, dtype=np.int32)[:, None] + np.arange(4, dtype=np.int32)
    places[0, :3] = 0
    return NStepBatch(
        places,
        random.integers(0, 4, count),
        random.random(count, np.float32),
        places + np.int32(2),
        random.random(count) < 0.1,
        random.integers(1, 4, count),
        random.random(count),
        frames,
    )


def test_a_memory_gives_back_the_stacks_that_went_in(tmp_path):
    random, path = np.random.default_rng(0), tmp_path / "shard.npz"
    memory = Memory(CONFIG, 64, SHAPE, 0, path)
    stacks = {}  # number → both stacks, and the action
    for count in (30, 30, 30, 100, 7):  # once more than it can hold
        windows = message(random, count)
        first = max(stacks, default=-1) + 1
        for number, (observation, following) in enumerate(zip(*_whole(windows), strict=True)):
            stacks[first + number] = observation, following, windows.actions[number]
        assert memory.add(windows, 5) == min(len(stacks), 64)
        drawn = memory.sample(8, 0.4)
        for k, number in enumerate(drawn.batch.indices[0]):
            observation, following, action = stacks[number]
            np.testing.assert_array_equal(drawn.batch.observations[0, k], observation)
            np.testing.assert_array_equal(drawn.batch.next_observations[0, k], following)
            assert drawn.batch.actions[0, k] == action
        assert number >= len(stacks) - 64
    assert len(memory._pool) <= 64 + 2 * 6  # the frames of what was overwritten are gone

    memory.save()
    again = Memory(CONFIG, 64, SHAPE, 0, path)
    assert again.restored() == len(stacks) > 64  # a full ring still counts what it was given
    for _ in range(3):
        one, other = memory.sample(8, 0.4), again.sample(8, 0.4)
        for mine, theirs in zip(
            (*one.batch, one.versions), (*other.batch, other.versions), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
        windows = message(random, 20)
        memory.add(windows, 6), again.add(windows, 6)


def test_a_file_whose_frames_are_missing_is_refused(tmp_path):
    path = tmp_path / "shard.npz"
    memory = Memory(CONFIG, 64, SHAPE, 0, path)
    memory.add(message(np.random.default_rng(0), 30), 5)
    memory.save()
    with np.load(path) as file:
        arrays = dict(file)
    arrays["pool.indices"] = arrays["pool.indices"][:-1]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="shard.npz' is damaged .*frames must be"):
        Memory(CONFIG, 64, SHAPE, 0, path)
