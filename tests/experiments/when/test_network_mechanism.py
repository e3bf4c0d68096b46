"""Single updates on copies of a network."""

import numpy as np
import pytest

from per_tutorial import DQNConfig, DQNLearner
from per_tutorial.experiments.when import network, network_mechanism
from per_tutorial.experiments.when.mechanism import MOMENTS
from per_tutorial.experiments.when.results import load
from per_tutorial.experiments.when.worlds import Knobs


def test_a_copy_moves_its_own_pair_as_asked_and_the_network_stays():
    knobs = Knobs(4)
    agent = DQNLearner(DQNConfig(hidden=(16,)), (8,), 2, seeds=[0, 1, 2])
    everything = np.tile(np.eye(8, dtype=np.float32), (3, 1, 1))
    before = agent.q_values(everything)
    s, a, moves = np.array([0, 3, 1]), np.array([1, 0, 0]), np.array([1e-3, -2e-3, 0.0])
    after = network_mechanism.errors_after(agent, s, a, moves, knobs.true_values)
    change = after - (before[:, :4] - knobs.true_values)
    np.testing.assert_allclose(change[[0, 1, 2], s, a], moves, rtol=0.02, atol=1e-6)
    assert np.abs(change[:2]).min(axis=(1, 2)).max() > 0, "other pairs move too"
    np.testing.assert_allclose(change[2], 0, atol=1e-6)
    np.testing.assert_array_equal(agent.q_values(everything), before)


def test_the_study_is_whole():
    found = load("network-mechanism")["cells"]
    assert set(found) == {cell.name for cell in network.the_cells()}
    for cell in found.values():
        for moment in map(str, MOMENTS):
            assert {name: len(cell[moment][name]) for name in ("whole", "own", "useful")} == {
                "whole": 30,
                "own": 30,
                "useful": 30,
            }
            assert np.nanmax(np.abs(cell[moment]["whole"])) <= 1


def test_only_without_noise_is_the_useful_part_the_whole():
    for name, cell in load("network-mechanism")["cells"].items():
        same = [cell[str(m)]["whole"] == cell[str(m)]["useful"] for m in MOMENTS]
        assert all(same) if name.endswith("noise0.0") else not any(same)


@pytest.mark.parametrize("agent", ["DQN", "SAC", "TD3"])
def test_errors_of_sb3s_agents_are_those_that_they_learn_from(agent, monkeypatch):
    pytest.importorskip("stable_baselines3")
    from per_tutorial.experiments.studies.sb3.settings import SB3Config
    from per_tutorial.experiments.studies.sb3.training import train_one
    from per_tutorial.experiments.when.sb3_features import td_errors

    env = "CartPole-v1" if agent == "DQN" else "Pendulum-v1"
    options = {"buffer_size": 100, "batch_size": 16}
    if agent == "TD3":
        options["target_policy_noise"] = 1e-6
    config = SB3Config(agent, "uniform", env, steps=40, learning_starts=100, options=options)
    model, environment = train_one(config, 0)
    environment.close()
    slots = np.arange(16)[None]
    batch = model.replay_buffer._batch(slots, np.ones((1, 16)), None)
    learned = []
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *_, **__: batch)
    monkeypatch.setattr(
        model.replay_buffer, "update_priorities", lambda _, errors: learned.append(errors)
    )
    import torch

    torch.manual_seed(3)
    if agent == "SAC":  # it draws the actions of the actor's own loss first
        model.actor.action_log_prob(batch.observations)
    found = td_errors(model, batch)
    torch.manual_seed(3)
    model.train(1, 16)
    sizes = learned[0].numpy().ravel()
    if agent == "DQN":
        np.testing.assert_allclose(found, sizes, rtol=1e-4, atol=1e-5)
    else:  # the mean of the critics' |δ| is at least |mean δ|, and equal where signs agree
        assert (sizes >= np.abs(found) - 1e-3).all()
        assert np.isclose(sizes, np.abs(found), rtol=1e-3, atol=1e-3).mean() > 0.5
