"""Bad input to what the integrations offer: the error names the argument, and nothing changes."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

VECTORS, PICTURES = Box(-1, 1, (3,)), Box(0, 255, (4, 5, 6), np.uint8)
LAST = Box(0, 255, (6, 5, 4), np.uint8)
SB3 = "stable_baselines3"


def sb3(kind="PrioritizedReplayBuffer", space=VECTORS, n_envs=1, **settings):
    from per_tutorial.integrations import sb3 as ours

    return getattr(ours, kind)(10 * n_envs, space, Discrete(2), "cpu", n_envs, **settings)


def frames(**settings):
    return sb3("FrameReplayBuffer", **({"space": PICTURES} | settings))


def tianshou(buffer_num=1, **settings):
    from per_tutorial.integrations.tianshou import PrioritizedVectorReplayBuffer

    return PrioritizedVectorReplayBuffer(10, buffer_num, **settings)


def torchrl(max_capacity=10, **settings):
    from per_tutorial.integrations.torchrl import PrioritizedSampler

    return PrioritizedSampler(max_capacity, **settings)


def of_tianshou(*values):
    return pytest.param(*values, marks=pytest.mark.slow)  # importing it takes seconds


MAKERS = [(sb3, SB3), (frames, SB3), (torchrl, "torchrl"), of_tianshou(tianshou, "tianshou")]


def needed(library):
    pytest.importorskip(library, exc_type=ImportError)


@pytest.mark.parametrize("make, library", MAKERS)
def test_an_unknown_keyword_is_refused_and_a_setting_of_another_sampler_is_named(make, library):
    needed(library)
    with pytest.raises(TypeError, match="unexpected keyword argument 'alhpa'"):
        make(alhpa=0.5)
    with pytest.raises(TypeError, match="^kappa: .* no such setting; .* alpha, priority_epsilon, "):
        make(kappa=0.5)
    with pytest.raises(TypeError, match="^alpha: .* no such setting"):
        make(sampler="uniform", alpha=0.5)
    with pytest.raises(TypeError, match="^priority_epsilon: .* are: alpha, normalize, sort_every"):
        make(sampler="rank", priority_epsilon=0.1)
    with pytest.raises(ValueError, match="^sampler: must be one of"):
        make(sampler="best")
    with pytest.raises(ValueError, match="^alpha: must be in"):
        make(alpha=1.5)
    make(sampler="rank", alpha=0.5, seed=0)


@pytest.mark.parametrize(
    "make, library, settings, message",
    [
        (sb3, SB3, {"n_steps": 0}, "n_steps: must be at least 1"),
        (sb3, SB3, {"gamma": 1.5}, "gamma: must be in"),
        (sb3, SB3, {"optimize_memory_usage": True}, "optimize_memory_usage: must be False"),
        (frames, SB3, {"space": VECTORS}, "observation_space: must be a Box of the shape"),
        (frames, SB3, {"space": LAST}, "observation_space: must be a Box of the shape"),
        (frames, SB3, {"stack": 3}, "stack: must divide the number of channels, 4"),
        (frames, SB3, {"stack": 256}, "stack: must be at most 255"),
        of_tianshou(tianshou, "tianshou", {"beta": 2.0}, "beta: must be in"),
        of_tianshou(tianshou, "tianshou", {"buffer_num": 0}, "buffer_num: must be at least 1"),
        (torchrl, "torchrl", {"max_capacity": 0}, "max_capacity: must be at least 1"),
        (torchrl, "torchrl", {"reduction": "sum"}, "reduction: must be one of"),
        (torchrl, "torchrl", {"beta": -1.0}, "beta: must be in"),
    ],
)
def test_bad_settings_are_refused(make, library, settings, message):
    needed(library)
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**settings)


def filled_sb3():
    buffer = sb3(seed=0)
    for _ in range(3):
        buffer.add(np.zeros((1, 3)), np.ones((1, 3)), np.zeros(1, int), *np.ones((2, 1)), [{}])
    return buffer.update_priorities, buffer.probabilities


def filled_tianshou():
    from tianshou.data import Batch

    buffer = tianshou(seed=0)
    ends = {"terminated": np.zeros(1, bool), "truncated": np.zeros(1, bool)}
    for _ in range(3):
        buffer.add(Batch(obs=np.zeros(1), act=[1], rew=np.ones(1), obs_next=np.ones(1), **ends))
    return buffer.update_weight, buffer.probabilities


def filled_torchrl():
    import torch

    sampler = torchrl(seed=0)
    sampler.extend(torch.arange(3))
    return sampler.update_priority, sampler.probabilities


@pytest.mark.parametrize(
    "indices, errors, kind, message",
    [
        ([0, 1], [1.0, np.nan], ValueError, "must be finite"),
        ([0, 1, 2], [1.0, 2.0], ValueError, "must have the shape|must be one, or one for each"),
        ([0, 3], [1.0, 2.0], IndexError, "must be in|no transition is stored at 3"),
        ([-2], [1.0], IndexError, "must be in"),
        ([True, False], [1.0, 2.0], TypeError, "must be integers"),
    ],
)
@pytest.mark.parametrize(
    "fill, library",
    [(filled_sb3, SB3), of_tianshou(filled_tianshou, "tianshou"), (filled_torchrl, "torchrl")],
)
def test_bad_updates_are_refused_and_change_nothing(fill, library, indices, errors, kind, message):
    needed(library)
    update, shares = fill()
    before = np.asarray(shares())
    with pytest.raises(kind, match=message):
        update(np.array(indices), np.array(errors))
    np.testing.assert_array_equal(shares(), before)
    update(np.array([0, 1]), np.array([[9.0], [0.0]]))
    assert shares().reshape(-1)[0] > 0.5 > shares().reshape(-1)[2]
