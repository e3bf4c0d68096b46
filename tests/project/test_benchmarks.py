"""The benchmarks' contestants do the same work. Nothing here is timed; peers may be absent."""

import json
import re
import time

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import agents, gpu, methods, minatar, replay, training
from benchmarks.buffers import ALPHA, BETA, CONTESTANTS, Limit, filled, transitions
from benchmarks.harness import alternate, exponent, ratios
from per_tutorial import DQNConfig, ReplayBuffer
from per_tutorial.dqn.learner import DQNLearner

ENTRANTS = [
    pytest.param(
        each,
        kind == "prioritized",
        id=f"{each.name}-{kind}",
        marks=[
            pytest.mark.skipif(not each.installed(), reason=f"{each.package} is not installed"),
            *([pytest.mark.slow] if each.package == "tianshou" else []),  # it imports for long
        ],
    )
    for each in CONTESTANTS
    for kind in each.kinds
]
FLOATS, FRAMES = replay.ROWS["4 floats"], replay.ROWS["Atari frames"]


def drawn(buffer, times=20, batch_size=64):
    """The columns and weights of many minibatches, one after the other."""
    batches = [buffer.unpack(buffer.sample(batch_size)) for _ in range(times)]
    return [np.concatenate(columns) for columns in zip(*batches, strict=True)]


@pytest.mark.parametrize(
    "rows", [FLOATS, pytest.param(FRAMES, marks=pytest.mark.slow)], ids=["floats", "frames"]
)
@pytest.mark.parametrize("contestant, prioritized", ENTRANTS)
def test_each_returns_whole_transitions_of_a_full_buffer(contestant, prioritized, rows):
    buffer = filled(contestant, 64, *rows, prioritized, chunk=24)
    *columns, weights = drawn(buffer)
    numbers = columns[2].astype(int)  # the reward is the number
    assert set(numbers) <= set(range(64)) and len(set(numbers)) > 50
    for column, expected in zip(columns, transitions(numbers, *rows), strict=True):
        np.testing.assert_array_equal(column, expected)
    assert columns[0].dtype == rows[1]
    assert weights.shape == numbers.shape


@pytest.mark.parametrize("contestant, prioritized", ENTRANTS)
def test_added_transitions_replace_the_oldest(contestant, prioritized):
    buffer = filled(contestant, 64, *FLOATS, prioritized)
    buffer.add(*(column[0] for column in transitions([100], *FLOATS)))
    buffer.extend(*transitions(np.arange(101, 111), *FLOATS))
    *columns, _ = drawn(buffer, times=50)
    numbers = columns[2].astype(int)
    assert set(numbers) <= {*range(11, 64), *range(100, 111)}
    assert set(numbers) >= set(range(100, 111))
    np.testing.assert_array_equal(columns[3], transitions(numbers, *FLOATS)[3])


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
    numbers = buffer.unpack(batch)[2].astype(int)
    np.testing.assert_array_equal(np.asarray(buffer.indices(batch)).reshape(-1), numbers)
    weights = buffer.unpack(batch)[-1].reshape(-1)
    constant = weights * share[numbers] ** BETA  # however they are normalised
    np.testing.assert_allclose(constant, constant[0], rtol=1e-3)
    times = 400
    counts = np.bincount(drawn(buffer, times)[2].astype(int), minlength=64)
    expected = 64 * times * share
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()  # five standard deviations


def test_contestants_take_turns_after_a_warm_up():
    calls = []
    results = alternate({name: lambda n=name: calls.append(n) or len(calls) for name in "ab"}, 2)
    assert "".join(calls) == "ababab"
    assert results == {"a": [3, 5], "b": [4, 6]}


def test_ratios_are_those_of_the_same_round():
    assert ratios([2, 30, 8], [1, 10, 2]) == (3, 2, 4)


def test_the_exponent_of_a_power_law():
    sizes = np.array([10, 100, 1000])
    assert exponent(sizes, 5 * sizes**0.7) == pytest.approx(0.7)


def test_the_agents_of_stable_baselines3_hold_the_same_transitions():
    pytest.importorskip("stable_baselines3")
    theirs, *ours = agents.pictures(250).values()  # an episode ends within
    wanted = theirs._get_samples(np.arange(250))
    for buffer in ours:
        found = buffer._get_samples(np.arange(250))
        for name in ("observations", "next_observations", "actions", "rewards", "dones"):
            assert torch.equal(getattr(found, name), getattr(wanted, name)), name


