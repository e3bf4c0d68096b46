"""On a GPU an update is the one that the processor makes, and its files load on either.

Where PyTorch finds no GPU, as in CI, nothing here runs.
"""

import shutil
from copy import deepcopy

import numpy as np
import pytest
import torch
from killed_trainings import (
    CONFIG,
    SEEDS,
    Dying,
    Killed,
    assert_identical,
    continued,
)
from small import ACTIONS, INPUTS, LEARNER_CONFIG, TINY_CONFIG, random_batch
from small_study import STUDY

from per_tutorial import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.studies.results import load_study
from per_tutorial.studies.runner import run_study

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU")
PONG = DQNConfig(
    env="ALE/Pong-v5",
    environments=2,
    frame_size=42,
    hidden=(32,),
    sampler="proportional",
    steps=400,
    capacity=300,
    learning_starts=100,
    update_every=4,
    device="cuda",
)


def assert_same_updates(config):
    """Twelve updates on both devices, from the same networks and minibatches."""
    numbers = np.random.default_rng(0)
    here, there = (
        DQNLearner(config.replace(device=device), (INPUTS,), ACTIONS, seeds=[5, 6])
        for device in ("cpu", "cuda")
    )
    assert {parameter.device.type for parameter in there.online.parameters()} == {"cuda"}
    for _ in range(12):
        batch = random_batch(numbers)
        for ours, theirs in zip(here.update(batch), there.update(batch), strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)
    for name, array in here.state.items():
        np.testing.assert_allclose(there.state[name], array, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"double": True, "dueling": True, "td_error_clip": 0.7, "max_grad_norm": 0.5},
    ],
    ids=str,
)
def test_an_update_is_that_of_the_processor(changes):
    assert_same_updates(LEARNER_CONFIG.replace(**changes))


def test_a_recorded_update_is_that_of_the_processor():
    assert_same_updates(LEARNER_CONFIG.replace(compiled=True))


def test_from_each_of_a_thousand_states_a_recorded_update_does_what_a_plain_one_does():
    config = LEARNER_CONFIG.replace(device="cuda", max_grad_norm=0.5)
    plain, compiled = (
        DQNLearner(config.replace(compiled=each), (INPUTS,), ACTIONS, seeds=[5, 6])
        for each in (False, True)
    )
    numbers = np.random.default_rng(0)
    for _ in range(1000):
        batch = random_batch(numbers)
        compiled.restore(plain.state)
        np.testing.assert_allclose(
            compiled.q_values(batch.observations), plain.q_values(batch.observations), 1e-5, 1e-6
        )
        step_size = numbers.uniform(1e-4, 1e-2)
        updates = (each.update(batch, step_size) for each in (compiled, plain))
        for ours, theirs in zip(*updates, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        for name, array in plain.state.items():
            np.testing.assert_allclose(compiled.state[name], array, rtol=1e-5, atol=1e-6)


def test_a_copy_of_a_recorded_learner_learns_by_itself():
    learner = DQNLearner(
        LEARNER_CONFIG.replace(device="cuda", compiled=True), (INPUTS,), ACTIONS, seeds=[5, 6]
    )
    batch = random_batch(np.random.default_rng(0))
    for _ in range(3):
        learner.update(batch)
    copy, before = deepcopy(learner), learner.state
    for _ in range(3):
        copy.update(batch)
    for name, array in before.items():
        np.testing.assert_array_equal(learner.state[name], array)
    for ours, theirs in zip(copy.update(batch), learner.update(batch), strict=True):
        assert not np.array_equal(ours, theirs)


def test_a_recorded_update_is_one_launch():
    learner = DQNLearner(
        LEARNER_CONFIG.replace(device="cuda", compiled=True), (INPUTS,), ACTIONS, seeds=[5, 6]
    )
    batch = random_batch(np.random.default_rng(0))
    for _ in range(3):  # the second one is recorded
        learner.update(batch)
    with torch.profiler.profile() as profile:
        learner.update(batch)
    calls = [event.name for event in profile.events()]
    assert calls.count("cudaGraphLaunch") == 1
    # That of the target network; a plain update has some hundred.
    assert sum("LaunchKernel" in name for name in calls) <= 2


@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_continues_from_a_checkpoint_in_one_way(tmp_path, compiled):
    config = CONFIG.replace(device="cuda", compiled=compiled)
    with pytest.raises(Killed):
        train(config, SEEDS, checkpoints=Dying(tmp_path / "once", [30], every=30))
    shutil.copytree(tmp_path / "once", tmp_path / "again")
    assert_identical(continued(config, tmp_path / "once"), continued(config, tmp_path / "again"))


def test_an_agent_trained_there_is_loaded_on_either_device(tmp_path):
    agent = train(TINY_CONFIG.replace(device="cuda"), [0, 1]).agent
    agent.save(tmp_path / "agent.safetensors")
    observations = np.random.default_rng(0).normal(size=(2, 5, 4))
    for device in ("cpu", "cuda"):
        loaded = DQNLearner.load(tmp_path / "agent.safetensors", device=device)
        assert loaded.config.device == device
        np.testing.assert_allclose(
            loaded.q_values(observations), agent.q_values(observations), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_trains_on_frames_in_every_precision(precision):
    pytest.importorskip("ale_py")
    history = train(PONG.replace(precision=precision), seeds=[0, 1])
    losses = history.measure("loss")
    assert 0 < np.nanmax(losses) < np.inf


def test_a_study_runs_there(tmp_path):
    run_study(STUDY.on("cuda"), tmp_path)
    settings = [stack["settings"] for stack in load_study("small", tmp_path).facts["stacks"]]
    assert {each["device"] for each in settings} == {"cuda"}
