"""Files that are the old one or the new one; folders that are locked; arrays that need not be
trusted.
"""

import io
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from platforms import linux_only, posix_only

from per_tutorial.common import files
from per_tutorial.common.files import (
    ArrayFile,
    atomic_write,
    check_writable,
    locked,
    part_of,
    write_arrays,
)

DATA = Path(__file__).parents[1] / "data"


def write(path, data=b"new"):
    with atomic_write(path) as file:
        file.write(data)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def umask():
    """Sets the umask; the old one comes back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


# ---------------------------------------------------------------- writing


def test_the_new_file_takes_the_place_of_the_old_one_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_write(os.fspath(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        assert len(os.listdir(tmp_path)) == 2
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_in_the_current_folder_needs_no_folder_in_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable("file")
    write("file")
    assert os.listdir() == ["file"]


@pytest.mark.parametrize("error", [ValueError, OSError("No space"), KeyboardInterrupt, SystemExit])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error if isinstance(error, type) else type(error)):
        with atomic_write(path) as file:
            file.write(b"half")
            raise error
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])


@pytest.mark.parametrize("moment", ["fsync", "chmod", "replace"])
def test_whatever_step_fails_the_old_file_stays(tmp_path, monkeypatch, moment):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(path)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])


def test_data_are_on_the_disk_before_the_file_has_its_name(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: done.append("fsync") or fsync(handle))
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("replace") or replace(*paths))
    write(tmp_path / "file")
    assert done == ["fsync", "replace"]


@posix_only
@pytest.mark.parametrize("mask, expected", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, umask, mask, expected):
    umask(mask)
    write(tmp_path / "file")
    assert mode(tmp_path / "file") == expected


@posix_only
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444, 0o666, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path, umask, permissions):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(permissions)
    with atomic_write(path) as file:
        file.write(b"new")
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert mode(temporary) & ~permissions == 0  # nobody can read in between what is private
    assert (mode(path), path.read_bytes()) == (permissions, b"new")


@posix_only
def test_a_link_stays_a_link_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link, chain = tmp_path / "elsewhere" / "file", tmp_path / "link", tmp_path / "chain"
    link.symlink_to(Path("elsewhere") / "file")
    chain.symlink_to(link)
    for path, data in ((link, b"made"), (link, b"replaced"), (chain, b"again")):
        check_writable(path)
        write(path, data)
        assert target.read_bytes() == data
        assert link.is_symlink() and chain.is_symlink() and not target.is_symlink()
    assert os.listdir(tmp_path / "elsewhere") == ["file"]


@posix_only
def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links: '.*/one'"):
        write(tmp_path / "one")
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


@posix_only
def test_a_fifo_is_written_to_and_stays_one(tmp_path):
    path, received = tmp_path / "fifo", []
    os.mkfifo(path)
    check_writable(path)
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()), daemon=True)
    reader.start()
    write(path)
    reader.join(10)
    assert received == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["fifo"]


@linux_only
def test_a_device_is_written_to_and_stays_one(tmp_path):
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # a twin of /dev/null
        path.read_bytes()
    except PermissionError:
        path.unlink(missing_ok=True)
        path.symlink_to("/dev/null")
    before = path.stat().st_rdev
    check_writable(path)
    write(path)
    write_arrays(path, "heading", {}, {"x": np.zeros(3)})
    assert stat.S_ISCHR(path.stat().st_mode)
    assert path.stat().st_rdev == before
    assert os.listdir(tmp_path) == ["null"]


@posix_only
def test_what_is_written_to_stdout_comes_out_there():
    program = (
        "from per_tutorial.common.files import atomic_write\n"
        "with atomic_write('/dev/stdout') as file: file.write(b'new')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout == b"new"


@linux_only
def test_a_full_device_is_an_error_that_names_it():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write("/dev/full")


@posix_only
def test_a_folder_and_a_socket_are_no_files(tmp_path):
    folder, path = tmp_path / "folder", tmp_path / "socket"
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match="'.*/folder'"):
        write(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))
        with pytest.raises(OSError, match="a socket cannot be written like a file: '.*/socket'"):
            write(path)
        assert stat.S_ISSOCK(path.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["folder", "socket"]


@posix_only
def test_an_error_names_the_path_and_no_temporary_file(tmp_path):
    path = tmp_path / "absent" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write(path)
    assert caught.value.filename == os.fspath(path)
    with pytest.raises(OSError, match="No space left: '.*/file'"):
        with atomic_write(tmp_path / "file"):
            raise OSError(28, "No space left")
    with pytest.raises(FileNotFoundError, match="'/absent'"):  # of another file
        with atomic_write(tmp_path / "file"):
            open("/absent", encoding="utf-8")


@posix_only
def test_whether_a_file_could_be_written_is_said_beforehand(tmp_path):
    check_writable(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"old")
    check_writable(tmp_path / "file", "--out")
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(FileNotFoundError, match="^--out: there is no folder for '.*/absent/file'$"):
        check_writable(tmp_path / "absent" / "file", "--out")
    with pytest.raises(FileNotFoundError, match="^--out: there is no folder for '.*/file/x'$"):
        check_writable(tmp_path / "file" / "x", "--out")
    for folder in (tmp_path, os.fspath(tmp_path), ""):
        with pytest.raises(IsADirectoryError, match="^path: '.*' is a folder$"):
            check_writable(folder)
    (tmp_path / "link").symlink_to(tmp_path / "absent" / "file")
    with pytest.raises(FileNotFoundError, match="there is no folder for '.*/link'"):
        check_writable(tmp_path / "link")


@posix_only
def test_a_folder_that_cannot_be_written_to_is_said_beforehand(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "access", lambda path, how: asked.append((Path(path), how)))
    with pytest.raises(PermissionError, match="^--out: '.*/file' cannot be written$"):
        check_writable(tmp_path / "file", "--out")
    with pytest.raises(PermissionError, match="^path: '/dev/null' cannot be written$"):
        check_writable("/dev/null")
    assert asked == [(tmp_path, os.W_OK), (Path("/dev/null"), os.W_OK)]


# ---------------------------------------------------------------- locks


@posix_only
def test_a_lock_keeps_others_out_until_it_is_released(tmp_path):
    entered = threading.Event()

    def other():
        with locked(tmp_path) as held:
            assert held
            entered.set()

    thread = threading.Thread(target=other, daemon=True)
    with locked(tmp_path) as held:
        assert held
        thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(10)
    thread.join()
    assert os.listdir(tmp_path) == []


@posix_only
def test_a_lock_ends_with_its_process(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from per_tutorial.common.files import locked\n"
        "with locked(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path], timeout=60)
    with locked(tmp_path) as held:
        assert held


@posix_only
def test_where_there_are_no_locks_work_goes_on_without(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError("Operation not supported")

    with monkeypatch.context() as patch:
        patch.setattr(files.fcntl, "flock", unsupported)
        with locked(tmp_path) as held:
            assert not held
    monkeypatch.setattr(files, "fcntl", None)
    with locked(tmp_path) as held:
        assert not held


@posix_only
def test_a_folder_that_is_not_there_cannot_be_locked(tmp_path):
    with pytest.raises(FileNotFoundError), locked(tmp_path / "absent"):
        pytest.fail()


# ---------------------------------------------------------------- arrays

ARRAYS = {
    "x": np.arange(6.0).reshape(2, 3),
    "x.columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "nothing": np.zeros((4, 0), np.int8),
    "one": np.array(7),
    "rows": np.array([((1, 2), True)], dtype=[("at", "<f4", (2,)), ("done", "?")]),
    "big": np.arange(3, dtype=">i4"),
    "text": np.array("β"),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "arrays.npz"
    write_arrays(path, "settings", {"runs": None}, ARRAYS)
    return path


def rewrite(path, members):
    """A zip file of these members, (name, bytes) each, that are stored as they are."""
    with zipfile.ZipFile(path, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, data in members:
            file.writestr(name, data)


def read_arrays(path):
    """All members of the file."""
    with ArrayFile(path) as file:
        return {name: file.read(name) for name in file.specs}


def npy(array=None, *, header=None, version=(1, 0), **options):
    """The bytes of a `.npy` file; of this header, if one is given, and no data."""
    file = io.BytesIO()
    if header is None:
        np.save(file, array, **options)
        return file.getvalue()
    size = len(header).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + header.encode()


def refused(path, said=""):
    with pytest.raises(ValueError) as caught:
        read_arrays(path)
    assert str(caught.value).startswith(f"path: {os.fspath(path)!r} is damaged or incomplete (")
    assert said in str(caught.value)
    assert "path:" not in str(caught.value)[5:]  # named once


def test_what_is_read_is_what_was_written(path):
    with ArrayFile(path) as file:
        assert file.heading("settings") == {"runs": None}
        assert list(file.specs) == ["settings", *ARRAYS]  # in the order in which they were written
        for name, array in ARRAYS.items():
            assert file.specs[name] == (array.dtype, array.shape)
            found = file.read(name)
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found, array)
    assert read_arrays(os.fspath(path)).keys() == {"settings", *ARRAYS}


def test_the_file_is_one_that_numpy_reads(path):
    with np.load(path, allow_pickle=False) as file:
        assert json.loads(str(file["settings"])) == {"runs": None}
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(file[name], array)


def test_a_file_of_version_0_1_0_is_read():
    with ArrayFile(DATA / "replay-0.1.0.npz") as file:
        assert file.heading("settings")["capacity"] == 5
        assert file.read("storage.added").tolist() == [7]
        assert {name: file.read(name).shape for name in file.specs} == {
            name: shape for name, (_, shape) in file.specs.items()
        }


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    for absent in (tmp_path / "absent.npz", tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            ArrayFile(absent)
        assert str(caught.value) == f"path: no file {os.fspath(absent)!r}"


def test_opening_reads_no_data(tmp_path, monkeypatch):
    path = tmp_path / "arrays.npz"
    write_arrays(path, "settings", {}, {"large": np.zeros(10**7), "small": np.zeros(3)})
    read = []
    real = zipfile.ZipExtFile.read

    def counted(file, size=-1):
        data = real(file, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with ArrayFile(path) as file:
        file.heading("settings")
        file.read("small")
    assert sum(read) < 10_000


def test_a_file_is_closed_in_the_end(path, monkeypatch):
    opened = []
    real = open

    def noted(*arguments):
        opened.append(real(*arguments))
        return opened[-1]

    monkeypatch.setattr(files, "open", noted, raising=False)
    with ArrayFile(path) as file:
        assert not opened[0].closed
    assert opened[0].closed
    with pytest.raises(ValueError):
        file.read("x")
    path.write_bytes(b"")
    refused(path)
    assert len(opened) == 2 and opened[1].closed


@pytest.mark.slow
def test_every_flipped_bit_is_noticed_or_means_nothing(path):
    whole, expected = path.read_bytes(), read_arrays(path)
    noticed = 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            found = read_arrays(path)
        except ValueError as error:
            assert "is damaged or incomplete" in str(error)
            noticed += 1
            continue
        for name in found.keys() & expected.keys():  # zip's directory may hide one
            np.testing.assert_array_equal(found[name], expected[name])
    assert noticed > len(whole) / 7 / 2


@pytest.mark.slow
def test_a_file_cut_short_anywhere_is_refused(path):
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        refused(path)


def test_pickles_are_refused_unread(tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    path = tmp_path / "pickle.npz"
    for array in (
        np.array([Trap()], object),
        np.array([(1, Trap())], [("x", "i4"), ("y", object)]),
    ):
        np.savez(path, x=array)
        refused(path, "x.npy cannot hold")


def test_a_small_file_cannot_unpack_to_any_number_of_gigabytes(tmp_path):
    """64 MB, in a file of 64 KB."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, x=np.zeros(8 * 2**20))
    assert path.stat().st_size < 2**20
    refused(path, "x.npy is compressed")


