"""The benchmarks' contestants do the same work. Nothing here is timed; peers may be absent."""

import json
import re
import shutil

import numpy as np
import pytest
import torch

from benchmarks import agents, gpu, replay, table
from benchmarks.buffers import ALPHA, BETA, CONTESTANTS, Limit, filled, transitions
from benchmarks.harness import ROOT, alternate, ratios, write

OURS = ("per_tutorial", "numpy")
ENTRANTS = [
    pytest.param(
        *(each, kind == "prioritized"),
        id=f"{each.name}-{kind}",
        marks=pytest.mark.slow if each.package in OURS else pytest.mark.exhaustive,
    )
    for each in CONTESTANTS
    for kind in each.kinds
    if each.installed()
]
FLOATS = replay.ROWS["4 floats"]


def drawn(buffer, times=20, batch_size=64):
    """The columns and weights of many minibatches, one after the other."""
    batches = [buffer.unpack(buffer.sample(batch_size)) for _ in range(times)]
    return [np.concatenate(columns) for columns in zip(*batches, strict=True)]


@pytest.mark.parametrize("contestant, prioritized", ENTRANTS)
def test_each_returns_whole_transitions_and_replaces_the_oldest(contestant, prioritized):
    buffer = filled(contestant, 64, *FLOATS, prioritized, chunk=24)
    *columns, weights = drawn(buffer)
    numbers = columns[2].astype(int)  # the reward is the number
    assert set(numbers) <= set(range(64)) and len(set(numbers)) > 50
    for column, expected in zip(columns, transitions(numbers, *FLOATS), strict=True):
        np.testing.assert_array_equal(column, expected)
    assert weights.shape == numbers.shape
    for fields in zip(*transitions(np.arange(100, 111), *FLOATS), strict=True):
        buffer.add(*fields)
    numbers = drawn(buffer, times=50)[2].astype(int)
    assert set(range(100, 111)) <= set(numbers) <= {*range(11, 64), *range(100, 111)}


@pytest.mark.parametrize(
    "contestant, prioritized",
    [entrant for entrant in ENTRANTS if entrant.values[1] and entrant.values[0] is not Limit],
)
def test_each_draws_by_priority_and_corrects_for_it(contestant, prioritized):
    np.random.seed(0)  # of the peers
    torch.manual_seed(0)
    buffer = filled(contestant, 64, *FLOATS, prioritized)
    errors = np.linspace(-3, 3, 64, dtype=np.float32)
    buffer.update(np.arange(64), errors)
    share = np.abs(errors) ** ALPHA / np.sum(np.abs(errors) ** ALPHA)
    batch = buffer.sample(64)
    numbers, weights = (buffer.unpack(batch)[k].astype(float).reshape(-1) for k in (2, -1))
    np.testing.assert_array_equal(np.asarray(buffer.indices(batch)).reshape(-1), numbers)
    constant = weights * share[numbers.astype(int)] ** BETA  # however they are normalised
    np.testing.assert_allclose(constant, constant[0], rtol=1e-3)
    times = 400
    counts = np.bincount(drawn(buffer, times)[2].astype(int), minlength=64)
    expected = 64 * times * share
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()  # five standard deviations


def test_contestants_take_turns_and_ratios_are_those_of_the_same_round():
    calls = []
    results = alternate({name: lambda n=name: calls.append(n) or len(calls) for name in "ab"}, 2)
    assert "".join(calls) == "ababab"  # the first round is a warm-up
    assert results == {"a": [3, 5], "b": [4, 6]}
    assert ratios([2, 30, 8], [1, 10, 2]) == (3, 2, 4)


@pytest.mark.slow
def test_the_agents_of_stable_baselines3_hold_the_same_transitions():
    theirs, *ours = agents.pictures(250).values()  # an episode ends within
    wanted = theirs._get_samples(np.arange(250))
    for buffer in ours:
        found = buffer._get_samples(np.arange(250))
        for name in ("observations", "next_observations", "actions", "rewards", "dones"):
            assert torch.equal(getattr(found, name), getattr(wanted, name)), name


@pytest.mark.slow
def test_a_tiny_run_of_replay(tmp_path, monkeypatch):
    installed = [each for each in CONTESTANTS if each.package in OURS]
    monkeypatch.setattr(replay, "CONTESTANTS", installed)
    plan = replay.Plan((256, 512), (8, 512), atari_size=16, rounds=2, block=0, alone=False)
    monkeypatch.setattr(replay, "QUICK", plan)
    write(tmp_path, "replay", replay.measure(quick=True))
    data = json.loads((tmp_path / "replay.json").read_text(encoding="utf-8"))
    assert data["commit"] and len(data["cells"]) == 2 * (1 + 2 + 1)  # 512 fit into one buffer
    for cell in data["cells"]:
        assert set(cell["times"]) == {each.name for each in installed}
        assert all(len(times) == 2 and min(times) > 0 for times in cell["times"].values())


def test_the_table_is_that_of_the_numbers(tmp_path):
    shutil.copytree(ROOT / "docs" / "speed", tmp_path / "speed")
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    (tmp_path / "speed.md").write_text(
        re.sub(r"[\d.]+ [µm]s", "a guess", page, count=1), encoding="utf-8"
    )
    table.write(tmp_path)
    assert (tmp_path / "speed.md").read_text(encoding="utf-8") == page
    assert "| replay | a step, 4 floats, 1,000,000 stored | " in page


@pytest.mark.exhaustive
def test_a_tiny_visit_writes_each_part_and_goes_on_after_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="gpu: PyTorch finds no GPU here"):
        gpu.run(tmp_path)
    seen = []
    monkeypatch.setattr(gpu, "write", lambda *arguments: seen.append(json.dumps(arguments[2])))
    monkeypatch.setitem(gpu.PARTS, "tests", lambda *_: 1 / 0)
    gpu.run(tmp_path, quick=True)
    data = json.loads(seen[-1])
    assert [len(json.loads(text)) for text in seen] == [4, 5, 6, 7, 8, 9]  # three say where
    assert data["tests"] == {"failed": "ZeroDivisionError: division by zero"}
    assert list(data["minibatches"]["32"]) == list(data["pong"]) == [*gpu.WAYS, gpu.SB3]
    for found in (data["cartpole"], data["minibatches"]["32"], data["pong"]):
        assert len(found) > 1 and min(map(min, found.values())) > 0
    assert data["pong_to_18"]["curve"][-1][1] == gpu.QUICK.whole
