"""Observations kept once: they come back as if each had been stored twice."""

import inspect

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium import spaces
from sb3_steps import ACTIONS, assert_same_batches

from per_tutorial.integrations.sb3 import FrameReplayBuffer, PrioritizedDQN, PrioritizedReplayBuffer

ROWS = 9


def pair(*shape, stack):
    """Two buffers for pictures of two environments; the first one keeps each frame once."""
    given = 2 * ROWS, spaces.Box(0, 255, shape, np.uint8), ACTIONS, "cpu", 2
    return FrameReplayBuffer(*given, stack=stack, seed=3), PrioritizedReplayBuffer(*given, seed=3)


def test_observations_that_are_no_stacks_come_back_and_frames_in_colour_are_shared():
    noisy, coloured = pair(4, 5, 6, stack=4), pair(8, 9, 10, stack=2)
    rng, frames = np.random.default_rng(0), np.zeros((2, 8, 9, 10), np.uint8)
    rest = np.zeros(2, int), np.zeros(2), np.zeros(2), [{}, {}]
    with pytest.warns(UserWarning, match="^stack: .* no stacks of 4 frames, .* give repl") as said:
        for _ in range(25):
            noise = rng.integers(0, 256, (2, 2, 4, 5, 6), np.uint8)
            new = rng.integers(0, 256, (2, 4, 9, 10), np.uint8)
            after = np.concatenate((frames[:, 4:], new), axis=1)
            for each, other in zip(noisy, coloured, strict=True):
                each.add(*noise, *rest)
                other.add(frames, after, *rest)
            frames = after
    assert sum(each.category is UserWarning for each in said) == 1
    for both in (noisy, coloured):
        assert_same_batches(*both, 60)
    # What was overwritten is forgotten; the oldest goes with the next step.
    assert [len(kept) for kept in noisy[0]._frames.kept] == [2 * (ROWS + 1)] * 2
    assert coloured[0]._frames.kept == ({}, {})


def test_arguments_are_those_of_the_other_buffer():
    kinds = FrameReplayBuffer, PrioritizedReplayBuffer
    ours, others = (inspect.signature(kind).parameters.values() for kind in kinds)
    assert [(p.name, p.kind, p.default) for p in ours if p.name != "stack"] == [
        (p.name, p.kind, p.default) for p in others
    ]
    of_rank = {"sampler": "rank", "alpha": 0.3, "normalize": "none", "sort_every": 7}
    of_lap = {"sampler": "lap", "kappa": 2.0, "handle_timeout_termination": False}
    for given in ({"n_steps": 3, "gamma": 0.5, **of_rank}, of_lap, {"priority_epsilon": 1e-3}):
        space = spaces.Box(0, 255, (4, 5, 6), np.uint8)
        one, two = (kind(9, space, ACTIONS, "cpu", **given) for kind in kinds)
        assert one.settings == two.settings
        assert one.handle_timeout_termination == two.handle_timeout_termination


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
