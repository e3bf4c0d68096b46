"""Checkpoints: a killed training continues from the last one, with new episodes."""

import random
import shutil
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from counting import COUNTING
from killed_trainings import (
    CONFIG,
    SEEDS,
    Dying,
    Killed,
    assert_identical,
    continued,
    everything,
)

from per_tutorial.dqn import callbacks as callbacks_module
from per_tutorial.dqn import checkpoints as checkpoints_module
from per_tutorial.dqn import history as history_module
from per_tutorial.dqn.callbacks import ProgressBar, TensorBoard
from per_tutorial.dqn.checkpoints import NAME, Checkpoints
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.replay.buffers import ReplayBuffer


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Measurements every 7 steps, so that most checkpoints fall between two rows."""
    monkeypatch.setattr(history_module, "LOG_POINTS", CONFIG.steps // 7)


def killed_at(step, folder, config=CONFIG, **options):
    """The training in the folder, continued and killed right after this step."""
    checkpoints = Dying(folder, [step], **options)
    with pytest.raises(Killed):
        train(config, SEEDS, checkpoints=checkpoints)
    return checkpoints.training


def names(folder):
    return sorted(path.name for path in folder.iterdir())


CASES = {
    "proportional, n-step": {"normalize": "buffer", "n_step": 3},
    "rank": {"sampler": "rank"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_a_training_continues_from_a_checkpoint_in_one_way(case, tmp_path):
    """All but the running episodes comes back; however often it is killed, it ends the same."""
    config = CONFIG.replace(**CASES[case])
    # The losses since the last row of measurements wait, and both the networks and the memory
    # changed since the checkpoint before.
    old = everything(killed_at(46, tmp_path / "once", config, every=23))
    assert len(old["losses"]) and old["updates"]
    shutil.copytree(tmp_path / "once", tmp_path / "often")
    new = everything(killed_at(0, tmp_path / "often", config))
    del old["row: truncated"], new["row: truncated"]
    assert_identical(new, old)
    killed_at(59, tmp_path / "often", config, every=1000)
    assert_identical(continued(config, tmp_path / "often"), continued(config, tmp_path / "once"))


def test_the_running_episodes_are_truncated_and_new_ones_begin(tmp_path):
    config = CONFIG.replace(env=COUNTING, max_episode_steps=None, n_step=3, capacity=60)
    before = killed_at(32, tmp_path, config, every=32)
    old, running = everything(before), before.environments._lengths > 0
    assert sorted(running) == [False, True]
    rows = killed_at(33, tmp_path, config).replay.storage.rows
    # The last transition of each run ends an episode now, and the next one begins another.
    assert (rows["observation"][:, 32, 1:] == [0, -1]).all()
    cut = running[:, None] & (np.arange(60) == 31)
    assert (rows["truncated"][:, :32] == (old["row: truncated"] | cut)[:, :32]).all()

    checkpoints = Dying(tmp_path)
    history = train(config, SEEDS, checkpoints=checkpoints)
    count = len(old["episodes"])
    assert history.episodes[:count] == [tuple(episode) for episode in old["episodes"]]
    for run in range(len(SEEDS)):  # the steps of the cut episode do not count with the next
        _, step, value, length = next(one for one in history.episodes[count:] if one[0] == run)
        assert step == 32 + length
        rewards = checkpoints.training.replay.storage.rows["reward"][run, 32 : 32 + length]
        assert value == rewards.sum()


def test_new_episodes_are_other_ones_than_those_at_the_start(tmp_path):
    config = CONFIG.replace(env=COUNTING, max_episode_steps=None)
    seen = []
    for step in (10, 20, 30):
        envs = killed_at(step, tmp_path, config, every=10).environments.vector_env.envs
        seen += [env.unwrapped.seed for env in envs]
    assert seen[:2] == SEEDS
    assert len(set(seen)) == 6


def test_a_finished_training_is_there_at_once(tmp_path):
    history = train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path, every=1000))
    seen = []
    again = train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path), callbacks=[seen.append])
    assert seen == [again]  # as at the end of any training
    assert (again.step, again.episodes) == (CONFIG.steps, history.episodes)
    observations = np.random.default_rng(0).normal(size=(2, 5, 4))
    np.testing.assert_array_equal(
        again.agent.q_values(observations), history.agent.q_values(observations)
    )


# Damaged checkpoints


@pytest.fixture
def killed(tmp_path):
    """The folder of a training that was killed; it holds the checkpoint of step 40."""
    killed_at(45, tmp_path / "killed", every=20)
    assert names(tmp_path / "killed") == [NAME]
    return tmp_path / "killed"


def cut_short(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    data[largest.header_offset + largest.compress_size // 2] ^= 16  # in the array, not beside it
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut_short, flip_a_bit])
def test_a_training_whose_checkpoint_is_damaged_does_not_begin_anew(damage, killed):
    damage(killed / NAME)
    with pytest.raises(ValueError, match=f"^path: .*{NAME}' is damaged"):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(killed), callbacks=[pytest.fail])


# Other trainings


def test_another_training_is_refused(killed, monkeypatch):
    before = {name: (killed / name).read_bytes() for name in names(killed)}
    other = {"replay": ReplayBuffer(30, (4,), runs=2, seed=SEEDS)}
    learner = {"learner": type("Mine", (DQNLearner,), {})}
    for config, seeds, options, message in [
        (CONFIG.replace(n_step=3), SEEDS, {}, "n_step = 1, not 3"),
        (CONFIG.replace(hidden=(9,)), SEEDS, {}, r"hidden = \[8\], not \[9\]"),
        (CONFIG, [4, 3], {}, r"seeds = \[3, 4\], not \[4, 3\]"),
        (CONFIG, SEEDS, other, "replay = .*proportional.*, not .*uniform"),
        (CONFIG, SEEDS, learner, "learner = 'per_.*.DQNLearner', not '.*test_checkpoints.Mine'"),
    ]:
        with pytest.raises(ValueError, match=f"folder: .*{NAME}' was saved with {message}"):
            train(config, seeds, checkpoints=Checkpoints(killed), **options)
    monkeypatch.setattr(checkpoints_module, "__version__", "99.0")
    with pytest.raises(ValueError, match="saved with version = '.*', not '99.0'"):
        train(CONFIG, SEEDS, checkpoints=Checkpoints(killed))
    assert {name: (killed / name).read_bytes() for name in names(killed)} == before


# Killed by the system, at any moment


def start(*words):
    """The command in a process of its own."""
    settings = (
        "train --runs 2 --first-seed 3 --hidden 8 --batch-size 4 --learning-starts 20 "
        "--episodes 1 --sampler proportional --n-step 3 --capacity 300 --update-every 4 --quiet"
    )
    command = [sys.executable, "-m", "per_tutorial", *settings.split(), *map(str, words)]
    return subprocess.Popen(command)


@pytest.mark.exhaustive
def test_killed_at_random_moments_a_training_comes_to_its_end(tmp_path):
    """What a killed process wrote to the half is removed."""
    folder, moments = tmp_path / "checkpoints", random.Random(time.time_ns())
    folder.mkdir()
    (folder / f".{NAME}.0123").write_bytes(b"half")
    options = "--steps", 1500, "--checkpoint", folder, "--out", tmp_path / "history.csv"
    process = start(*options, "--checkpoint-every", 10)
    while process.poll() is None and not (folder / NAME).exists():
        time.sleep(0.01)
    time.sleep(moments.uniform(0, 0.2))
    process.kill()
    process.wait()
    assert start(*options).wait(300) == 0
    assert '"step": 1500' in (tmp_path / "history.csv").read_text(encoding="utf-8")
    assert names(folder) == [NAME]


# Callbacks of a training that was continued


def test_the_progress_bar_does_not_count_steps_that_were_done_before(tmp_path, monkeypatch):
    """The speed would be wrong otherwise, and with it the time left."""
    bars = []

    def tqdm(**options):
        bars.append(real(**options))
        return bars[-1]

    real = callbacks_module.tqdm
    monkeypatch.setattr(callbacks_module, "tqdm", tqdm)
    killed_at(45, tmp_path, every=20)
    train(CONFIG, SEEDS, checkpoints=Checkpoints(tmp_path), callbacks=[ProgressBar()])
    assert [(bar.initial, bar.n, bar.total) for bar in bars] == [(35, 60, 60)]


def test_a_memory_without_a_state_is_refused_before_the_first_step(tmp_path):
    class Memory(list):
        add = sample = update_priorities = None

    with pytest.raises(TypeError, match="^replay: must have settings to be written"):
        train(CONFIG, 0, replay=Memory(), checkpoints=Checkpoints(tmp_path))


def test_tensorboard_shows_every_step_once(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, events = tmp_path / "checkpoints", tmp_path / "events"
    writer = TensorBoard(events)
    for stop in (45, 58, None):
        checkpoints = Dying(folder, [stop], every=20)
        try:
            history = train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=[writer])
        except Killed:
            assert stop
    for run, seed in enumerate(SEEDS):
        shown = EventAccumulator(str(events / f"seed-{seed}"))
        shown.Reload()
        steps, values = history.returns(run)
        returns = shown.Scalars("charts/episodic_return")
        assert [event.step for event in returns] == steps.tolist()
        assert [event.value for event in returns] == values.tolist()
        assert [event.step for event in shown.Scalars("losses/loss")] == history.log_steps
