"""Files that are the old one or the new one; arrays that are compared before they are read."""

import gzip
import io
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
from platforms import posix_only

from per_tutorial.common.files import (
    atomic_write,
    check_writable,
    copy_arrays,
    open_arrays,
    part_of,
    require_like,
    write_arrays,
    write_table,
)


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
def test_whether_a_file_could_be_written_is_said_beforehand(tmp_path, monkeypatch):
    check_writable(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"old")
    check_writable(tmp_path / "file", "--out")
    monkeypatch.chdir(tmp_path)
    check_writable("file")
    assert os.listdir(tmp_path) == ["file"]
    (tmp_path / "link").symlink_to(tmp_path / "absent" / "file")
    no_folder = tmp_path / "absent" / "file", tmp_path / "file" / "x", tmp_path / "link"
    for path in no_folder:
        with pytest.raises(FileNotFoundError, match=f"^--out: there is no folder for '{path}'$"):
            check_writable(path, "--out")
    for path in (tmp_path, "", "/dev/null"):  # a device would be replaced by a file
        with pytest.raises(FileExistsError, match="^path: must be a file, got '.*'$"):
            write(path)
    monkeypatch.setattr(os, "access", lambda path, how: False)
    with pytest.raises(PermissionError, match="^--out: '.*/file' cannot be written$"):
        check_writable(tmp_path / "file", "--out")


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_a_table_has_its_form_and_the_same_content_makes_the_same_bytes(name, tmp_path):
    path = tmp_path / name
    rows = [(0, 0.0), ("b, c", 1 / 3)]
    write_table(path, {"rows": 9, "seeds": (1, 2)}, ("x", "y"), iter(rows))
    before = path.read_bytes()
    text = gzip.decompress(before) if name.endswith("gz") else before
    assert text == b'# {"rows": 2, "seeds": [1, 2]}\nx,y\n0,0.0\n"b, c",0.3333333333333333\n'
    write_table(path, {"rows": 9, "seeds": (1, 2)}, ("x", "y"), rows)
    assert path.read_bytes() == before
    if name.endswith("gz"):
        assert before[4:8] == bytes(4)  # gzip's time of writing
    with pytest.raises(TypeError, match="JSON"):
        write_table(path, {"made of": object()}, ("x", "y"), rows)
    assert path.read_bytes() == before


# ---------------------------------------------------------------- arrays

ARRAYS = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "part": np.arange(20).reshape(4, 5)[:, :3],
    "rows": np.zeros(3, [("a", "i1"), ("b", "f8")]),
    "empty": np.empty((0, 4), np.uint8),
    "scalar": np.array(7),
    "columns": np.arange(6.0).reshape(2, 3, order="F"),
}


@pytest.fixture
def path(tmp_path):
    write_arrays(tmp_path / "file.npz", {"what": "a test"}, ARRAYS)
    return tmp_path / "file.npz"


def test_what_is_read_is_what_was_written(path):
    with open_arrays(path) as (heading, arrays):
        assert heading == {"what": "a test"} and list(arrays) == list(ARRAYS)
        for name, array in ARRAYS.items():
            found = np.asarray(arrays[name])
            assert found.dtype == array.dtype and found.tolist() == array.tolist()


def test_the_file_is_one_that_numpy_reads(path):
    with np.load(path, allow_pickle=False) as file:
        assert file["part"].tolist() == ARRAYS["part"].tolist()


def test_arrays_are_read_into_place_even_in_parts(path):
    place = np.zeros((4, 9), int)
    with open_arrays(path) as (_, arrays):
        require_like({"part": place[:, 2:5]}, arrays)
        copy_arrays({"part": place[:, 2:5]}, arrays)
    assert place[:, 2:5].tolist() == ARRAYS["part"].tolist()
    assert not place[:, :2].any() and not place[:, 5:].any()


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"other": np.zeros(3)}, "must have other, got numbers"),
        ({"numbers": np.zeros((3, 2))}, r"numbers must be float64 of the shape \(3, 2\), got"),
        ({"numbers": np.zeros((2, 3), "f4")}, "must be float32 .* got float64"),
    ],
)
def test_other_arrays_are_refused(path, own, said):
    with open_arrays(path) as (_, arrays), pytest.raises(ValueError, match=f"^state: .*{said}"):
        require_like(own, arrays)


@pytest.mark.slow
def test_every_flipped_bit_is_noticed_or_means_nothing(path):
    data = path.read_bytes()
    for place in range(0, len(data), 3):
        changed = bytearray(data)
        changed[place] ^= 4
        path.write_bytes(changed)
        try:
            with open_arrays(path) as (heading, arrays):
                found = {name: np.asarray(array).tolist() for name, array in arrays.items()}
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert heading == {"what": "a test"}
            wanted = {name: array.tolist() for name, array in ARRAYS.items()}
            assert all(found[name] == wanted[name] for name in found if name in wanted)


def test_a_missing_and_a_foreign_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="^path: no file"), open_arrays(tmp_path / "none"):
        pass
    np.savez(tmp_path / "other.npz", settings=np.array([{}], dtype=object))  # a pickle
    for content in (None, b"", b"PK", b"hello"):
        if content is not None:
            (tmp_path / "other.npz").write_bytes(content)
        with (
            pytest.raises(ValueError, match="damaged, or is not such a file"),
            open_arrays(tmp_path / "other.npz"),
        ):
            pass


def test_part_of_a_dict_of_arrays():
    arrays = {"a.x": 1, "a.b.y": 2, "ab.z": 3, "a": 4}
    assert part_of(arrays, "a") == {"x": 1, "b.y": 2}
    assert part_of(arrays, "c") == {}


def test_data_of_another_size_than_they_claim_are_noticed_before_any_is_used(tmp_path):
    path, header = tmp_path / "file.npz", io.BytesIO()
    claimed = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_2_0(header, claimed)
    write_arrays(path, {}, {})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("large.npy", header.getvalue() + bytes(8))
    with pytest.raises(ValueError, match="large is not an array"), open_arrays(path):
        pytest.fail("it was opened")
