"""ReLo against its formula: priorities, and the losses that they are made of."""

import numpy as np
import pytest
import torch

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.integrations.slot_sampler import SlotSampler
from per_tutorial.replay import Batch, ReloSampler, Replay, TransitionStorage

LOSSES = np.array([0.0, -0.5, 0.01, 2.0, -7.0, 7.0, 1e-30])


def probabilities_of(sampler, **settings):
    """Those of a buffer whose transitions were all replayed once."""
    replay = Replay(TransitionStorage(9, ()), sampler(9, [4], **settings))
    for number in range(len(LOSSES)):
        replay.add(number, 0, 0.0, number, False)
    replay.update_priorities(np.arange(len(LOSSES)), LOSSES)
    return replay.probabilities[: len(LOSSES)]


def holds_priorities_are_the_formula(sampler):
    for alpha in (0.0, 0.4, 1.0):
        for epsilon in (1e-6, 0.5):
            plain = [(max(loss, 0.0) + epsilon) ** alpha for loss in LOSSES]
            found = probabilities_of(sampler, alpha=alpha, priority_epsilon=epsilon)
            np.testing.assert_allclose(found, np.array(plain) / sum(plain), rtol=1e-12)


class TakesTheSize(ReloSampler):
    """|ReLo| where it should be cut at 0."""

    def update(self, slots, td_errors):
        super().update(slots, np.abs(td_errors))


class CutsAfterEpsilon(ReloSampler):
    """max(ReLo, ε) in place of max(ReLo, 0) + ε."""

    def update(self, slots, td_errors):
        super().update(slots, np.maximum(td_errors, self.priority_epsilon))


def test_priorities_are_the_formula():
    holds_priorities_are_the_formula(ReloSampler)


@pytest.mark.parametrize("bugged", [TakesTheSize, CutsAfterEpsilon])
def test_another_cut_is_noticed(bugged):
    with pytest.raises(AssertionError):
        holds_priorities_are_the_formula(bugged)


@pytest.mark.parametrize("settings", [{}, {"double": True}, {"td_error_clip": 0.3}])
def test_reducible_losses_are_those_of_two_networks(settings):
    rng = np.random.default_rng(0)
    config = DQNConfig(hidden=(8,), tau=1.0, target_update_every=50, **settings)
    agent = DQNLearner(config, (3,), actions=2, seeds=[0, 1])
    shape = (2, 32)
    batch = Batch(
        rng.normal(size=(*shape, 3)), rng.integers(2, size=shape), rng.normal(size=shape),
        rng.normal(size=(*shape, 3)), rng.random(shape) < 0.2, np.ones(shape),
        np.tile(np.arange(32), (2, 1)),
    )  # fmt: skip
    assert np.all(agent.reducible_losses(batch) == 0)  # the two networks are still the same
    for _ in range(5):
        agent.update(batch)
    found = agent.reducible_losses(batch)

    observations = torch.as_tensor(batch.observations, dtype=torch.float32)
    following = torch.as_tensor(batch.next_observations, dtype=torch.float32)
    with torch.no_grad():
        online, target = agent.online(observations).numpy(), agent.target(observations).numpy()
        next_online, next_target = agent.online(following), agent.target(following)
    for run in range(2):
        for k in range(32):
            best = (next_online if config.double else next_target)[run, k].argmax()
            bootstrap = 0.0 if batch.terminated[run, k] else 0.99 * float(next_target[run, k, best])
            aim, action = batch.rewards[run, k] + bootstrap, batch.actions[run, k]
            errors = [aim - q[run, k, action] for q in (online, target)]
            if config.td_error_clip is not None:
                errors = np.clip(errors, -config.td_error_clip, config.td_error_clip)
            assert found[run, k] == pytest.approx(errors[0] ** 2 - errors[1] ** 2, abs=1e-4)
    np.testing.assert_array_equal(found, agent.reducible_losses(batch))  # nothing changed


def test_a_training_tells_relo_reducible_losses_and_others_td_errors():
    told = {}

    class Listens(DQNLearner):
        def reducible_losses(self, batch):
            losses = super().reducible_losses(batch)
            told["last"] = losses
            return losses

    for sampler in ("relo", "proportional"):
        told.clear()
        config = DQNConfig(sampler=sampler, steps=150, learning_starts=100, hidden=(8,))
        train(config, seeds=[0], learner=Listens)
        assert bool(told) == (sampler == "relo")


def test_a_buffer_of_slots_cannot_serve_it():
    with pytest.raises(ValueError, match="needs the losses of two networks"):
        SlotSampler(9, sampler="relo")
