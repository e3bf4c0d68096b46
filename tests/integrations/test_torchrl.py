"""The sampler for torchrl: drawn and weighted as in the paper, and its losses learn with it."""

import numpy as np
import pytest

try:
    import torchrl  # noqa: F401
except ImportError:  # also where it doesn't fit this version of torch
    pytest.skip("torchrl can't be imported", allow_module_level=True)

import torch
from slot_checks import assert_paper
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, ListStorage, ReplayBuffer, TensorDictReplayBuffer
from torchrl.data.replay_buffers.scheduler import LinearScheduler
from torchrl.data.replay_buffers.writers import TensorDictMaxValueWriter

from per_tutorial.common.files import write_arrays
from per_tutorial.integrations.torchrl import FILE, KEEP_PRIORITY, PrioritizedSampler

SIZE = 24


def make(kind=TensorDictReplayBuffer, batch_size=40, storage=None, **settings):
    sampler = PrioritizedSampler(SIZE, **({"seed": 3} | settings))
    storage = LazyTensorStorage(SIZE) if storage is None else storage
    return kind(storage=storage, sampler=sampler, batch_size=batch_size)


def steps(first, count):
    """Elements that know their number."""
    return TensorDict({"number": torch.arange(first, first + count)}, [count])


def extend(buffer, count, first=0):
    buffer.extend(steps(first, count))
    return buffer


def add(buffer, count, first=0):
    for step in steps(first, count):
        buffer.add(step)
    return buffer


def shares(buffer):
    return buffer.sampler.probabilities().numpy()


@pytest.mark.parametrize(
    "kind, fill, count",
    [(TensorDictReplayBuffer, extend, 3 * SIZE + 2), (ReplayBuffer, add, 5)],
)
def test_frequencies_and_weights_are_the_papers(kind, fill, count):
    buffer = make(kind, 3000, alpha=0.7, beta=0.6)
    if fill is extend:  # in pieces, since torchrl takes no more than the storage holds
        for first in range(0, count, 10):
            extend(buffer, min(10, count - first), first)
    else:
        add(buffer, count)
    stored = np.arange(min(count, SIZE))
    errors = np.random.default_rng(1).normal(size=len(stored)) * 3
    buffer.update_priority(torch.as_tensor(stored), torch.as_tensor(errors))
    batch, info = buffer.sample(return_info=True)
    weights = info["priority_weight"]
    assert_paper(info["index"].numpy(), weights.numpy(), stored, errors, 0.7, 0.6)
    assert weights.dtype == torch.float32
    numbers = count - 1 - (count - 1 - info["index"]) % SIZE  # of what lies there by now
    torch.testing.assert_close(batch["number"], numbers)


def test_newcomers_get_the_largest_priority_so_far():
    buffer = extend(make(alpha=0.5), 2)
    buffer.update_priority(torch.tensor([0, 1]), torch.tensor([-9.0, 4.0]))
    add(extend(buffer, 3), 1)
    assert len(set(shares(buffer)[[0, 2, 3, 4, 5]])) == 1  # exactly, whichever way they came
    assert shares(buffer)[1] < shares(buffer)[0]


def test_priorities_that_come_with_the_data_count():
    buffer = make(alpha=1.0)
    buffer.extend(steps(0, 2).set("td_error", torch.tensor([3.0, 1.0])))
    np.testing.assert_allclose(shares(buffer)[:2], [0.75, 0.25], rtol=1e-5)
    buffer.add(steps(0, 1)[0].set("td_error", torch.tensor(4.0)))
    np.testing.assert_allclose(shares(buffer)[:3], [3 / 8, 1 / 8, 4 / 8], rtol=1e-5)


def test_minibatches_may_be_drawn_ahead():
    sampler = PrioritizedSampler(SIZE, alpha=1.0, seed=0)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(SIZE), sampler=sampler, batch_size=200, prefetch=2
    )
    extend(buffer, SIZE)
    batches = [buffer.sample() for _ in range(2)]
    extend(buffer, 1)
    for batch in batches:
        buffer.update_tensordict_priority(batch.set("td_error", torch.zeros(200)))
    assert shares(buffer)[0] > 0.99


def test_squared_errors_are_taken_for_what_they_are():
    buffer = extend(make(alpha=1.0, squared=True), 3)
    buffer.update_priority(torch.tensor([0, 1, 2]), torch.tensor([[16.0], [9.0], [1.0]]))
    np.testing.assert_allclose(shares(buffer)[:3], [4 / 8, 3 / 8, 1 / 8], rtol=1e-5)
    with pytest.raises(ValueError, match="priority: must be δ², at least 0, got -2"):
        buffer.update_priority(torch.tensor([0, 1]), torch.tensor([1.0, -2.0]))
    buffer.update_priority(torch.tensor([0, -1]), torch.tensor([KEEP_PRIORITY, 5.0]))  # nothing
    np.testing.assert_allclose(shares(buffer)[:3], [4 / 8, 3 / 8, 1 / 8], rtol=1e-5)


def test_errors_of_a_trajectory_become_one_as_asked():
    buffer = extend(make(alpha=1.0, reduction="mean"), 2)
    errors = torch.tensor([[0.0, 2.0], [1.0, 5.0]])  # two trajectories of two steps
    drawn = TensorDict({"index": torch.arange(2), "td_error": errors}, [2])
    buffer.update_tensordict_priority(drawn)
    np.testing.assert_allclose(shares(buffer)[:2], [0.25, 0.75], rtol=1e-5)


