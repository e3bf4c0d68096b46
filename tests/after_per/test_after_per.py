"""ReaPER, LaBER and PAL against their formulas, and in short trainings."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch  # noqa: E402

from per_tutorial import DQNConfig, Replay, train  # noqa: E402
from per_tutorial.after_per import (  # noqa: E402
    LaberLearner,
    LaberSampler,
    PalLearner,
    ReaperSampler,
)
from per_tutorial.after_per.laber import choose  # noqa: E402
from per_tutorial.replay import (
    LapSampler,
    ProportionalSampler,
    TransitionStorage,
    UniformSampler,
)  # noqa: E402


def reaper_buffer(capacity=10, environments=2, **settings):
    storage = TransitionStorage(capacity, (1,), environments=environments)
    return Replay(storage, ReaperSampler(storage, seeds=[0], **settings))


@pytest.mark.parametrize("steps", [6, 14])
def test_reaper_draws_by_reliability_and_error(steps):
    alpha, omega = 0.6, 0.5
    replay = reaper_buffer(alpha=alpha, omega=omega)
    over = [k in (2, 5, 8, 9) for k in range(steps)]
    for k in range(steps):
        replay.add([k], 0, 0.0, [k + 1], over[k])
    stored = np.arange(max(0, steps - 10), steps)
    errors = dict(zip(stored.tolist(), np.linspace(0.1, 3.0, len(stored)).tolist(), strict=True))
    replay.update_priorities(stored, list(errors.values()))
    wanted = []
    for k in stored.tolist():
        mine = [i for i in stored.tolist() if i % 2 == k % 2]  # of the same environment
        begins = [i for i in mine if i <= k and not any(over[j] for j in mine if i <= j < k)]
        ends = [i for i in mine if i >= k and over[i]]
        p = {i: abs(errors[i]) + 1e-6 for i in mine}
        r = 1.0
        if ends:
            episode = [i for i in mine if min(begins) <= i <= ends[0]]
            r = sum(p[i] for i in episode if i <= k) / sum(p[i] for i in episode)
        wanted.append(r**omega * p[k] ** alpha)
    assert np.allclose(replay.probabilities(), np.array(wanted) / sum(wanted))


def test_reapers_weights_correct_for_its_draws():
    replay = reaper_buffer()
    for k in range(10):
        replay.add([k], 0, 0.0, [k + 1], k in (4, 5))
    replay.update_priorities(np.arange(10), np.linspace(0.1, 3.0, 10))
    batch, shares = replay.sample(10, beta=1.0), replay.probabilities()
    assert np.allclose(batch.weights, shares.min() / shares[batch.indices])


def test_laber_keeps_candidates_by_size_and_weighs_them():
    p = np.array([[1.0, 0.0, 3.0]])
    kept, weights = choose(p, np.array([[0.0, 0.24, 0.26, 0.999]]))
    assert kept.tolist() == [[0, 0, 2, 2]]
    assert np.allclose(weights, (4 / 3) / p[:, kept[0]])


@pytest.mark.parametrize(("kappa", "alpha"), [(1.0, 0.6), (0.1, 1.0)])
def test_pals_slope_is_hubers_times_the_priority_of_lap(kappa, alpha):
    errors = torch.tensor([[0.02, -0.5, 3.0, -20.0]], dtype=torch.float64, requires_grad=True)
    p = errors.abs().clamp(min=kappa) ** alpha
    learner = PalLearner(DQNConfig(kappa=kappa, alpha=alpha), (4,), 2, 0)
    losses = learner.losses(errors, torch.ones(1, 4))
    (slopes,) = torch.autograd.grad(losses.sum(), errors)
    assert torch.allclose(slopes, errors.clamp(-kappa, kappa) * p / p.mean())
    bent = kappa * errors.abs() ** (1 + alpha) / (1 + alpha)
    wanted = torch.where(errors.abs() < kappa, kappa**alpha * errors**2 / 2, bent)
    assert torch.allclose(losses, wanted / p.mean())


def trained(sampler, learner):
    config = DQNConfig(steps=200, learning_starts=100, hidden=(8,), capacity=300)
    storage = TransitionStorage(300, (4,), 2)
    first = storage if sampler is ReaperSampler else 300
    replay = Replay(storage, sampler(first, [0, 1]), 2)
    return train(config, [0, 1], replay=replay, learner=learner)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "learner"),
    [
        (ReaperSampler, None),
        (UniformSampler, PalLearner),
        (LaberSampler, type("OwnLearner", (LaberLearner,), {})),
    ],
)
def test_each_trains(sampler, learner):
    history = trained(sampler, learner)
    assert np.isfinite(history.measure("loss")[-1]).all()
    assert (history.measure("td_error")[-1] > 0).all()


@pytest.mark.parametrize(
    ("sampler", "learner", "message"),
    [
        (LapSampler, None, "loss: must be 'huber' with LapSampler, got 'squared'"),
        (LaberSampler, None, "learner: must be 'LaberLearner' .* LaberSampler, got 'DQNLearner'"),
        (UniformSampler, LaberLearner, "sampler: must be 'laber' with Lab.*, got 'uniform'"),
        (ProportionalSampler, PalLearner, "sampler: must be 'uniform' with Pal.*, got 'prop.*'"),
    ],
)
def test_a_method_refuses_a_partner_that_it_is_not_made_for(sampler, learner, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        trained(sampler, learner)


def test_laber_takes_a_batch_of_one_run_as_it_is():
    arguments = {"config": DQNConfig(batch_size=2), "observation_shape": (1,), "actions": 2}
    one, same = (LaberLearner(**arguments, seeds=seeds) for seeds in (0, [0]))
    fields = [np.arange(8.0).reshape(8, 1), np.arange(8) % 2, np.arange(8.0), np.ones((8, 1))]
    fields.append(np.zeros(8, dtype=bool))
    found, wanted = one.update(tuple(fields)), same.update(tuple(each[None] for each in fields))
    assert [each.shape for each in found] == [(8,), (2,), ()]
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs[0])
