"""What a training leaves behind: episodes, measurements, and the file that holds them."""

import csv
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import MEASURES, History
from per_tutorial.dqn.learner import Update
from per_tutorial.dqn.training import train
from per_tutorial.replay.buffers import PrioritizedReplayBuffer, RankBasedReplayBuffer

SEEDS = [3, 8, 5]
CONFIG = DQNConfig(
    steps=300,
    hidden=(8,),
    batch_size=8,
    learning_starts=50,
    update_every=1,
    sampler="proportional",
    capacity=200,
    alpha=0.6,
    beta_start=0.4,
    epsilon_start=1.0,
)
BATCH_MEASURES = {"loss", "td_error", "q_value", "weight", "age", "effective_sample_size"}
LEARNING_MEASURES = {*BATCH_MEASURES, "held_out_q"}


@pytest.fixture(scope="module")
def history():
    return train(CONFIG, SEEDS)


# Episodes


def test_the_learning_curve_is_the_mean_of_the_last_episodes():
    history = History(CONFIG, [0, 1, 2], {})
    history.episodes = [(0, 10, 1.0, 10), (1, 15, 100.0, 15), (0, 20, 2.0, 10), (0, 30, 6.0, 10)]
    curve = history.learning_curve([9, 10, 20, 29, 30, 99], window=2)
    nothing = math.nan
    np.testing.assert_array_equal(
        curve,
        [
            [nothing, nothing, nothing],
            [1.0, nothing, nothing],
            [1.5, 100.0, nothing],
            [1.5, 100.0, nothing],
            [4.0, 100.0, nothing],
            [4.0, 100.0, nothing],
        ],
    )
    steps, returns = history.returns(2)
    assert len(steps) == len(returns) == 0


# Measurements


@pytest.mark.slow
def test_every_measurement_has_a_row_for_each_log_step_and_a_column_for_each_run(history):
    expected = {"epsilon", "beta", "largest_priority", "priority", *LEARNING_MEASURES}
    assert set(history.measures) == expected
    for name in expected:
        assert history.measure(name).shape == (300, len(SEEDS))
    uniform = train(CONFIG.replace(sampler="uniform", steps=60), SEEDS)
    assert set(uniform.measures) == set(MEASURES) == {"epsilon", "beta", *LEARNING_MEASURES}


def test_there_is_nothing_to_measure_before_the_first_update(history):
    """The first update is that of step 50, when 50 transitions are stored."""
    for name in LEARNING_MEASURES:
        assert np.isnan(history.measure(name)[:49]).all()
        assert np.isfinite(history.measure(name)[49:]).all()
    for name in set(history.measures) - LEARNING_MEASURES:
        assert np.isfinite(history.measure(name)).all()


def test_measurements_of_a_minibatch_by_hand():
    """Weights (1, ½): (Σw)² / Σw² = 2.25 / 1.25 = 1.8 of 2 transitions."""
    replay = PrioritizedReplayBuffer(4, 1, runs=1, alpha=0.5, seed=0)
    for _ in range(6):
        replay.add([[0.0]], [0], [0.0], [[0.0]], [False])
    replay.update_priorities([[4, 5]], [[9.0 - 1e-6, 16.0 - 1e-6]])  # the other two keep p = 1
    history = History(CONFIG, [0], {})
    history.step = 1
    batch = SimpleNamespace(
        weights=np.array([[1.0, 0.5]]), indices=np.array([[5, 2]]), observations=np.zeros((1, 2, 1))
    )
    td_errors, q_values = np.array([[-3.0, 1.0]]), np.array([[4.0, 5.0]])
    for losses, sign in ((1.0, 0.0), (2.0, 1.0)):  # of all but the losses, the last one counts
        history.record_update(batch, Update(sign * td_errors, sign * q_values, np.array([losses])))
    history.log(replay)
    measured = {name: history.measure(name).item() for name in history.measures}
    assert measured == pytest.approx(
        {
            "epsilon": 1.0,
            "beta": 0.4,
            "loss": 1.5,  # the mean since the last log step
            "td_error": 2.0,
            "q_value": 4.5,
            "weight": 0.75,
            "age": (1 + 4) / 2,  # of 6 added: the newest is one step old
            "effective_sample_size": 0.9,
            "largest_priority": 16.0,
            "priority": (1 + 1 + 3 + 4) / 4,
            "held_out_q": np.nan,  # learning has not begun
        },
        nan_ok=True,
    )
    history.log(replay)
    assert np.isnan(history.measure("loss")[1])  # no update since
    assert history.measure("td_error").tolist() == [[2.0], [2.0]]  # still the last one's


def test_states_are_held_out_when_learning_begins():
    """Q(s, a) = s · a in the n-th log: of 50 stored states, the same 128 whatever comes later."""
    replay = PrioritizedReplayBuffer(200, 1, runs=2, seed=0)
    history = History(CONFIG, [0, 1], {})
    history.agent = SimpleNamespace(q_values=lambda s: len(history.log_steps) * s * [0.0, 1.0])
    for k in range(1, 301):
        replay.add([[k], [k + 1000]], [0, 0], [0.0, 0.0], [[0], [0]], [False, False])
        history.step = k
        history.log(replay)
    found = history.measure("held_out_q")
    assert np.isnan(found[:49]).all()
    states = 1 + np.linspace(0, 49, 128).astype(int)
    for n in range(49, 300):
        np.testing.assert_allclose(found[n], n * np.array([states.mean(), 1000 + states.mean()]))


def test_a_history_names_the_memory_that_was_used_not_the_one_of_the_settings(tmp_path):
    config = CONFIG.replace(steps=60)
    history = train(config, 3, replay=RankBasedReplayBuffer(100, (4,), alpha=0.2, seed=3))
    history.save(tmp_path / "history.csv")
    heading = json.loads((tmp_path / "history.csv").read_text("utf-8").splitlines()[0][2:])
    used = {"sampler": "rank", "alpha": 0.2, "capacity": 100}
    assert heading["replay"].items() >= used.items()
    assert (history.sampler, History(config, [3], {}).sampler) == ("rank", None)


def test_the_file_is_tidy_and_needs_nothing_but_a_csv_reader(history, tmp_path):
    history.save(tmp_path / "history.csv")
    with open(tmp_path / "history.csv", newline="", encoding="utf-8") as file:
        comment = file.readline()
        rows = list(csv.DictReader(file))
    heading = json.loads(comment.removeprefix("# "))
    assert DQNConfig(**heading["config"]) == CONFIG
    assert (heading["seeds"], heading["step"]) == (SEEDS, 300)
    assert heading["learner"] == "per_tutorial.dqn.learner.DQNLearner"
    assert heading["replay"].items() >= {"sampler": "proportional", "n_step": 1}.items()
    assert list(rows[0]) == ["seed", "step", "measure", "value"]
    for run, seed in enumerate(SEEDS):
        mine = {}
        for row in rows:
            if row["seed"] == str(seed):
                found = mine.setdefault(row["measure"], [])
                found.append((int(row["step"]), float(row["value"])))  # to the last bit
        steps, returns = history.returns(run)
        assert mine.pop("episode_return") == [*zip(steps, returns, strict=True)]
        lengths = [length for one, _, _, length in history.episodes if one == run]
        assert mine.pop("episode_length") == [*zip(steps, lengths, strict=True)]
        assert mine.keys() == history.measures.keys()
        for name, values in mine.items():
            expected = zip(history.log_steps, history.measure(name)[:, run], strict=True)
            np.testing.assert_array_equal(values, [*expected])
