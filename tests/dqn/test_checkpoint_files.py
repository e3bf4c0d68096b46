"""Files of checkpoints: damaged ones, those of other trainings, copies, and two processes."""

import shutil
import threading
import zipfile

import numpy as np
import pytest
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
    uninterrupted,
)

from per_tutorial.common import files
from per_tutorial.common.files import locked
from per_tutorial.dqn import checkpoints as checkpoints_module
from per_tutorial.dqn import history as history_module
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.training import train
from per_tutorial.replay.buffers import ReplayBuffer


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Measurements every 7 steps, so that most checkpoints fall between two rows."""
    monkeypatch.setattr(history_module, "LOG_POINTS", CONFIG.steps // 7)


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
    with pytest.warns(
        UserWarning, match="step-000000000040.npz' is damaged; trying the one before"
    ):
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

    message = (
        "folder: another process wrote step-000000000060.npz to '.*checkpoints' in the meantime"
    )
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


@pytest.mark.slow
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
