"""Agents in files: what comes back, and what is refused."""

import dataclasses
import json
import os
import pickle
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from counting import COUNTING
from safetensors.torch import save as as_safetensors
from small import ACTIONS, INPUTS, LEARNER_CONFIG, TINY, TINY_CONFIG, random_batch

from per_tutorial.__main__ import main
from per_tutorial.common.data import data_file
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.pretrained import agent_names, load_agent
from per_tutorial.dqn.training import evaluate, train

SEEDS = [5, 6]


def learner(seeds=SEEDS, **changes):
    return DQNLearner(LEARNER_CONFIG.replace(**changes), (INPUTS,), ACTIONS, seeds)


def trained(updates=10, **changes):
    """A learner whose target network lags behind its online network."""
    agent = learner(**changes)
    numbers = np.random.default_rng(0)
    for _ in range(updates):
        agent.update(random_batch(numbers))
    return agent


def assert_same_networks(one, other, runs=slice(None)):
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        assert torch.equal(tensor, theirs[name][runs]), name


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.safetensors"


# What comes back


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("hidden", [(), (5,), (4, 3, 6)])
def test_networks_settings_and_seeds_come_back(path, dueling, double, hidden):
    agent = trained(dueling=dueling, double=double, hidden=hidden)
    agent.save(path)
    loaded = DQNLearner.load(path)
    assert_same_networks(loaded.online, agent.online)
    assert_same_networks(loaded.target, agent.online)  # not the lagging target, which is not saved
    assert loaded.config == agent.config
    assert loaded.seeds == SEEDS


def test_every_setting_comes_back_the_optional_ones_too(path):
    changes = {
        "max_grad_norm": 0.5,
        "max_episode_steps": 7,
        "terminal_reward": -1.0,
        "env": COUNTING,
    }
    agent = learner(**changes)
    agent.save(path)
    assert DQNLearner.load(path).config == agent.config


def test_the_greedy_policies_are_the_same(path):
    agent = learner()
    agent.save(path)
    loaded = DQNLearner.load(path)
    observations = (
        np.random.default_rng(1).normal(scale=30, size=(2, 50, INPUTS)).astype(np.float32)
    )
    np.testing.assert_array_equal(loaded.q_values(observations), agent.q_values(observations))
    for run in range(2):
        actions = [agent.policy(run)(observation) for observation in observations[0]]
        assert [loaded.policy(run)(observation) for observation in observations[0]] == actions
        assert len(set(actions)) > 1


@pytest.mark.parametrize("run", [0, 1, np.int64(1)])
def test_a_single_run_can_be_saved_alone(path, run):
    agent = trained(dueling=True)
    agent.save(path, run)
    loaded = DQNLearner.load(path)
    assert loaded.seeds == [SEEDS[run]]
    assert_same_networks(loaded.online, agent.online, slice(run, run + 1))
    for observation in np.random.default_rng(1).normal(size=(20, INPUTS)).astype(np.float32):
        assert loaded.policy(0)(observation) == agent.policy(run)(observation)


def test_observations_of_any_shape_are_still_taken(path):
    agent = DQNLearner(LEARNER_CONFIG, (2, 3), ACTIONS, SEEDS)
    agent.save(path)
    images = np.random.default_rng(0).integers(255, size=(2, 5, 2, 3), dtype=np.uint8)
    loaded = DQNLearner.load(path)
    assert (loaded.observation_shape, loaded.actions) == ((2, 3), ACTIONS)
    np.testing.assert_array_equal(loaded.q_values(images), agent.q_values(images))


def test_a_file_of_an_earlier_version_is_refused_by_name():
    path = Path(__file__).parents[1] / "data" / "agent-0.1.0.safetensors"
    with pytest.raises(ValueError, match="agent-0.1.0.safetensors' holds no agent, or one of ano"):
        DQNLearner.load(path)


@pytest.mark.parametrize(
    ("name", "shape", "actions"), [("long-cartpole", (4,), 2), ("pong", (4, 42, 42), 6)]
)
def test_a_shipped_agent_knows_what_it_sees_and_does(path, name, shape, actions):
    agent = load_agent(name)
    assert (agent.observation_shape, agent.actions) == (shape, actions)
    agent.save(path)
    loaded = DQNLearner.load(path)
    assert (loaded.observation_shape, loaded.actions) == (shape, actions)
    assert_same_networks(loaded.online, agent.online)


def test_a_loaded_agent_goes_on_learning(path):
    """Before its first update an agent is its online networks alone, so nothing at all is lost."""
    agent = learner(dueling=True, double=True)
    agent.save(path)
    loaded = DQNLearner.load(path)
    for batch in map(random_batch, map(np.random.default_rng, range(20))):
        mine, theirs = loaded.update(batch), agent.update(batch)
        np.testing.assert_array_equal(mine.losses, theirs.losses)
    assert_same_networks(loaded.online, agent.online)
    assert_same_networks(loaded.target, agent.target)


