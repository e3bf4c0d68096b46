"""Agents in files: what comes back, and what is refused."""

import dataclasses
import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from counting import COUNTING
from notebook_files import NOTEBOOKS
from safetensors.torch import save as as_safetensors
from small import ACTIONS, INPUTS, LEARNER_CONFIG, random_batch

from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import evaluate

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


@pytest.mark.parametrize(
    "changes", [{"hidden": ()}, {"dueling": True, "max_grad_norm": 0.5, "terminal_reward": -1.0}]
)
def test_networks_settings_and_seeds_come_back(path, changes):
    agent = trained(env=COUNTING, **changes)
    agent.config = agent.config.replace(device="cuda:7")  # as if it had been trained there
    agent.save(path)
    loaded = DQNLearner.load(path)
    assert_same_networks(loaded.online, agent.online)
    assert_same_networks(loaded.target, agent.online)  # not the lagging target, which is not saved
    assert loaded.config == agent.config.replace(device="cpu")
    assert (loaded.seeds, loaded.actions) == (SEEDS, ACTIONS)


def test_one_run_can_be_saved_alone(path):
    agent = trained(env=COUNTING)
    agent.save(path, run=1)
    alone, observations = DQNLearner.load(path), np.ones((len(SEEDS), 1, 3), np.float32)
    assert alone.seeds == SEEDS[1:2]
    expected = agent.q_values(observations)[1:2]
    np.testing.assert_array_equal(alone.q_values(observations[:1]), expected)
    with pytest.raises(ValueError, match=f"run: must be at most {len(SEEDS) - 1}, got 9"):
        agent.save(path, run=9)


@pytest.mark.parametrize(("env", "shape"), [("CartPole-v1", (2, 3)), ("ALE/Pong-v5", (4, 42, 42))])
def test_what_an_agent_sees_comes_back(path, env, shape):
    agent = DQNLearner(LEARNER_CONFIG.replace(env=env, frame_size=42), shape, ACTIONS, SEEDS)
    agent.save(path)
    images = np.random.default_rng(0).integers(255, size=(2, 5, *shape), dtype=np.uint8)
    loaded = DQNLearner.load(path)
    assert loaded.observation_shape == shape
    np.testing.assert_array_equal(loaded.q_values(images), agent.q_values(images))
    assert loaded.policy(1)(images[0, 0]) == agent.q_values(images[:1].repeat(2, 0))[1, 0].argmax()


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


# What is refused


def test_a_wrong_argument_is_named(path):
    for name in (path, path.parent):
        with pytest.raises(FileNotFoundError, match="path: no file '"):
            DQNLearner.load(name)
    learner().save(path)
    with pytest.raises(ValueError, match="^device: 'abacus' cannot be used"):
        DQNLearner.load(path, device="abacus")
    old = Path(__file__).parents[1] / "data" / "agent-0.1.0.safetensors"
    with pytest.raises(ValueError, match="agent-0.1.0.safetensors' holds no agent, or one of ano"):
        DQNLearner.load(old)


def assert_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ValueError, match="^path: '.*agent.safetensors' holds no agent"):
        DQNLearner.load(path)


def test_a_damaged_file_is_refused(path):
    learner().save(path)
    data = path.read_bytes()
    for length in [0, 7, 8, 20, *range(30, len(data), 397), len(data) - 1]:
        assert_refused(path, data[:length])
    assert_refused(path, data + b"more")
    assert_refused(path, b"\xff" + data[1:])
    assert_refused(path, data.replace(b'"F32"', b'"F33"', 1))


TENSORS = learner().online.state_dict()
FACTS = {
    "config": dataclasses.asdict(LEARNER_CONFIG),
    "seeds": SEEDS,
    "observation_shape": [INPUTS],
    "actions": ACTIONS,
    "first_action": 0,
    "network": "per_tutorial.dqn.networks.QNetwork",
}


