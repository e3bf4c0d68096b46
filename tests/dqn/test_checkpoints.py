"""Checkpoints: a training that was killed continues as if it had never stopped."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from counting import COUNTING
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from platforms import posix_only

from per_tutorial.common import files
from per_tutorial.common.files import ArrayFile, locked
from per_tutorial.dqn import callbacks as watchers_module
from per_tutorial.dqn import checkpoints as checkpoints_module
from per_tutorial.dqn import history as history_module
from per_tutorial.dqn.callbacks import ProgressBar, TensorBoard
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments import gymnasium_envs as environments_module
from per_tutorial.dqn.environments.gymnasium_envs import Environments
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import Training, train
from per_tutorial.replay.buffers import ReplayBuffer

SEEDS = [3, 4]
CONFIG = DQNConfig(
    steps=60,
    hidden=(8,),
    batch_size=4,
    learning_starts=20,
    learning_rate=0.01,
    max_episode_steps=11,
    update_every=2,
    target_update_every=4,
    tau=0.5,
    capacity=30,
    epsilon_steps=40,
    sampler="proportional",
)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Measurements every 7 steps, so that most checkpoints fall between two rows."""
    monkeypatch.setattr(history_module, "LOG_POINTS", CONFIG.steps // 7)


class Killed(Exception):
    """The training stops here."""


class Dying(Checkpoints):
    """The training dies right after the first of these steps that it makes; then it can be looked at."""

    def __init__(self, folder, steps=(), **options):
        super().__init__(folder, **options)
        self.steps = steps

    def restore(self, training):
        self.training = training
        super().restore(training)

    def save_if_due(self, training):
        super().save_if_due(training)
        if training.history.step in self.steps:
            raise Killed


class Nothing:
    """No checkpoints; but the parts of the training can be looked at."""

    def resolve_auto(self, config):
        return config

    def restore(self, training):
        self.training = training

    def save_if_due(self, training):
        pass


def uninterrupted(config, seeds=SEEDS):
    spy = Nothing()
    train(config, seeds, checkpoints=spy)
    return everything(spy.training)


def continued(config, folder, seeds=SEEDS, **options):
    """What the training in this folder comes to."""
    checkpoints = Dying(folder, **options)
    train(config, seeds, checkpoints=checkpoints)
    return everything(checkpoints.training)


def everything(training):
    """All that a training leaves, as a dict of arrays; read from its parts, not through `state`."""
    agent, history, storage = training.agent, training.history, training.replay.storage
    found = {"episodes": np.array(history.episodes), "log steps": history.log_steps}
    found |= {name: history.measure(name) for name in history.measures}
    found |= {f"row: {name}": storage.rows[name] for name in storage.rows.dtype.names}
    found |= {f"sampler: {name}": array for name, array in training.replay.sampler.state.items()}
    for network in ("online", "target"):
        for number, parameter in enumerate(getattr(agent, network).parameters()):
            found[f"{network} {number}"] = parameter.detach().numpy()
    for number, moments in enumerate(agent.optimizer.state.values()):
        found |= {f"adam {number} {name}": tensor.numpy() for name, tensor in moments.items()}
    found |= {"exploration": training.exploration.states, "added": storage.added}
    found |= {"observation": training.environments.observation, "updates": agent.updates}
    return found


def assert_identical(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def logged_steps(checkpoints):
    """The steps of the rows of measurements that a training writes from here on."""
    steps = []
    callbacks = [lambda history: steps.append(history.step)]
    train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=callbacks)
    return steps


def read_arrays(path):
    """All members of the file."""
    with ArrayFile(path) as file:
        return {name: file.read(name) for name in file.specs}


def names(folder):
    return sorted(os.listdir(folder))


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
    "Acrobot": {"env": "Acrobot-v1"},
    "MountainCar": {"env": "MountainCar-v0"},
    "one generator for all": {"vectorization": "vector_entry_point"},
    "next-step autoreset": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_training_killed_after_every_step_equals_one_that_never_stopped(
    case, tmp_path, monkeypatch
):
    if case == "next-step autoreset":
        monkeypatch.setattr(environments_module, "make_environments", make_next_step_environments)
    config = CONFIG.replace(**CASES[case])
    for step in range(1, config.steps + 1):
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
        del changes["replay.sampler.told"]  # counts where a call was interrupted
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
    _, steps = after.training.replay.storage.windows(np.full((2, 1), 31))
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


def start(*words, program=("-m", "per_tutorial")):
    return subprocess.Popen(
        [sys.executable, *program, *COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*words):
    process = start(*words)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")


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
        while process.poll() is None and newest == sorted(folder.glob("step-*"))[-1:]:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.2))
        newest = sorted(folder.glob("step-*"))[-1:]
        if process.poll() is not None:
            assert process.returncode == 0, process.stderr.read()
            break
        process.kill()
        process.communicate()
        kills += 1
    assert kills > 0
    finish(*steps, *outputs(torn), "--checkpoint", folder)
    assert_same_result(torn, whole)