def test_the_device_is_chosen_when_it_is_loaded(path):
    agent = learner()
    agent.config = agent.config.replace(device="cuda:7")  # as if it had been trained there
    agent.save(path)
    assert DQNLearner.load(path).config == agent.config.replace(device="cpu")


# What is refused


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (2, ValueError, "run: must be at most 1, got 2"),
        (-1, ValueError, "run: must be at least 0, got -1"),
        (1.0, TypeError, "run: must be an integer, got 1.0"),
    ],
)
def test_a_run_that_is_not_there_is_refused_and_nothing_is_written(path, run, error, message):
    with pytest.raises(error, match=message):
        learner().save(path, run)
    assert not path.exists()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_the_old_file_stays_when_writing_fails(path, monkeypatch, step):
    agent = trained()
    agent.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="no space left"):
        learner().save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["nobody.safetensors", "."])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"path: no file '.*{tmp_path.name}"):
        DQNLearner.load(tmp_path / name)


def test_an_unknown_device_is_not_blamed_on_the_file(path):
    learner().save(path)
    with pytest.raises(ValueError, match="^device: 'abacus' cannot be used"):
        DQNLearner.load(path, device="abacus")


def assert_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ValueError, match="^path: '.*agent.safetensors' holds no agent"):
        DQNLearner.load(path)


def test_a_truncated_file_is_refused_wherever_it_ends(path):
    learner().save(path)
    data = path.read_bytes()
    for length in [*range(0, 20), *range(20, len(data), 97), len(data) - 1]:
        assert_refused(path, data[:length])


def test_a_file_with_something_at_its_end_or_a_damaged_header_is_refused(path):
    learner().save(path)
    data = path.read_bytes()
    assert_refused(path, data + b"more")
    assert_refused(path, b"\xff" + data[1:])
    assert_refused(path, data[:8] + b"?" + data[9:])
    assert_refused(path, data.replace(b'"F32"', b'"F33"', 1))


class Trap:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_nothing_is_unpickled(path, tmp_path):
    sprung = tmp_path / "sprung"
    bait = pickle.dumps(Trap(sprung))
    assert_refused(path, bait)
    torch.save(Trap(sprung), path)
    assert_refused(path, path.read_bytes())
    assert not sprung.exists()
    pickle.loads(bait)
    assert sprung.exists()  # it would have been


TENSORS = learner().online.state_dict()
FACTS = {
    "config": dataclasses.asdict(LEARNER_CONFIG),
    "seeds": SEEDS,
    "observation_shape": [INPUTS],
    "actions": ACTIONS,
    "first_action": 0,
}


def without(mapping, name):
    return {key: value for key, value in mapping.items() if key != name}


def written(tensors, facts):
    return as_safetensors(tensors, {name: json.dumps(fact) for name, fact in facts.items()})


def test_the_foreign_files_below_differ_from_an_agent_only_in_what_they_say(path):
    path.write_bytes(written(TENSORS, FACTS))
    assert_same_networks(DQNLearner.load(path).online, learner().online)


def with_settings(**changes):
    return {"config": FACTS["config"] | changes}


@pytest.mark.parametrize(
    ("tensors", "changes"),
    [
        ({"weight": torch.zeros(3)}, {}),
        (TENSORS, {"config": [1, 2]}),
        (TENSORS, with_settings(alpha=7)),
        (TENSORS, with_settings(flavour="mint")),
        (TENSORS, with_settings(hidden=[8])),
        (TENSORS, with_settings(hidden=[8, 9])),
        (TENSORS, with_settings(hidden=[2**62, 2**62])),
        (TENSORS, with_settings(env="ALE/Pong-v5")),
        (TENSORS, {"seeds": []}),
        (TENSORS, {"seeds": 5}),
        (TENSORS, {"seeds": [5, 6, 7]}),
        (TENSORS, {"seeds": [5, -6]}),
        (TENSORS, {"seeds": [5, 2**64]}),
        (TENSORS, {"seeds": [5, 6.0]}),
        ({}, {}),
        (without(TENSORS, "layers.1.bias"), {}),
        (TENSORS | {"layers.3.bias": torch.zeros(2, 1, 4)}, {}),
        (TENSORS | {"layers.2.bias": torch.zeros(2, 1, 0)}, {}),
        (TENSORS | {"layers.2.bias": torch.full((2, 1, ACTIONS), torch.nan)}, {}),
        (TENSORS | {"layers.2.bias": torch.full((2, 1, ACTIONS), -torch.inf)}, {}),
        ({name: tensor.double() for name, tensor in TENSORS.items()}, {}),
        ({name: tensor[:1].contiguous() for name, tensor in TENSORS.items()}, {}),
    ],
)
def test_a_foreign_file_is_refused(path, tensors, changes):
    assert_refused(path, written(tensors, FACTS | changes))


@pytest.mark.parametrize(
    "facts",
    [
        without(FACTS, "config"),
        without(FACTS, "seeds"),
        without(FACTS, "actions"),
        FACTS | with_settings(dueling=True),
        FACTS | {"actions": 0},
        FACTS | {"actions": ACTIONS + 1},
        FACTS | {"actions": "many"},
        FACTS | {"observation_shape": INPUTS},
        FACTS | {"observation_shape": [INPUTS + 1]},
        FACTS | {"observation_shape": [INPUTS, 0]},
    ],
    ids=str,
)
def test_a_file_that_says_something_else_or_too_little_is_refused(path, facts):
    assert_refused(path, written(TENSORS, facts))