def written(tensors, facts):
    return as_safetensors(tensors, {name: json.dumps(fact) for name, fact in facts.items()})


def with_settings(**changes):
    return {"config": FACTS["config"] | changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"config": [1, 2]},
        with_settings(alpha=7),
        with_settings(sticky_actions=0.25),  # gone: nobody could play as it has learned to
        with_settings(hidden=[8]),
        with_settings(hidden=[2**62, 2**62]),
        with_settings(hidden=[60_000, 60_000]),  # networks that would take 29 GB
        with_settings(env="ALE/Pong-v5"),
        with_settings(dueling=True),
        {"seeds": []},
        {"seeds": list(range(50_000))},
        {"seeds": [5, -6]},
        {"actions": ACTIONS + 1},
        {"observation_shape": [INPUTS + 1]},
    ],
    ids=lambda changes: str(changes)[-50:],
)
def test_a_file_that_says_something_else_is_refused(path, changes):
    """Before networks of these sizes are made."""
    data = written(TENSORS, FACTS | changes)
    tracemalloc.start()
    assert_refused(path, data)
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


def test_a_file_of_other_tensors_or_without_facts_is_refused(path):
    path.write_bytes(written(TENSORS, FACTS))  # this one is right
    assert_same_networks(DQNLearner.load(path).online, learner().online)
    missing = {name: tensor for name, tensor in TENSORS.items() if name != "layers.1.bias"}
    for tensors in (
        {},
        missing,
        TENSORS | {"layers.3.bias": torch.zeros(2, 1, 4)},
        TENSORS | {"layers.2.bias": torch.full((2, 1, ACTIONS), torch.nan)},
        {name: tensor.double() for name, tensor in TENSORS.items()},
        {name: tensor[:1].contiguous() for name, tensor in TENSORS.items()},
    ):
        assert_refused(path, written(tensors, FACTS))
    assert_refused(path, as_safetensors(TENSORS))
    facts = {name: json.dumps(fact) for name, fact in FACTS.items()}
    for text in ("{", "[" * 100_000, "9" * 10_000):
        assert_refused(path, as_safetensors(TENSORS, facts | {"seeds": text}))
    for name in ("actions", "network"):
        rest = {key: fact for key, fact in facts.items() if key != name}
        assert_refused(path, as_safetensors(TENSORS, rest))


@pytest.mark.parametrize("shape", [[4, 84, 84], [20, 20, 4]])
def test_frames_must_be_of_the_size_that_the_settings_say(path, shape):
    config = LEARNER_CONFIG.replace(env="ALE/Pong-v5", frame_size=20)
    agent = DQNLearner(config, (4, 20, 20), ACTIONS, SEEDS)
    facts = FACTS | {"config": dataclasses.asdict(config)}
    assert_refused(path, written(agent.online.state_dict(), facts | {"observation_shape": shape}))


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
    with pytest.raises(ValueError, match="env: must not name a module, unless .*'bait:tests/Bait"):
        DQNLearner.load(path)
    loaded = DQNLearner.load(path, trusted=True)
    assert "bait" not in sys.modules
    assert evaluate(loaded, 1).shape == (2, 1)
    assert "bait" in sys.modules
    ours = LEARNER_CONFIG.replace(env="per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")
    DQNLearner(ours, (4,), 2, SEEDS).save(path)
    assert DQNLearner.load(path).config == ours


# Agents that come with the repository


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["long-cartpole", "pong"])
def test_a_shipped_agent_has_a_model_card_and_plays_well(name):
    if name == "pong":
        pytest.importorskip("ale_py")
        pytest.importorskip("cv2")
    card = (NOTEBOOKS / f"results/{name}.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {name}\n")
    agent = DQNLearner.load(NOTEBOOKS / f"results/{name}.safetensors", precision="float32")
    assert len(agent.seeds) == 1
    assert evaluate(agent, 2).mean() > {"long-cartpole": 2_000, "pong": 10}[name]