# Runs the command line in a process that kills itself at the third time of one moment.
DIES = """
import os, signal, sys
import numpy as np
from per_tutorial import __main__
from per_tutorial.dqn import checkpoints

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def half(file, **arrays):
    file.write(b"PK" + bytes(5000))
    file.flush()
    die()

def half_a_copy(source, copy):
    copy.write(source.read(5000))
    copy.flush()
    die()

def third_time(function, instead):
    calls = []
    def counted(*arguments, **options):
        calls.append(1)
        return (function if len(calls) < 3 else instead)(*arguments, **options)
    return counted

moment = sys.argv.pop(1)
if moment == "half written":
    np.savez = third_time(np.savez, half)
elif moment == "before it has its name":
    os.replace = third_time(os.replace, die)
elif moment == "before older ones are removed":
    checkpoints._keep_only = third_time(checkpoints._keep_only, die)
elif moment == "half copied":
    checkpoints.shutil.copyfileobj = third_time(checkpoints.shutil.copyfileobj, half_a_copy)
__main__.main(sys.argv[1:])
"""


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
        process = start(*steps, *options, program=("-c", DIES, moment))
        _, errors = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, errors
        assert names(folder)[-1] == f"step-{step:012d}.npz"
        read_arrays(folder / names(folder)[-1])
    assert any(name.startswith(".step") for name in names(copy_to))
    finish(*steps, *options, *outputs(torn))
    assert_same_result(torn, whole)
    for each in (folder, copy_to):
        assert names(each) == ["step-000000000225.npz", "step-000000000250.npz"]


# Damaged checkpoints


@pytest.fixture
def killed(tmp_path):
    """The folder of a training that was killed; it holds checkpoints of steps 20 and 40."""
    folder = tmp_path / "killed"
    with pytest.raises(Killed):
        train(CONFIG, SEEDS, checkpoints=Dying(folder, [45], every=20))
    assert names(folder) == ["step-000000000020.npz", "step-000000000040.npz"]
    return folder


@pytest.fixture
def expected():
    return uninterrupted(CONFIG)


