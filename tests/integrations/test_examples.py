"""Every script in `examples/` runs from beginning to end, in short."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# What each needs, and its options for a short run.
SHORT = {
    "per_dqn": ("torch", ["--total-timesteps", "400", "--learning-starts", "100"]),
    "sb3_dqn": ("stable_baselines3", ["--steps", "1200"]),
    "sb3_sac": ("stable_baselines3", ["--steps", "150"]),
    "tianshou_dqn": ("tianshou", ["--steps", "200"]),
    "torchrl_dqn": ("torchrl", ["--steps", "300"]),
}


def imported(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tried():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    library, options = SHORT[name]
    pytest.importorskip(library, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *options, "--seed", "2"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.search(r"\d", last) and "nan" not in last


@pytest.fixture
def page_and_stored(monkeypatch):
    """The page, and a list of what its buffer will be given."""
    page, stored = imported("per_dqn"), []
    add = page.PrioritizedReplayBuffer.add
    monkeypatch.setattr(
        page.PrioritizedReplayBuffer,
        "add",
        lambda self, *fields: (stored.append(fields), add(self, *fields))[1],
    )
    return page, stored


@pytest.mark.parametrize("num_envs", [1, 3])
def test_the_page_stores_true_transitions_and_changes_priorities(num_envs, page_and_stored):
    page, stored = page_and_stored
    args = page.Args(
        total_timesteps=402, num_envs=num_envs, learning_starts=60, batch_size=32, buffer_size=300
    )
    network, buffer, returns = page.train(args)
    assert len(stored) == 402 and len(buffer) == 300
    for environment in range(num_envs):
        mine = stored[environment::num_envs]
        for now, after in zip(mine, mine[1:], strict=False):
            over = now[4] or now[5]
            assert np.array_equal(now[3], after[0]) != over
    assert sum(bool(step[4] or step[5]) for step in stored) == len(returns)
    assert len(set(buffer.probabilities)) > 50
    assert all(bool(weights.isfinite().all()) for weights in network.parameters())


def test_the_page_bootstraps_where_time_ran_out(page_and_stored):
    page, stored = page_and_stored
    page.train(page.Args(env_id="MountainCar-v0", total_timesteps=205, learning_starts=1000))
    observation, _, _, true_next, terminated, truncated = stored[199]
    assert (bool(terminated), bool(truncated)) == (False, True)
    assert np.abs(true_next - observation).max() < 0.1  # not where the next episode begins
    assert not np.array_equal(true_next, stored[200][0])


def test_the_page_is_one_page_and_marks_what_is_new():
    text = (EXAMPLES / "per_dqn.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert text.count("# PER:") == 10
    assert re.findall(r"^(?:from|import) (per_tutorial\S*)", text, re.M) == ["per_tutorial"]