@pytest.mark.slow
def test_a_report_about_agents(tmp_path):
    pytest.importorskip("stable_baselines3")
    agents.run(tmp_path, quick=True)
    page = (tmp_path / "agents_speed.md").read_text(encoding="utf-8")
    agents.run(tmp_path, redraw=True)
    assert (tmp_path / "agents_speed.md").read_text(encoding="utf-8") == page
    assert page.count("×1.00 |") >= 2 * len(agents.BATCHES)  # each beside itself


def test_both_learn_minatar_with_the_same_network_and_settings():
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("minatar")
    config = minatar.settings("uniform", update_every=1, batch_size=8)
    theirs = minatar.sb3_agent(config)
    ours = DQNLearner(config, (4, 10, 10), 3, seeds=[0])
    sizes = [parameter.numel() for parameter in theirs.q_net.parameters()]
    assert sorted(sizes) == sorted(parameter.numel() for parameter in ours.online.parameters())
    theirs.learn(config.learning_starts + 5)
    assert theirs._n_updates == 5  # one a frame
    assert (theirs.batch_size, theirs.gamma) == (config.batch_size, config.discount)


@pytest.mark.slow
def test_a_report_about_minatar(tmp_path):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("minatar")
    minatar.run(tmp_path, quick=True)
    page = (tmp_path / "minatar_speed.md").read_text(encoding="utf-8")
    minatar.run(tmp_path, redraw=True)
    assert (tmp_path / "minatar_speed.md").read_text(encoding="utf-8") == page
    for contestant in (minatar.SB3, "10 runs, uniform", "10 runs, PER"):
        assert f"| {contestant} |" in page


@pytest.mark.slow
def test_a_report_of_a_tiny_run(tmp_path, monkeypatch):
    installed = [each for each in CONTESTANTS if each.package in ("per_tutorial", "numpy")]
    monkeypatch.setattr(replay, "CONTESTANTS", installed)
    plan = replay.Plan((256, 512), (8, 256, 512), atari_size=256, rounds=2, block=0, alone=False)
    data = {"machine": "a machine", "rounds": plan.rounds, "cells": replay.measure(plan)}
    data = json.loads(replay.dump(data))
    # Minibatches of 512 fit into one of the three buffers; adding is one setting for each.
    assert len(data["cells"]) == (3 + 2 + 2) * (4 + 2) + 3 * 2 * 2
    for cell in data["cells"]:
        assert [len(times) for times in cell["times"].values()] == [2, 2]
        if cell["operation"] == "sample + update":
            parts = replay.Results(data).select(
                **{key: cell[key] for key in ("rows", "kind", "size", "batch")}
            )
            parts = [p for p in parts if p["operation"] in ("sample", "update")]
            total = sum(p["times"][replay.OURS][0] for p in parts)
            assert cell["times"][replay.OURS][0] == pytest.approx(total, abs=0.01)
    (tmp_path / "replay_speed.json").write_text(replay.dump(data), encoding="utf-8")
    replay.run(tmp_path, quick=True, redraw=True)
    text = (tmp_path / "replay_speed.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| (?:256|512) \|.*×", text, re.MULTILINE)) == len(data["cells"])
    assert (tmp_path / "replay_speed.png").stat().st_size > 10_000
    assert "a machine" in replay.published(
        replay.PAGE.read_text(encoding="utf-8"), replay.Results(data)
    )


def test_the_floor_multiplies_as_much_as_training_does():
    runs, starts = 3, training.SETTINGS["learning_starts"]
    config = DQNConfig(**training.SETTINGS)
    learner = DQNLearner(config, (4,), 2, range(runs))
    buffer = ReplayBuffer(starts, (4,), runs=runs, seed=range(runs))
    for number in range(starts):
        columns = transitions([number] * runs, *FLOATS)
        buffer.add(*columns)
    with FlopCounterMode(display=False) as ours:
        for _ in range(starts + 1):
            learner.q_values(np.zeros((runs, 1, 4), dtype=np.float32))
        learner.update(buffer.sample(config.batch_size))
    with FlopCounterMode(display=False) as floor:
        training.floor(runs)(starts + 1)
    assert ours.get_total_flops() == floor.get_total_flops() > 0


