"""Observations kept once: they come back as if each had been stored twice."""

import copy
import itertools

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium import spaces
from interrupts import interrupted
from sb3_episodes import ACTIONS, Episodes, assert_same_batches

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


def pair(n_envs=1, space=PICTURES, stack=STACK, **kwargs):
    settings = {"seed": 3, **kwargs}
    ours = FrameReplayBuffer(ROWS * n_envs, space, ACTIONS, "cpu", n_envs, stack=stack, **settings)
    twin = PrioritizedReplayBuffer(ROWS * n_envs, space, ACTIONS, "cpu", n_envs, **settings)
    return Pair(ours, twin)


@pytest.mark.parametrize("n_envs, n_steps", [(1, 3), (3, 1), (3, 3)])
@pytest.mark.parametrize("fill", ["black", "first", "noise"])
@pytest.mark.parametrize("ends", [0.15, 0.6])
@pytest.mark.slow
def test_frames_come_back_as_from_a_buffer_that_keeps_them_all(ends, fill, n_envs, n_steps):
    """Also where the environments begin anew without an end, whether the buffer is told or not."""
    both = pair(n_envs, n_steps=n_steps)
    episodes = Episodes(both, ends=ends, stack=STACK, fill=fill, seed=int(ends * 10))
    for steps in (1, 1, 3, ROWS - 5, 1, 4, 3 * ROWS, 2):
        episodes.add(steps)
        assert_same_batches(both.one, both.other)
    for told in (True, False):
        if told:
            both.one.truncate_episodes()
            both.other.truncate_episodes()
        episodes.now = np.array([episodes.begin() for _ in range(n_envs)])
        episodes.add(3)
        assert_same_batches(both.one, both.other)


def test_observations_that_are_no_stacks_come_back_and_frames_in_colour_are_shared():
    colours = pair(2, spaces.Box(0, 255, (8, 9, 10), np.uint8), stack=2)
    both, rng = pair(2), np.random.default_rng(0)
    frames = np.zeros((2, 8, 9, 10), np.uint8)
    rest = np.zeros(2, int), np.zeros(2), np.zeros(2), [{}, {}]
    with pytest.warns(UserWarning, match="^stack: .* no stacks of 4 frames, .* give repl") as said:
        for _ in range(25):
            both.add(*rng.integers(0, 256, (2, 2, *PICTURES.shape), np.uint8), *rest)
            new = rng.integers(0, 256, (2, 4, 9, 10), np.uint8)
            after = np.concatenate((frames[:, 4:], new), axis=1)
            colours.add(frames, after, *rest)
            frames = after
    assert len(said) == 1
    for each in (both, colours):
        assert_same_batches(each.one, each.other, 60)
    # What was overwritten is forgotten; the oldest goes with the next step.
    assert [len(kept) for kept in both.one._frames.kept] == [2 * (ROWS + 1)] * 2
    assert colours.one._frames.kept == ({}, {})


@pytest.mark.parametrize("fill", ["black", "first"])
def test_the_next_step_replaces_an_interrupted_one(fill):
    both = pair(2)
    episodes = Episodes(both, stack=STACK, fill=fill, seed=1).add(12)
    original = copy.deepcopy(both.one)
    step = Episodes(both.one, stack=STACK, fill=fill, seed=7)  # not what follows
    zeros = np.zeros(2)
    turned = step.now[:, ::-1].copy()
    call = step.now, turned, zeros.astype(int), zeros, np.array([1, 0]), [{}, {}]
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


@pytest.mark.slow
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
    assert not frames._frames.kept[0]  # SB3 pads with black frames
