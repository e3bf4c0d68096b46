"""An unknown keyword is named with those that there are, in the integrations as elsewhere."""

import pytest

LISTED = {
    "sb3": "alpha, priority_epsilon, normalize, n_steps, gamma, sampler, seed, "
    "handle_timeout_termination",
    "frames": "alpha, priority_epsilon, normalize, stack, n_steps, gamma, sampler, seed, "
    "handle_timeout_termination",
    "tianshou": "alpha, priority_epsilon, normalize, sampler, seed, stack_num, ignore_obs_next, "
    "save_only_last_obs, beta",
    "torchrl": "alpha, priority_epsilon, normalize, sampler, seed, reduction, squared, beta",
}


def sb3(**settings):
    from gymnasium.spaces import Box, Discrete

    from per_tutorial.integrations.sb3 import PrioritizedReplayBuffer

    return PrioritizedReplayBuffer(10, Box(-1, 1, (2,)), Discrete(2), "cpu", **settings)


def frames(**settings):
    from gymnasium.spaces import Box, Discrete

    from per_tutorial.integrations.sb3 import FrameReplayBuffer

    space = Box(0, 255, (4, 5, 6), "uint8")
    return FrameReplayBuffer(10, space, Discrete(2), "cpu", **settings)


def tianshou(**settings):
    from per_tutorial.integrations.tianshou import PrioritizedReplayBuffer

    return PrioritizedReplayBuffer(10, **settings)


def tianshou_vector(**settings):
    from per_tutorial.integrations.tianshou import PrioritizedVectorReplayBuffer

    return PrioritizedVectorReplayBuffer(10, 2, **settings)


def torchrl(**settings):
    from per_tutorial.integrations.torchrl import PrioritizedSampler

    return PrioritizedSampler(10, **settings)


@pytest.mark.parametrize(
    "make, library, listed",
    [
        (sb3, "stable_baselines3", "sb3"),
        (frames, "stable_baselines3", "frames"),
        (tianshou, "tianshou", "tianshou"),
        (tianshou_vector, "tianshou", "tianshou"),
        (torchrl, "torchrl", "torchrl"),
    ],
)
def test_an_unknown_keyword_is_named_with_those_that_there_are(make, library, listed):
    pytest.importorskip(library)
    with pytest.raises(TypeError) as refusal:
        make(alhpa=0.5)
    assert str(refusal.value) == (
        "alhpa: replay with the sampler 'proportional' has no such setting; "
        f"its settings are: {LISTED[listed]}"
    )
    with pytest.raises(ValueError, match="^sampler: must be one of"):
        make(sampler="best", alhpa=0.5)
    with pytest.raises(TypeError, match="^alpha: .* no such setting"):
        make(sampler="uniform", alpha=0.5)
    make(sampler="rank", alpha=0.5, seed=0)