def test_the_profile_accounts_for_all_of_the_time():
    def functions():
        return [getattr(each, name) for part in training.PARTS.values() for each, name in part]

    before = functions()
    for _ in range(5):  # other processes take their time where they like
        start = time.perf_counter()
        seconds = training.profile(training.ours(2, "proportional"), 200)
        whole = time.perf_counter() - start
        if sum(seconds.values()) == pytest.approx(whole / 200, rel=0.1):
            break
    else:
        pytest.fail(f"{sum(seconds.values())} of {whole / 200} seconds a step")
    assert functions() == before


# What an update costs


@pytest.mark.parametrize("name", methods.ARMS)
def test_a_block_is_as_many_updates_of_a_full_memory(name, monkeypatch):
    seen, update = [], DQNLearner.update

    def noted(learner, batch):
        seen.append(batch)
        return update(learner, batch)

    monkeypatch.setattr(DQNLearner, "update", noted)
    assert methods.updates(methods.ARMS[name], runs=2, capacity=128)(5) >= 0
    assert [batch.indices.shape for batch in seen] == [(2, 32)] * 5
    assert len(np.unique([batch.indices for batch in seen])) > 50


def test_a_report_about_methods(tmp_path, monkeypatch):
    seconds = {name: [0.002, 0.003, 0.001] for name in methods.ARMS}
    seconds["pal"] = [0.001, 0.003, 0.002]
    monkeypatch.setattr(methods, "measure", lambda rounds: {1: seconds, 10: seconds})
    methods.run(tmp_path, quick=True)
    page = (tmp_path / "methods_speed.md").read_text(encoding="utf-8")
    assert "| | 1 run, ms | beside PER | 10 runs, ms | beside PER |" in page
    assert "| pal | 2.00 | ×1.00 (0.75 to 1.50) | 2.00 | ×1.00 (0.75 to 1.50) |" in page
    monkeypatch.setattr(methods, "measure", None)  # what was measured is enough
    methods.run(tmp_path, redraw=True)
    assert (tmp_path / "methods_speed.md").read_text(encoding="utf-8") == page


# The benchmark for a GPU, on a processor


def test_without_a_gpu_nothing_is_measured_and_nothing_written(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="gpu: PyTorch finds no GPU here"):
        gpu.run(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_tiny_run_of_the_gpu_benchmark_on_the_processor(tmp_path, monkeypatch, capsys):
    for package in ("ale_py", "cv2", "stable_baselines3"):
        pytest.importorskip(package)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu, "why_not_compiled", lambda device: "it would take too long here")
    gpu.run(tmp_path, quick=True)
    data = json.loads((tmp_path / "gpu_speed.json").read_text(encoding="utf-8"))
    ours = ["as it is", "bfloat16"]
    assert data["device"] == "no GPU"
    assert list(data["cartpole"]) == [f"{gpu.SB3}, 1 run", "1 run, as it is", "3 runs, as it is"]
    assert list(data["minibatches"]["32"]) == list(data["pong"]) == [*ours, gpu.SB3]
    for found in (data["cartpole"], data["minibatches"]["32"], data["pong"]):
        assert all(len(values) == gpu.QUICK.rounds and min(values) > 0 for values in found.values())
    for part in data["parts"]["32"].values():
        assert list(part) == ["there", "launched", "computed", "all"]
        assert min(part.values()) > 0
        assert part["there"] < part["all"]
    text = (tmp_path / "gpu_speed.md").read_text(encoding="utf-8")
    assert "**no GPU**" in text and "Nothing was compiled: it would take too long here." in text
    (speed,) = re.findall(r"\| 3 runs, as it is \| [\d.]+ \| ([\d,]+) \|", text)
    (step,) = data["cartpole"]["3 runs, as it is"]
    assert float(speed.replace(",", "")) == pytest.approx(3 / step, rel=0.01, abs=0.6)

    monkeypatch.setattr(gpu, "measure", None)  # what was measured is enough
    gpu.run(tmp_path, redraw=True)
    assert (tmp_path / "gpu_speed.md").read_text(encoding="utf-8") == text


def test_the_ways_to_update_fit_the_settings_and_only_a_compiler_opens_the_compiled_ones(
    monkeypatch,
):
    for reason, expected in ((None, list(gpu.WAYS)), ("no compiler", ["as it is", "bfloat16"])):
        monkeypatch.setattr(gpu, "why_not_compiled", lambda device, reason=reason: reason)
        assert list(gpu.ways("cpu")) == expected
    for changes in gpu.WAYS.values():
        gpu.PONG.replace(**changes)