@pytest.mark.parametrize("shape", [[4, 84, 84], [4, 42], [20, 20, 4]])
def test_frames_must_be_of_the_size_that_the_settings_say(path, shape):
    config = LEARNER_CONFIG.replace(env="ALE/Pong-v5", frame_size=20)
    agent = DQNLearner(config, (4, 20, 20), ACTIONS, SEEDS)
    facts = FACTS | {"config": dataclasses.asdict(config)}
    assert_refused(path, written(agent.online.state_dict(), facts | {"observation_shape": shape}))


def test_facts_that_are_no_json_are_refused(path):
    for text in ("", "{", "[" * 100_000, "9" * 10_000):
        facts = {name: json.dumps(fact) for name, fact in FACTS.items()} | {"seeds": text}
        assert_refused(path, as_safetensors(TENSORS, facts))


def test_a_file_without_facts_is_refused(path):
    assert_refused(path, as_safetensors(TENSORS))


@pytest.mark.parametrize(
    "changes",
    [
        with_settings(hidden=[60_000, 60_000]),
        pytest.param({"seeds": list(range(3_000_000))}, marks=pytest.mark.slow),
    ],
)
def test_a_file_of_small_tensors_asks_for_no_large_networks(path, changes):
    """Networks of these settings would take 29 GB, or minutes."""
    path.write_bytes(written(TENSORS, FACTS | changes))
    start = time.process_time()
    tracemalloc.start()
    with pytest.raises(ValueError, match="holds no agent"):
        DQNLearner.load(path)
    assert tracemalloc.get_traced_memory()[1] < 500e6
    tracemalloc.stop()
    assert time.process_time() - start < 20


def test_a_file_makes_nobody_import_a_module(path, tmp_path, monkeypatch):
    """Gymnasium imports what stands before the colon of an id; only a caller may allow that."""
    (tmp_path / "bait.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('tests/Bait-v0', CartPoleEnv, max_episode_steps=5)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = LEARNER_CONFIG.replace(env="bait:tests/Bait-v0")
    DQNLearner(config, (4,), 2, SEEDS).save(path)
    with pytest.raises(ValueError, match="env: must be registered in Gymnasium, .*'bait:tests/Bai"):
        DQNLearner.load(path)
    loaded = DQNLearner.load(path, trusted=True)
    assert "bait" not in sys.modules
    assert evaluate(loaded, 1).shape == (2, 1)
    assert "bait" in sys.modules


@pytest.mark.parametrize("env", ["tests/Unheard-v0", "os:Name-v0", ":", "per_tutorial2:A-v0"])
def test_an_environment_that_is_not_registered_is_refused(path, env):
    DQNLearner(LEARNER_CONFIG.replace(env=env), (4,), 2, SEEDS).save(path)
    with pytest.raises(ValueError, match="env: must be registered in Gymnasium"):
        DQNLearner.load(path)


@pytest.mark.parametrize(
    "env", ["CartPole-v1", COUNTING, "per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0"]
)
def test_registered_environments_and_our_own_are_taken(path, env):
    DQNLearner(LEARNER_CONFIG.replace(env=env), (4,), 2, SEEDS).save(path)
    assert DQNLearner.load(path).config.env == env


# The command line


def test_train_saves_the_agents_that_it_has_evaluated(path, capsys):
    main([*TINY, "--quiet", "--save", str(path), "--episodes", "3"])
    loaded = DQNLearner.load(path)
    same = train(TINY_CONFIG, [4, 5]).agent
    assert (loaded.config, loaded.seeds) == (TINY_CONFIG, [4, 5])
    assert_same_networks(loaded.online, same.online)
    printed = capsys.readouterr().out
    for seed, value in zip((4, 5), evaluate(loaded, 3).mean(axis=1), strict=True):
        assert f"seed {seed}: greedy return {value:.1f}\n" in printed


# Agents that come with the repository


@pytest.mark.slow
@pytest.mark.parametrize("name", agent_names())
def test_a_shipped_agent_has_a_model_card_and_plays_well(name):
    if name == "pong":
        pytest.importorskip("ale_py")
        pytest.importorskip("cv2")
    assert data_file(f"{name}.md").read_text(encoding="utf-8").startswith(f"# {name}\n")
    agent = load_agent(name)
    assert len(agent.seeds) == 1
    assert evaluate(agent, 2).mean() > {"long-cartpole": 2_000, "pong": 10}[name]


def test_the_same_agent_makes_the_same_file(tmp_path):
    agent, files = learner(), set()
    for k in range(5):  # by itself, safetensors lists the heading in a random order
        agent.save(tmp_path / f"{k}.safetensors")
        files.add((tmp_path / f"{k}.safetensors").read_bytes())
    assert len(files) == 1