def test_members_that_share_their_data_are_refused(tmp_path):
    """One lies in the data of another; a thousand, each in the next, would unpack to 500 times as
    much.
    """
    inner, path = tmp_path / "inner.npz", tmp_path / "shared.npz"
    rewrite(inner, [("b.npy", npy(np.zeros(1000)))])
    rewrite(path, [("a.npy", npy(np.frombuffer(inner.read_bytes(), np.uint8)))])
    assert read_arrays(path).keys() == {"a"}
    with zipfile.ZipFile(inner) as file:
        (member,) = file.infolist()
    member.header_offset = path.read_bytes().index(inner.read_bytes()[:100])
    with zipfile.ZipFile(path, "a") as file:
        file.filelist.append(member)
        file._didModify = True
    refused(path, "verlap")  # the newest versions of zipfile say it themselves


@pytest.mark.parametrize(
    "header, said",
    [
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}",
            "does not have the length",
        ),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "does not have the length"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}", "cannot hold"),
        ("{'descr': '<U0', 'fortran_order': False, 'shape': (10000000000,)}", "cannot hold"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (0,)}", "cannot hold"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': 3}", "shape"),
        ("{'descr': '<f8', 'shape': (0,)}", "keys"),
        ("-" * 9000 + "1", ""),
        ("[" * 9000, ""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}" + " " * 20_000, "large"),
    ],
)
def test_heads_that_lie_are_refused_before_anything_is_allocated(tmp_path, header, said):
    path = tmp_path / "lie.npz"
    rewrite(path, [("x.npy", npy(header=header))])
    refused(path, said)


