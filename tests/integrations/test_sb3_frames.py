"""Observations kept once: they come back as if each had been stored twice."""

import copy
import itertools
import warnings

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium import spaces
from interrupts import interrupted
from sb3_episodes import ACTIONS, Episodes

from per_tutorial.integrations.sb3 import FrameReplayBuffer, PrioritizedDQN, PrioritizedReplayBuffer

ROWS, STACK = 9, 4
PICTURES = spaces.Box(0, 255, (STACK, 5, 6), np.uint8)


class Pair:
    """Two buffers that are given the same steps."""

    def __init__(self, one, other):
        self.one, self.other, self.n_envs = one, other, one.n_envs
        self.observation_space = one.observation_space

    def add(self, *step):
        self.one.add(*step)
        self.other.add(*step)


def assert_same_batches(one, other, batch_size=300):
    first, second = one.sample(batch_size), other.sample(batch_size)
    for name, ours, twins in zip(first._fields, first, second, strict=True):
        if ours is not None:
            np.testing.assert_array_equal(ours, twins, err_msg=name)
    np.testing.assert_array_equal(first.indices, second.indices)
    errors = np.random.default_rng(0).normal(size=batch_size)
    one.update_priorities(first.indices, errors)
    other.update_priorities(first.indices, errors)


def pair(n_envs=1, space=PICTURES, stack=STACK, **kwargs):
    settings = {"seed": 3, **kwargs}
    ours = FrameReplayBuffer(ROWS * n_envs, space, ACTIONS, "cpu", n_envs, stack=stack, **settings)
    twin = PrioritizedReplayBuffer(ROWS * n_envs, space, ACTIONS, "cpu", n_envs, **settings)
    return Pair(ours, twin)


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("fill", ["black", "first", "noise"])
@pytest.mark.parametrize("ends", [0.0, 0.15, 0.6, 1.0])
def test_frames_come_back_as_from_a_buffer_that_keeps_them_all(ends, fill, n_envs, n_steps):
    both = pair(n_envs, n_steps=n_steps)
    episodes = Episodes(both, ends=ends, stack=STACK, fill=fill, seed=int(ends * 10))
    for steps in (1, 1, 3, ROWS - 5, 1, 4, 3 * ROWS, 2):
        episodes.add(steps)
        assert_same_batches(both.one, both.other)


def test_environments_that_start_again_without_an_end():
    """As `learn` does, which resets them: frames of two episodes must not mix."""
    both = pair(2)
    episodes = Episodes(both, ends=0.0, stack=STACK)
    for _ in range(4):
        episodes.add(3)
        both.one.truncate_episodes()
        both.other.truncate_episodes()
        episodes.now = np.array([episodes.begin() for _ in range(2)])
        assert_same_batches(both.one, both.other)


@pytest.mark.parametrize("space, stack", [((4, 6, 5), 4), ((6, 5, 4), 4), ((8, 7, 3 * 2), 2)])
def test_channels_may_be_first_or_last_and_frames_in_colour(space, stack):
    pictures = spaces.Box(0, 255, space, np.uint8)
    both = pair(2, pictures, stack)
    axis = 0 if space[0] == 4 else 2
    channels = space[axis] // stack
    frame_shape = (channels, *np.delete(space, axis).tolist())
    rng = np.random.default_rng(0)
    frames = np.zeros((2, stack, *frame_shape), np.uint8)

    def shown():
        first = frames.reshape(2, stack * channels, *frame_shape[1:])
        return first if axis == 0 else np.moveaxis(first, 1, -1)

    before = shown().copy()
    for _ in range(25):
        frames = np.concatenate(
            (frames[:, 1:], rng.integers(0, 256, (2, 1, *frame_shape), np.uint8)), axis=1
        )
        both.add(before, shown(), np.zeros(2, int), np.zeros(2), np.zeros(2), [{}, {}])
        before = shown().copy()
        assert_same_batches(both.one, both.other, 60)
    assert not both.one._frames.finals and not both.one._frames.whole  # all was shared


def test_observations_that_are_no_stacks_come_back_and_are_told():
    """Such as the channels of one colour picture."""
    both = pair(2)
    rng = np.random.default_rng(0)

    def add(steps):
        for _ in range(steps):
            some, others = rng.integers(0, 256, (2, 2, *PICTURES.shape), np.uint8)
            both.add(some, others, np.zeros(2, int), np.zeros(2), np.zeros(2), [{}, {}])

    with pytest.warns(UserWarning, match="not the observation moved on.*give stack=1"):
        add(10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(20)  # it was said once
    assert_same_batches(both.one, both.other, 60)
    size = both.other.observations.nbytes + both.other.next_observations.nbytes
    assert both.one.nbytes > size  # nothing is hidden
    assert len(both.one._frames.whole) == 2 * ROWS  # and what was overwritten is forgotten


@pytest.mark.parametrize("fill", ["black", "first"])
def test_the_next_step_replaces_an_interrupted_one(fill):
    both = pair(2)
    episodes = Episodes(both, stack=STACK, fill=fill, seed=1).add(12)
    original = copy.deepcopy(both.one)
    step = Episodes(both.one, stack=STACK, fill=fill, seed=7)  # not what follows
    zeros = np.zeros(2)
    call = (
        step.now,
        step.now[:, ::-1].copy(),
        zeros.astype(int),
        zeros,
        np.array([1, 0]),
        [{}, {}],
    )
    original.add(*call)
    for after in itertools.count(1, 4):
        victim = copy.deepcopy(both.one)
        if not interrupted(lambda victim=victim: victim.add(*call), after):
            break
        if victim._steps == 12:
            twin = Pair(victim, copy.deepcopy(both.other))
            again = copy.deepcopy(episodes)
            again.buffer = twin
            again.add(3)
            assert_same_batches(twin.one, twin.other, 60)


def test_an_agent_learns_from_frames():
    """SB3's own frame stack, its resets and its last observations: the same as from two copies."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.envs import FakeImageEnv
    from stable_baselines3.common.vec_env import VecFrameStack

    models = []
    for kind in (FrameReplayBuffer, PrioritizedReplayBuffer):
        envs = make_vec_env(
            FakeImageEnv,
            2,
            env_kwargs={"screen_height": 36, "screen_width": 36, "n_channels": 1, "discrete": True},
            seed=1,
        )
        for each in envs.envs:
            each.unwrapped.ep_length = 7
            each.unwrapped.observation_space.seed(2)
        model = PrioritizedDQN(
            "CnnPolicy",
            VecFrameStack(envs, 4),
            buffer_size=60,
            learning_starts=10**6,
            replay_buffer_class=kind,
            policy_kwargs={"features_extractor_kwargs": {"features_dim": 8}, "net_arch": []},
            seed=1,
        )
        models.append(model.learn(120))
        model.train(1, batch_size=8)
    frames, whole = (model.replay_buffer for model in models)
    assert frames.obs_shape == (4, 36, 36)
    assert_same_batches(frames, whole, 200)
    assert not frames._frames.whole  # SB3 pads with black frames