def cut_short(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    data[largest.header_offset + largest.compress_size // 2] ^= 16  # in the array, not beside it
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


def turn_into_something_else(path):
    np.savez(path, weights=np.zeros(3))


def hide_a_pickle(path):
    np.savez(path, made_with=np.array([{}], dtype=object))


def compress(path):
    """So that a small file could unpack to any number of gigabytes."""
    with np.load(path) as file:
        np.savez_compressed(path, **file)


def give_no_heading(path):
    with np.load(path) as file:
        np.savez(path, **dict(file) | {"made_with": np.array("[]")})


DAMAGES = [
    cut_short,
    flip_a_bit,
    empty,
    turn_into_something_else,
    hide_a_pickle,
    compress,
    give_no_heading,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(damage, killed, expected):
    before = names(killed)
    damage(killed / "step-000000000040.npz")
    with pytest.warns(UserWarning, match="step-000000000040.npz' is damaged; the one before"):
        found = continued(CONFIG, killed)
    assert_identical(found, expected)
    assert names(killed) == [before[0], "step-000000000060.npz"]


def test_a_damaged_checkpoint_is_not_one_of_the_two_that_are_kept(killed):
    cut_short(killed / "step-000000000040.npz")
    with pytest.warns(UserWarning), pytest.raises(Killed):
        train(CONFIG, SEEDS, checkpoints=Dying(killed, [25], every=25))
    assert names(killed) == ["step-000000000020.npz", "step-000000000025.npz"]


def test_a_training_whose_checkpoints_are_all_damaged_does_not_begin_anew(killed):
    for name in names(killed):
        cut_short(killed / name)
    before = {name: (killed / name).read_bytes() for name in names(killed)}
    with (
        pytest.warns(UserWarning) as caught,
        pytest.raises(ValueError, match="folder: no checkpoint in .*killed' is whole; remove"),
    ):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(killed), callbacks=[pytest.fail])
    warned = [str(each.message) for each in caught]
    assert all(name in text for name, text in zip(reversed(before), warned, strict=True))
    assert {name: (killed / name).read_bytes() for name in names(killed)} == before


# Other trainings


@pytest.mark.parametrize(
    "changes, seeds, message",
    [
        ({"n_step": 3}, SEEDS, "n_step = 1, not 3"),
        ({"hidden": (9,)}, SEEDS, r"hidden = \[8\], not \[9\]"),
        ({"steps": 61}, SEEDS, "steps = 60, not 61"),
        ({}, [3, 5], r"seeds = \[3, 4\], not \[3, 5\]"),
        ({}, [4, 3], r"seeds = \[3, 4\], not \[4, 3\]"),
    ],
    ids=str,
)
def test_another_training_is_refused(changes, seeds, message, killed):
    before = names(killed)
    with pytest.raises(ValueError, match=f"folder: .*000040.npz' was made with {message}; choose"):
        train(CONFIG.replace(**changes), seeds, checkpoints=Checkpoints(killed))
    assert names(killed) == before


def test_another_memory_is_refused(killed):
    replay = ReplayBuffer(30, (4,), runs=2, seed=SEEDS)
    with pytest.raises(ValueError, match="made with replay = .*proportional.*, not .*uniform"):
        train(CONFIG, SEEDS, replay=replay, checkpoints=Checkpoints(killed))


def test_another_version_is_refused(killed, monkeypatch):
    monkeypatch.setattr(checkpoints_module, "__version__", "99.0")
    with pytest.raises(ValueError, match="made with version = '.*', not '99.0'"):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(killed))


def test_checkpoints_need_a_whole_number_of_steps(tmp_path):
    with pytest.raises(ValueError, match="every: must be at least 1, got 0"):
        Checkpoints(tmp_path, every=0)


# A second folder


def test_every_checkpoint_is_copied(tmp_path):
    folder, copy_to = tmp_path / "checkpoints", tmp_path / "copies"
    train(CONFIG, SEEDS, checkpoints=Checkpoints(folder, every=20, copy_to=copy_to))
    assert names(copy_to) == names(folder) == ["step-000000000040.npz", "step-000000000060.npz"]
    for name in names(folder):
        assert (copy_to / name).read_bytes() == (folder / name).read_bytes()


def test_a_training_continues_from_the_copy(killed, tmp_path, expected):
    """Where the first folder is gone, as it is when a hosted machine was."""
    folder = tmp_path / "new"
    assert logged_steps(Checkpoints(folder, copy_to=killed)) == [42, 49, 56, 60]
    found = continued(CONFIG, folder)
    assert_identical(found, expected)


def test_of_two_folders_the_newest_whole_checkpoint_counts(killed, tmp_path):
    copy_to = tmp_path / "copies"
    shutil.copytree(killed, copy_to)
    cut_short(killed / "step-000000000040.npz")
    with pytest.warns(UserWarning, match="killed/step-000000000040.npz"):
        assert logged_steps(Checkpoints(killed, copy_to=copy_to)) == [42, 49, 56, 60]


def test_a_copy_that_fails_is_a_warning(tmp_path, expected):
    folder, copy_to = tmp_path / "checkpoints", tmp_path / "copies"

    def unmount(history):
        if history.step == 28:
            shutil.rmtree(copy_to)

    def mount(history):
        if history.step == 49:
            copy_to.mkdir()

    checkpoints = Dying(folder, every=20, copy_to=copy_to)
    with pytest.warns(UserWarning, match="copy_to: step-000000000040.npz could not be copied"):
        train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=[unmount, mount])
    assert_identical(everything(checkpoints.training), expected)
    assert names(folder) == ["step-000000000040.npz", "step-000000000060.npz"]
    assert names(copy_to) == ["step-000000000060.npz"]


def test_a_copy_that_could_never_be_made_is_an_error_at_once(tmp_path):
    checkpoints = Checkpoints(tmp_path / "here", copy_to=tmp_path / "not mounted" / "copies")
    with pytest.raises(FileNotFoundError, match="copy_to: there is no folder for '.*copies'"):
        train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=[pytest.fail])


def test_what_others_left_in_the_second_folder_stays(tmp_path):
    """Another training's checkpoints, and files that only look like checkpoints."""
    folder, copy_to, other = (tmp_path / name for name in ("checkpoints", "copies", "other"))
    train(CONFIG, [7, 8], checkpoints=Checkpoints(other, every=15))
    copy_to.mkdir()
    shutil.copy(other / "step-000000000045.npz", copy_to / "step-000000000005.npz")
    foreign = {
        "step-000000000005.npz": (copy_to / "step-000000000005.npz").read_bytes(),
        "step-000000000007.npz": b"nothing of ours",
        "step-by-step.npz": b"a tutorial",
        ".step-by-step.npz.swp": b"an editor's",
    }
    for name, data in foreign.items():
        (copy_to / name).write_bytes(data)
    with (
        pytest.warns(UserWarning, match="step-000000000007.npz' is damaged"),
        pytest.raises(ValueError),
    ):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(folder, copy_to=copy_to))
    with pytest.raises(Killed):  # nobody has looked into the second folder so far
        train(CONFIG, SEEDS, checkpoints=Dying(folder, [20], every=20))
    train(CONFIG, SEEDS, checkpoints=Checkpoints(folder, every=20, copy_to=copy_to))
    assert names(folder) == ["step-000000000040.npz", "step-000000000060.npz"]
    assert names(copy_to) == sorted([*names(folder), *foreign])
    assert {name: (copy_to / name).read_bytes() for name in foreign} == foreign