def test_formats_that_numpy_does_not_write_here_are_refused(tmp_path):
    path = tmp_path / "future.npz"
    head = "{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}"
    rewrite(path, [("x.npy", npy(header=head, version=(2, 0)))])
    assert read_arrays(path)["x"].shape == (0,)
    rewrite(path, [("x.npy", npy(header=head, version=(9, 0)))])
    refused(path, "")


def test_data_that_follow_an_array_are_refused(tmp_path):
    path = tmp_path / "more.npz"
    rewrite(path, [("x.npy", npy(np.zeros(3)) + b"more")])
    refused(path, "x.npy does not have the length that its header says")


def test_other_members_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    rewrite(path, [("x.npy", npy(np.zeros(3))), ("x.npy", npy(np.ones(3)))])
    refused(path, "two members have the same name")
    rewrite(path, [("x.txt", b"hello")])
    refused(path, "x.txt is not an array")
    rewrite(path, [("x.npy", b"hello")])
    refused(path, "")
    rewrite(path, [(f"{k}.npy", b"") for k in range(10_001)])
    refused(path, "10001 members")
    np.save(tmp_path / "array.npy", np.zeros(3))
    refused(tmp_path / "array.npy", "not a zip file")


@pytest.mark.parametrize(
    "heading",
    [
        np.array("[1]"),
        np.array("{"),
        np.array("[" * 100_000),
        np.array(["{}"]),
        np.array(3),
        np.array(b"{}"),
        np.array("{}", dtype=f"<U{files.MAX_HEADING // 4 + 1}"),
        None,
    ],
    ids=["list", "half", "deep", "array", "number", "bytes", "long", "absent"],
)
def test_a_heading_that_is_none_is_refused(tmp_path, heading):
    path = tmp_path / "arrays.npz"
    np.savez(path, x=np.zeros(3), **({} if heading is None else {"settings": heading}))
    with ArrayFile(path) as file, pytest.raises(ValueError) as caught:
        file.heading("settings")
    assert str(caught.value).startswith(f"path: {os.fspath(path)!r} is damaged or incomplete (")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path, array = tmp_path / "arrays.npz", np.arange(100_000)  # more than a buffer holds
    write_arrays(path, "settings", {}, {"x": array, "one": np.array(7)})
    with ArrayFile(path) as file:
        with open(path, "r+b") as other:
            other.seek(path.read_bytes().index(array.tobytes()) + 600_000)
            other.write(b"?")
        assert file.read("one") == 7
        with pytest.raises(ValueError, match="is damaged or incomplete .*CRC"):
            file.read("x")


def test_an_array_is_what_it_was_when_the_file_was_opened(tmp_path):
    path = tmp_path / "arrays.npz"
    write_arrays(path, "settings", {}, {"x": np.zeros(100_000), "y": np.zeros(100_000)})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"'<f8'", b"'<i8'"))
    with ArrayFile(path) as file:
        assert file.specs["x"] == (np.int64, (100_000,))
        with open(path, "r+b") as other:
            other.write(whole)
        with pytest.raises(ValueError, match="x changed while it was read"):
            file.read("x")


def test_too_little_memory_is_no_damage(path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(np.lib.format, "read_array", full)
    with ArrayFile(path) as file, pytest.raises(MemoryError):
        file.read("x")


def test_part_of_a_dict_of_arrays():
    arrays = {"a.x": 1, "a.b.y": 2, "ab.z": 3, "a": 4}
    assert part_of(arrays, "a") == {"x": 1, "b.y": 2}
    assert part_of(arrays, "c") == {}