def test_what_a_writer_does_not_store_is_skipped():
    """torchrl then has −1 in the index, or None for a single element."""
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(3),
        sampler=PrioritizedSampler(3, alpha=1.0, seed=0),
        batch_size=30,
        writer=TensorDictMaxValueWriter(rank_key="number"),
    )
    extend(buffer, 3, first=5)
    buffer.update_priority(torch.arange(3), torch.tensor([4.0, 1.0, 1.0]))
    ranks = torch.tensor([0, 9])
    index = buffer.extend(TensorDict({"number": ranks, "td_error": torch.ones(2)}, [2]))
    assert index.tolist() == [-1, 0]  # the new 9 replaces the old 5
    buffer.update_priority(index, torch.tensor([7.0, 2.0]))
    np.testing.assert_allclose(shares(buffer), [2 / 4, 1 / 4, 1 / 4], rtol=1e-5)
    assert buffer.add(steps(0, 1)[0]) is None
    assert set(buffer.sample()["number"].tolist()) == {6, 7, 9}


def test_a_storage_that_is_larger_than_the_sampler_is_named():
    buffer = make(storage=LazyTensorStorage(SIZE + 1))
    with pytest.raises(ValueError, match="^max_capacity: .* got 24 and an element at 24$"):
        extend(buffer, SIZE + 1)


def test_storages_of_several_axes():
    buffer = make(batch_size=500, storage=LazyTensorStorage(SIZE, ndim=2), alpha=1.0)
    buffer.extend(TensorDict({"number": torch.arange(12).reshape(4, 3)}, [4, 3]))
    batch = buffer.sample()
    assert set(batch["number"].tolist()) == set(range(12))
    buffer.update_tensordict_priority(batch.set("td_error", (batch["number"] == 5).float()))
    assert set(buffer.sample()["number"].tolist()) == {5}
    for outside in (-1, SIZE):  # torchrl has no −1 here
        with pytest.raises(ValueError, match="invalid entry"):
            buffer.update_priority(torch.tensor([[0, 0], [outside, 0]]), torch.ones(2))


def test_elements_that_nobody_told_of_are_drawn_as_well():
    storage = ListStorage(SIZE)
    storage.set(range(5), [TensorDict({"number": torch.tensor(n)}, []) for n in range(5)])
    buffer = make(storage=storage)
    assert set(buffer.sample()["number"].tolist()) == set(range(5))
    buffer.empty()
    with pytest.raises(RuntimeError, match="the storage is empty"):
        buffer.sample()
    extend(buffer, 2, first=7)
    assert set(buffer.sample()["number"].tolist()) == {7, 8}


def through_state(buffer, twin, folder):
    torch.save(buffer.state_dict(), folder / "state.pt")
    twin.load_state_dict(torch.load(folder / "state.pt", weights_only=False))
    return twin


def through_files(buffer, twin, folder):
    buffer.dumps(folder)
    twin.loads(folder)
    return twin


@pytest.mark.parametrize("sampler", ["proportional", "rank"])
@pytest.mark.parametrize("saved", [through_state, through_files])
def test_files_go_on_exactly(saved, sampler, tmp_path):
    buffer = make(sampler=sampler)
    for first in range(0, SIZE + 9, 3):
        extend(buffer, 3, first)
    buffer.update_tensordict_priority(buffer.sample().set("td_error", torch.arange(40.0)))
    buffer.sampler.beta = 0.8
    twin = saved(buffer, make(sampler=sampler, seed=99), tmp_path)
    assert twin.sampler.beta == 0.8
    for turn in range(3):
        first, second = buffer.sample(), twin.sample()
        for name in ("index", "number", "priority_weight"):
            torch.testing.assert_close(first[name], second[name], rtol=0, atol=0)
        for one, batch in ((buffer, first), (twin, second)):
            one.update_tensordict_priority(batch.set("td_error", torch.arange(40.0) - turn))
            extend(one, 2, first=turn)
    np.testing.assert_array_equal(shares(buffer), shares(twin))


def test_states_of_something_else_are_refused(tmp_path):
    buffer = extend(make(), 9)
    before = shares(buffer)
    state = buffer.sampler.state_dict()
    settings = state["settings"] | {"alpha": 0.1}
    wrong = state["state"] | {"slots": torch.zeros(9, dtype=torch.int64)}
    for bad, message in [
        ({"_alpha": 1}, "^state_dict: was saved with capacity = None, not 24"),
        (state | {"settings": settings}, "^state_dict: .* alpha = 0.1, not 0.6"),
        (state | {"state": wrong}, "^state: slots must be int64 of the shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            buffer.sampler.load_state_dict(bad)
    for _ in range(2):  # the second file takes the place of the first
        buffer.sampler.dumps(tmp_path / "saved")
    with pytest.raises(ValueError, match="was saved with capacity = 24, not 4"):
        PrioritizedSampler(4).loads(tmp_path / "saved")
    own = buffer.sampler._sampler
    damaged = own.state | {"slots": wrong["slots"].numpy()}
    write_arrays(tmp_path / "saved" / FILE, own.settings, damaged)
    with pytest.raises(ValueError, match="^state: slots must"):
        buffer.sampler.loads(tmp_path / "saved")
    with pytest.raises(FileNotFoundError):
        buffer.sampler.loads(tmp_path)
    np.testing.assert_array_equal(shares(buffer), before)
    extend(buffer, 9)
    buffer.sampler.load_state_dict(state)  # a copy
    np.testing.assert_array_equal(shares(buffer), before)


def test_beta_follows_a_scheduler_of_torchrl():
    buffer = make(beta=0.4)
    scheduler = LinearScheduler(buffer, "beta", final_value=1.0, num_steps=6)
    for _ in range(9):
        scheduler.step()
    assert buffer.sampler.beta == pytest.approx(1.0)