# Two processes in one folder


def test_the_second_of_two_trainings_in_one_folder_stops_and_the_first_goes_on(tmp_path):
    """Whichever comes later to a checkpoint finds one that it knows nothing of."""
    folder = tmp_path / "checkpoints"
    slow = Checkpoints(folder, every=20)

    def overtaken(history):
        if history.step == 42:
            train(CONFIG, SEEDS, checkpoints=Checkpoints(folder, every=20))

    message = "folder: another process wrote step-000000000060.npz to '.*checkpoints' meanwhile"
    with pytest.raises(ValueError, match=message):
        train(CONFIG, SEEDS, checkpoints=slow, callbacks=[overtaken])
    assert names(folder) == ["step-000000000040.npz", "step-000000000060.npz"]
    assert_identical(continued(CONFIG, folder), uninterrupted(CONFIG))


def test_two_trainings_that_begin_at_the_same_time_do_not_share_a_folder(tmp_path):
    def another(history):
        if history.step == 14:
            with pytest.raises(Killed):
                train(CONFIG, SEEDS, checkpoints=Dying(tmp_path, [20], every=20))

    with pytest.raises(ValueError, match="another process wrote step-000000000020.npz"):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path, every=20), callbacks=[another])
    assert names(tmp_path) == ["step-000000000020.npz"]


@pytest.mark.parametrize("second_folder", [False, True])
def test_a_file_that_another_process_is_writing_is_not_removed(second_folder, tmp_path):
    folder, copy_to = tmp_path / "checkpoints", tmp_path / "copies"
    folder.mkdir(), copy_to.mkdir()
    watched = copy_to if second_folder else folder
    half = watched / ".step-000000000099.npz.0123456789abcdef"
    half.write_bytes(b"half")
    training = threading.Thread(
        target=train,
        args=(CONFIG, SEEDS),
        kwargs={"checkpoints": Checkpoints(folder, every=20, copy_to=copy_to)},
        daemon=True,
    )
    with locked(watched):  # as whoever writes there does
        training.start()
        training.join(1)
        assert training.is_alive()
        assert half.exists()
    training.join(60)
    assert not half.exists()
    assert names(watched) == ["step-000000000040.npz", "step-000000000060.npz"]


def test_without_locks_halves_are_left_alone(tmp_path, monkeypatch):
    half = tmp_path / ".step-000000000099.npz.0123456789abcdef"
    half.write_bytes(b"half")
    monkeypatch.setattr(files, "fcntl", None)
    train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path, every=20))
    assert names(tmp_path) == [half.name, "step-000000000040.npz", "step-000000000060.npz"]


# Watchers of a training that was continued


def test_the_progress_bar_does_not_count_steps_that_were_done_before(killed, monkeypatch):
    """The speed would be wrong otherwise, and with it the time left."""
    bars = []

    def tqdm(**options):
        bars.append(real(**options))
        return bars[-1]

    real = watchers_module.tqdm
    monkeypatch.setattr(watchers_module, "tqdm", tqdm)
    train(CONFIG, SEEDS, checkpoints=Checkpoints(killed), callbacks=[ProgressBar()])
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


def test_a_checkpoint_that_lacks_an_array_is_damaged(tmp_path):
    train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path, every=CONFIG.steps))
    (path,) = tmp_path.glob("*.npz")
    with np.load(path) as file:
        arrays = dict(file)
    del arrays["history.measure.loss"]
    np.savez(path, **arrays)
    with pytest.warns(UserWarning, match="arrays are missing"), pytest.raises(ValueError):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path))


def test_a_checkpoint_with_an_array_of_another_shape_is_named(tmp_path):
    train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path, every=CONFIG.steps))
    (path,) = tmp_path.glob("*.npz")
    with np.load(path) as file:
        arrays = dict(file)
    arrays["replay.storage.added"] = np.zeros((7, 7), np.int64)
    np.savez(path, **arrays)
    with pytest.raises(
        ValueError, match="folder: checkpoint '.*060.npz' does not fit this training"
    ):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path))
