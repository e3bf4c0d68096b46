"""Parts by name: what a configuration asks for, and what it takes to be registered."""

from types import SimpleNamespace

import numpy as np
import pytest

from per_tutorial.replay import (
    SAMPLERS,
    STORAGES,
    FrameStorage,
    RankBasedSampler,
    TransitionStorage,
    UniformSampler,
    make_replay,
    register_sampler,
    register_storage,
)


def test_a_configuration_asks_for_its_parts_and_their_keywords():
    config = SimpleNamespace(
        storage="transitions", sampler="rank", capacity=200, alpha=0.8, normalize="none", n_step=3
    )
    replay = make_replay(config, (4,), seeds=[3, 4])
    assert (replay.runs, replay.capacity) == (2, 200)
    twin = RankBasedSampler(200, [3, 4], alpha=0.8, normalize="none")
    assert isinstance(replay.sampler, RankBasedSampler)
    assert replay.sampler.settings == twin.settings
    assert replay.sampler.streams.states.tolist() == twin.streams.states.tolist()
    assert isinstance(replay.storage, TransitionStorage)
    assert replay.storage.settings == TransitionStorage(200, 4, 2, n_step=3).settings


def test_frames_get_their_environments():
    config = SimpleNamespace(storage="frames", sampler="uniform", capacity=20, environments=4)
    replay = make_replay(config, (4, 8, 8), seeds=[1])
    assert isinstance(replay.storage, FrameStorage)
    assert replay.storage.leading_axes == (1, 4)


def test_what_is_registered_can_be_asked_for(monkeypatch):
    monkeypatch.setattr("per_tutorial.replay.samplers.SAMPLERS", dict(SAMPLERS))
    monkeypatch.setattr("per_tutorial.replay.samplers.STORAGES", dict(STORAGES))

    class Renamed(UniformSampler):
        pass

    class Elsewhere(TransitionStorage):
        pass

    register_sampler("renamed", Renamed)
    register_storage("elsewhere", Elsewhere)
    config = SimpleNamespace(storage="elsewhere", sampler="renamed", capacity=5)
    replay = make_replay(config, (2,), seeds=[0])
    assert (type(replay.storage), type(replay.sampler)) == (Elsewhere, Renamed)
    assert "renamed" not in SAMPLERS and "elsewhere" not in STORAGES


@pytest.mark.parametrize("sampler", list(SAMPLERS))
def test_every_registered_sampler_trains(sampler):
    pytest.importorskip("torch")
    from per_tutorial import DQNConfig, train

    config = DQNConfig(sampler=sampler, steps=100, learning_starts=64, hidden=(8,), capacity=80)
    history = train(config, seeds=[0, 1])
    for name in make_replay(config, (4,), [0, 1]).sampler.metrics(np.array([80, 80])):
        assert np.isfinite(history.measure(name)[-1]).all()
