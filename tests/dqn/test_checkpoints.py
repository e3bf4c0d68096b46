"""Checkpoints: a training that was killed continues as if it had never stopped."""

import json
import random
import signal
import time

import gymnasium as gym
import numpy as np
import pytest
from counting import COUNTING
from dying_commands import PROCESSES, run_command
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from killed_trainings import (
    CONFIG,
    SEEDS,
    Dying,
    Killed,
    assert_identical,
    continued,
    everything,
    logged_steps,
    names,
    read_arrays,
    uninterrupted,
)
from platforms import posix_only

from per_tutorial.dqn import callbacks as callbacks_module
from per_tutorial.dqn import history as history_module
from per_tutorial.dqn.callbacks import ProgressBar, TensorBoard
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.environments import gymnasium_envs as environments_module
from per_tutorial.dqn.environments.gymnasium_envs import Environments
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import Training, train


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Measurements every 7 steps, so that most checkpoints fall between two rows."""
    monkeypatch.setattr(history_module, "LOG_POINTS", CONFIG.steps // 7)


# Bit for bit


def make_next_step_environments(env_id, seeds, *, max_episode_steps, **_):
    def make():
        return gym.make(env_id, max_episode_steps=max_episode_steps, disable_env_checker=True)

    vector_env = SyncVectorEnv([make] * len(seeds), autoreset_mode=AutoresetMode.NEXT_STEP)
    return Environments(vector_env, seeds)


CASES = {
    "proportional": {},
    "uniform": {"sampler": "uniform"},
    "rank": {"sampler": "rank"},
    "lap": {"sampler": "lap", "loss": "huber", "kappa": 0.1},
    "reaper": {"sampler": "reaper"},
    "laber": {"sampler": "laber"},
    "relo": {"sampler": "relo"},
    "pal": {"sampler": "uniform", "loss": "pal"},
    "normalised over the buffer": {"normalize": "buffer"},
    "3-step": {"n_step": 3},
    "double and dueling": {"double": True, "dueling": True, "td_error_clip": 1.0},
    "rmsprop": {"optimizer": "rmsprop", "momentum": 0.5},
    "Acrobot": {"env": "Acrobot-v1"},
    "MountainCar": {"env": "MountainCar-v0"},
    "one generator for all": {"vectorization": "vector_entry_point"},
    "next-step autoreset": {},
}


EVERY_STEP = {"proportional", "3-step", "next-step autoreset"}  # the others: every eleventh


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_training_that_is_killed_often_equals_one_that_never_stopped(case, tmp_path, monkeypatch):
    if case == "next-step autoreset":
        monkeypatch.setattr(environments_module, "make_environments", make_next_step_environments)
    config = CONFIG.replace(**CASES[case])
    every = 1 if case in EVERY_STEP else 11
    for step in range(1, config.steps + 1, every):
        with pytest.raises(Killed):
            train(config, SEEDS, checkpoints=Dying(tmp_path, [step], every=1))
    assert_identical(continued(config, tmp_path), uninterrupted(config))


def test_what_was_done_since_the_last_checkpoint_is_done_again(tmp_path):
    with pytest.raises(Killed):
        train(CONFIG, SEEDS, checkpoints=Dying(tmp_path, [47], every=20))
    assert names(tmp_path) == ["step-000000000020.npz", "step-000000000040.npz"]
    assert logged_steps(Checkpoints(tmp_path)) == [42, 49, 56, 60]


def test_a_finished_training_is_there_at_once(tmp_path):
    checkpoints = Checkpoints(tmp_path, every=1000)
    history = train(CONFIG, SEEDS, checkpoints=checkpoints)
    again = train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=[pytest.fail])
    assert again.step == CONFIG.steps
    assert again.episodes == history.episodes
    observations = np.random.default_rng(0).normal(size=(2, 5, 4))
    np.testing.assert_array_equal(
        again.agent.q_values(observations), history.agent.q_values(observations)
    )


# Every part of the state counts


def telling_checkpoint(folder, config):
    """One where everything matters: one run is between two episodes, the other is in one that will
    reach the time limit, and losses wait to be logged before the next update."""
    with pytest.raises(Killed):
        train(config, SEEDS, checkpoints=Dying(folder, [46], every=46))
    state = read_arrays(folder / "step-000000000046.npz")
    assert sorted(state["environments.resets_now"]) == [False, True]
    assert len(state["history.losses"])
    return state


def forget(monkeypatch, change):
    """Restore not what was saved, but what ``change(saved, fresh)`` makes of it."""
    restore = Training.restore

    def forgetful(self, state):
        change(state, self.state)
        restore(self, state)

    monkeypatch.setattr(Training, "restore", forgetful)


def left_out(*names):
    def change(saved, fresh):
        for name in names:
            if name in fresh:
                saved[name] = fresh[name]
            else:
                del saved[name]

    return change


def left_out_of_the_simulation(kind, number):
    def change(saved, fresh):
        facts, fresh_facts = (
            json.loads(state["environments.simulation"].tobytes()) for state in (saved, fresh)
        )
        facts[kind][number] = fresh_facts[kind][number]
        saved["environments.simulation"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler, vectorization",
    [
        ("uniform", "sync"),
        ("proportional", "sync"),
        ("rank", "sync"),
        ("uniform", "vector_entry_point"),
    ],
)
def test_a_part_that_is_left_out_is_noticed(sampler, vectorization, tmp_path, monkeypatch):
    config = CONFIG.replace(
        sampler=sampler,
        normalize="buffer",
        update_every=5,
        epsilon_end=1.0,  # all actions are random, so episodes are the same everywhere
        vectorization=vectorization,
    )
    if vectorization == "sync":
        monkeypatch.setattr(environments_module, "make_environments", make_next_step_environments)
    state = telling_checkpoint(tmp_path, config)
    facts = json.loads(state["environments.simulation"].tobytes())
    changes = {name: left_out(name) for name in state}
    del changes["made_with"]  # nothing of the training: other tests are about it
    del changes["environments.steps_done"]  # counts where episodes cannot go on: likewise
    if sampler == "rank":  # these refer to one another; one wrong one may crash compiled code
        heap = [f"replay.sampler.{name}" for name in ("slots", "ranks", "sizes")]
        for name in heap:
            del changes[name]
        changes["heap"] = left_out(*heap)
        del changes["replay.sampler.num_added"]  # counts where a call was interrupted
    for kind, values in facts.items():
        for number in range(len(values)):
            changes[f"{kind} {number}"] = left_out_of_the_simulation(kind, number)
    if vectorization == "sync":  # the run that resets next needs neither its time nor its state
        resets_next = int(state["environments.resets_now"].argmax())
        del changes[f"values {1 + 2 * resets_next}"], changes[f"values {2 + 2 * resets_next}"]
    expected = uninterrupted(config)
    unnoticed = []
    for name, change in changes.items():
        with monkeypatch.context() as patch:
            forget(patch, change)
            try:
                assert_identical(continued(config, tmp_path), expected)
            except Exception:  # it crashes, or comes to something else
                pass
            else:
                unnoticed.append(name)
        (tmp_path / "step-000000000060.npz").unlink(missing_ok=True)
    assert unnoticed == []
    assert_identical(continued(config, tmp_path), expected)


# Environments that cannot be saved


def test_where_environments_cannot_be_saved_new_episodes_begin_and_all_else_continues(tmp_path):
    config = CONFIG.replace(env=COUNTING, max_episode_steps=None, n_step=3, capacity=60)
    before, after = Dying(tmp_path, [32], every=32), Dying(tmp_path, [33])
    with pytest.raises(Killed):
        train(config, SEEDS, checkpoints=before)
    old = everything(before.training)
    running = before.training.environments._lengths > 0
    assert sorted(running) == [False, True]
    with pytest.raises(Killed):
        train(config, SEEDS, checkpoints=after)
    rows = after.training.replay.storage.rows
    # The last transition of each run ends an episode now, and the next one begins another.
    first = rows["observation"][:, 32]
    assert (first[:, 1:] == [0, -1]).all()
    assert (rows["truncated"][:, 31] | rows["terminated"][:, 31]).all()
    cut = running[:, None] & (np.arange(60) == 31)
    assert (rows["truncated"][:, :32] == (old["row: truncated"] | cut)[:, :32]).all()
    _, steps = after.training.replay.storage.n_step_transitions(np.full((2, 1), 31))
    assert steps.tolist() == [[1], [1]]
    for name in set(rows.dtype.names) - {"truncated"}:
        assert (rows[name][:, :32] == old[f"row: {name}"][:, :32]).all()

    after = Dying(tmp_path)
    train(config, SEEDS, checkpoints=after)
    history = after.training.history
    count = len(old["episodes"])
    assert history.episodes[:count] == [tuple(episode) for episode in old["episodes"]]
    for run in range(len(SEEDS)):  # the steps of the cut episode do not count with the next
        _, step, value, length = next(one for one in history.episodes[count:] if one[0] == run)
        assert step == 32 + length
        rewards = after.training.replay.storage.rows["reward"][run, 32 : 32 + length]
        assert value == rewards.sum()
    assert after.training.agent.updates == uninterrupted(config)["updates"]


def test_new_episodes_are_other_ones_than_those_at_the_start(tmp_path):
    config = CONFIG.replace(env=COUNTING, max_episode_steps=None)
    seen = []
    for step in (10, 20, 30):
        checkpoints = Dying(tmp_path, [step], every=10)
        with pytest.raises(Killed):
            train(config, SEEDS, checkpoints=checkpoints)
        envs = checkpoints.training.environments.vector_env.envs
        seen += [env.unwrapped.seed for env in envs]
    assert seen[:2] == SEEDS
    assert len(set(seen)) == 6


class Looking(Dying):
    """The training dies before its first step."""

    def restore(self, training):
        super().restore(training)
        raise Killed


def test_all_else_is_restored(tmp_path):
    config = CONFIG.replace(env=COUNTING, max_episode_steps=None)
    before, after = Dying(tmp_path, [30], every=30), Looking(tmp_path)
    for checkpoints in (before, after):
        with pytest.raises(Killed):
            train(config, SEEDS, checkpoints=checkpoints)
    old, new = everything(before.training), everything(after.training)
    for changed in ("observation", "row: truncated"):
        del old[changed], new[changed]
    assert_identical(old, new)


# Killed by the system, at any moment

COMMAND = (
    "train --runs 2 --first-seed 3 --hidden 8 --batch-size 4 --learning-starts 20 --episodes 1 "
    "--sampler proportional --n-step 3 --capacity 300 --update-every 4 --quiet"
).split()


def start(*words, moment=None):
    """The command in a process of its own."""
    process = PROCESSES.Process(target=run_command, args=([*COMMAND, *map(str, words)], moment))
    process.start()
    return process


def finish(*words):
    process = start(*words)
    process.join(300)
    assert process.exitcode == 0


def assert_same_result(folder, other):
    """What `--out` and `--save` wrote is the same, byte for byte."""
    assert (folder / "history.csv").read_bytes() == (other / "history.csv").read_bytes()
    one, two = (DQNLearner.load(each / "agents.safetensors") for each in (folder, other))
    for parameter, same in zip(one.online.parameters(), two.online.parameters(), strict=True):
        np.testing.assert_array_equal(parameter.detach().numpy(), same.detach().numpy())


def outputs(folder):
    return "--out", folder / "history.csv", "--save", folder / "agents.safetensors"


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    whole, torn, folder = tmp_path / "whole", tmp_path / "torn", tmp_path / "checkpoints"
    whole.mkdir(), torn.mkdir()
    steps = "--steps", 1500
    finish(*steps, *outputs(whole))
    kills, moments = 0, random.Random(time.time_ns())
    newest = []
    while kills < 2:
        process = start(*steps, *outputs(torn), "--checkpoint", folder, "--checkpoint-every", 10)
        while process.is_alive() and newest == sorted(folder.glob("step-*"))[-1:]:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.2))
        newest = sorted(folder.glob("step-*"))[-1:]
        if not process.is_alive():
            assert process.exitcode == 0
            break
        process.kill()
        process.join()
        kills += 1
    assert kills > 0
    finish(*steps, *outputs(torn), "--checkpoint", folder)
    assert_same_result(torn, whole)


@posix_only
@pytest.mark.slow
def test_killed_while_a_checkpoint_is_written(tmp_path):
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.mkdir(), torn.mkdir()
    steps = "--steps", 250
    finish(*steps, *outputs(whole))
    folder, copy_to = tmp_path / "checkpoints", tmp_path / "copies"
    options = "--checkpoint", folder, "--checkpoint-copy", copy_to, "--checkpoint-every", 25
    newest = {  # that is whole, after each death; the second and third also count copies
        "half written": 50,
        "before it has its name": 75,
        "before older ones are removed": 125,
        "half copied": 200,
    }
    for moment, step in newest.items():
        process = start(*steps, *options, moment=moment)
        process.join(300)
        assert process.exitcode == -signal.SIGKILL
        assert names(folder)[-1] == f"step-{step:012d}.npz"
        read_arrays(folder / names(folder)[-1])
    assert any(name.startswith(".step") for name in names(copy_to))
    finish(*steps, *options, *outputs(torn))
    assert_same_result(torn, whole)
    for each in (folder, copy_to):
        assert names(each) == ["step-000000000225.npz", "step-000000000250.npz"]


# Callbacks of a training that was continued


def test_the_progress_bar_does_not_count_steps_that_were_done_before(tmp_path, monkeypatch):
    """The speed would be wrong otherwise, and with it the time left."""
    bars = []

    def tqdm(**options):
        bars.append(real(**options))
        return bars[-1]

    real = callbacks_module.tqdm
    monkeypatch.setattr(callbacks_module, "tqdm", tqdm)
    with pytest.raises(Killed):
        train(CONFIG, SEEDS, checkpoints=Dying(tmp_path, [45], every=20))
    train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path), callbacks=[ProgressBar()])
    assert [(bar.initial, bar.n, bar.total) for bar in bars] == [(35, 60, 60)]
    train(CONFIG, SEEDS, callbacks=[ProgressBar()])
    assert [(bar.initial, bar.n, bar.total) for bar in bars[1:]] == [(0, 60, 60)]


def test_tensorboard_shows_every_step_once(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, events = tmp_path / "checkpoints", tmp_path / "events"
    for stop in (45, 58, None):
        checkpoints = Dying(folder, [stop], every=20)
        try:
            history = train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=[TensorBoard(events)])
        except Killed:
            assert stop
    for run, seed in enumerate(SEEDS):
        shown = EventAccumulator(str(events / f"seed-{seed}"))
        shown.Reload()
        steps, values = history.returns(run)
        returns = shown.Scalars("charts/episodic_return")
        assert [event.step for event in returns] == steps.tolist()
        assert [event.value for event in returns] == values.tolist()
        losses = shown.Scalars("losses/loss")
        assert [event.step for event in losses] == history.log_steps
        np.testing.assert_allclose(
            [event.value for event in losses], history.measure("loss")[:, run], rtol=1e-6
        )
