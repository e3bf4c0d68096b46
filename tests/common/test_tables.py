"""Tables: written and read again to the last bit, whatever version wrote them; the rest is
refused.
"""

import gzip
import os
from pathlib import Path

import pytest

from per_tutorial.common.tables import read_table, write_table

COLUMNS = ("name", "at", "value")
ROWS = [["a", "1", "0.5"], ["b, c", "2", "nan"], ["", "3", "-1e-300"]]
RESULTS = Path(__file__).resolve().parents[2] / "notebooks" / "results"
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(params=["table.csv", "table.csv.gz"])
def path(request, tmp_path):
    path = tmp_path / request.param
    write_table(path, {"study": "β"}, COLUMNS, ROWS)
    return path


def text_of(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def overwrite(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def assert_refused(path, said=""):
    with pytest.raises(ValueError) as caught:
        read_table(path, COLUMNS)
    assert str(caught.value).startswith(f"path: {os.fspath(path)!r} holds no results (")
    assert said in str(caught.value)


def test_what_is_read_is_what_was_written(path):
    assert read_table(path, COLUMNS) == ({"study": "β", "rows": 3}, ROWS)
    assert read_table(os.fspath(path), list(COLUMNS))[1] == ROWS


def test_the_form_of_the_file(tmp_path):
    path = tmp_path / "table.csv"
    write_table(path, {"rows": 9, "seeds": (1, 2)}, ("x", "y"), ((k, k / 4) for k in range(2)))
    assert path.read_bytes() == b'# {"rows": 2, "seeds": [1, 2]}\nx,y\n0,0.0\n1,0.25\n'


def test_the_same_content_makes_the_same_bytes(path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr("time.time", lambda: 1e9)
    write_table(path, {"study": "β"}, COLUMNS, ROWS)
    assert path.read_bytes() == before
    if path.suffix == ".gz":
        assert before[4:8] == bytes(4)  # gzip's time of writing


def test_tables_of_version_0_1_0_are_written_as_they_were(tmp_path):
    """Studies and histories come out byte for byte; the compressed ones may differ by zlib's
    version.
    """
    columns = {
        RESULTS / "pong.csv.gz": ("arm", "seed", "measure", "at", "value"),
        DATA / "history-0.1.0.csv": ("seed", "step", "measure", "value"),
    }
    for old, names in columns.items():
        heading, rows = read_table(old, names)
        assert heading["rows"] == len(rows) > 0
        new = tmp_path / old.name
        write_table(new, heading, names, rows)
        assert text_of(new) == text_of(old)


def test_a_heading_may_be_silent_about_the_rows():
    """As it is in the Blind Cliffwalk's file of version 0.1.0."""
    names = ("figure", "n", "sampler", "alpha", "run", "updates", "seconds")
    heading, rows = read_table(RESULTS / "cliffwalk.csv", names)
    assert heading["settings"]["runs"] == 10
    assert len(rows) == 1850


def test_line_ends_of_windows_are_read_too(path):
    overwrite(path, text_of(path).replace("\n", "\r\n"))
    assert read_table(path, COLUMNS)[1] == ROWS


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    for absent in (tmp_path / "absent.csv", tmp_path / "absent.csv.gz", tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            read_table(absent, COLUMNS)
        assert str(caught.value) == f"path: no file {os.fspath(absent)!r}"


def test_a_file_cut_short_anywhere_is_refused(path):
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert_refused(path)


def test_a_flipped_bit_in_a_compressed_file_is_noticed(tmp_path):
    path = tmp_path / "table.csv.gz"
    write_table(path, {}, COLUMNS, ROWS)
    whole = path.read_bytes()
    unnoticed = []
    for place in range(10, len(whole)):  # the first ten bytes are gzip's own heading
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            assert read_table(path, COLUMNS)[1] == ROWS
            unnoticed.append(place)
        except ValueError as error:
            assert "holds no results" in str(error)
    assert len(unnoticed) <= 1  # the bits that fill up the last byte of the data mean nothing


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "the last line is not whole"),
        ("\n", "the first line is not a heading"),
        ("name,at,value\na,1,2\n", "the first line is not a heading"),
        ("# {}\n", "the columns are"),
        ("# {}\nname,value,at\na,1,2\n", "the columns are name, value, at"),
        ("# []\nname,at,value\n", "is not a JSON object"),
        ("# 7\nname,at,value\n", "is not a JSON object"),
        ("# null\nname,at,value\n", "is not a JSON object"),
        ("# {\nname,at,value\n", "Expecting"),
        ("# " + "[" * 100_000 + "\nname,at,value\n", "recursion"),
        ('# {"rows": 2}\nname,at,value\na,1,2\n', "1 of 2 rows"),
        ('# {"rows": "1"}\nname,at,value\na,1,2\n', "1 of 1 rows"),
        ('# {"rows": null}\nname,at,value\na,1,2\n', "1 of None rows"),
        ("# {}\nname,at,value\na,1,2\na,1\n", "row 2 has 2 of 3 values"),
        ("# {}\nname,at,value\na,1,2,3\n", "row 1 has 4 of 3 values"),
        ("# {}\nname,at,value\n\n", "row 1 has 0 of 3 values"),
        ("# {}\nname,at,value\n" + "x" * 200_000 + ",1,2\n", "field larger"),
        (b"# {}\nname,at,value\n\xff,1,2\n", "decode"),
    ],
)
def test_what_is_no_table_is_refused(path, text, said):
    overwrite(path, text)
    assert_refused(path, said)


def test_a_table_that_cannot_be_written_leaves_the_old_one(path):
    before = path.read_bytes()

    def rows():
        yield ROWS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(path, {}, COLUMNS, rows())
    with pytest.raises(TypeError, match="JSON"):
        write_table(path, {"made of": object()}, COLUMNS, ROWS)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
