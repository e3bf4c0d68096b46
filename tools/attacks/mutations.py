"""Ways to spoil a file. Every mutation takes a `random.Random` and says in words what it did.

Bytes are spoiled in any file. In array files (`.npz`), tables and agents (safetensors) the content
is spoiled too, and written back so that checksums, lengths and counts are right: such a file was
made by somebody who means harm.
"""

import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Mutation = tuple[bytes, str]  # the file's new content, and what was done

GZIP = b"\x1f\x8b"  # what such a file begins with

JUNK = [
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.5,
    float("nan"), float("inf"), -float("inf"), 1e-300, 1e308, "", "x", "nan", "CartPole-v1",
    "module:Name-v0", "ALE/Pong-v5", "../../x", "\0", "x" * 10_000, [], [[]], [1], [0], [-1],
    [None], ["x"], [1.5], {}, {"x": 1}, [10**9], [10**9, 10**9], [10**5] * 40, [1] * 1000,
    [[1, 2]] * 3,
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2, 3, 50, 127, 255, 256, -128, 2**15, 2**30, -(2**30), 2**31 - 1, -(2**31), 2**53,
    2**62, 2**63 - 1, -(2**63), 0.5, -0.5, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 5e-324,
    1e100, 2e100, 1e38, -0.0,
]  # fmt: skip
CELLS = [
    "", "x", "nan", "NaN", "inf", "-inf", "1e999", "-1", "0", "1.5", "1e5", "9" * 5000, "0x10",
    "1_000", "１", " 1 ", "None", "True", "-0.0", "9223372036854775808", "1e-400", '"', "\0",
    "a,b", "é" * 100, "99999999999", "epsilon", "episode_length", "episode_return", "score",
    "greedy",
]  # fmt: skip
SHAPES = [
    "(1000000000000,)", "(-1,)", "(9223372036854775807, 4)", "(4294967296, 4294967296)", "()",
    "(0,)", "(0, 1000000000000)", "(" * 5000, "(True,)", "(1.5,)", "[3]", "3", "None", "'x'",
    "(1,) * 10**9", "__import__('os').abort()", "(3, 3, 3, 3)",
]  # fmt: skip


# ---------------------------------------------------------------- bytes


def spoil_bytes(data: bytes, rng: random.Random) -> Mutation:
    """Bits flipped, parts cut off, zeroed, removed, doubled, or put at another place."""
    changed = bytearray(data)
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice([1, 2, 8, 100, 1000]))
    kind = rng.choice(
        ["flip", "flip", "flip", "cut", "zero", "remove", "double", "move", "random", "add"]
    )
    if kind == "flip":
        for _ in range(rng.choice([1, 1, 1, 2, 10, 100])):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del changed[start:]
    elif kind == "zero":
        changed[start:end] = bytes(end - start)
    elif kind == "remove":
        del changed[start:end]
    elif kind == "double":
        changed[start:start] = data[start:end]
    elif kind == "move":
        del changed[start:end]
        place = rng.randrange(len(changed) + 1)
        changed[place:place] = data[start:end]
    elif kind == "random":
        changed[start:end] = rng.randbytes(end - start)
    else:
        changed += rng.randbytes(rng.choice([1, 100, 100_000]))
    return bytes(changed), f"bytes: {kind} at {start}"


def anything(data: bytes, rng: random.Random) -> Mutation:
    """Something else altogether, or a bomb."""
    name, content = rng.choice(sorted(others().items()))
    return content, f"it is {name}"


@cache
def others() -> dict[str, bytes]:
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    return {
        "empty": b"",
        "text": b"hello\n",
        "a zip's beginning": b"PK\x03\x04",
        "a zip without members": _zipped([]),
        "an array": array.getvalue(),
        "many members": _zipped([(f"{k}.npy", array.getvalue()) for k in range(20_000)]),
        "a gzip bomb of zeros": gzip_bomb(b"\0"),
        "a gzip bomb of lines": gzip_bomb(b"\n"),
        "a gzip bomb of commas": gzip_bomb(b"# {}\n", b","),
        "a gzip bomb of rows": gzip_bomb(
            b'# {"settings": {}}\narm,seed,measure,at,value\n', b"a,1,b,1,1\n"
        ),
        "a gzip bomb of brackets": gzip_bomb(b"# ", b"["),
        "100,000 brackets": b"# " + b"[" * 100_000 + b"\n",
        "a long number": b"# " + b"9" * 100_000 + b"\n",
        "a huge safetensors heading": struct.pack("<Q", 2**62) + b"{}",
        "a large safetensors heading": struct.pack("<Q", 90_000_000) + b"{}",
        "a pickle": b"\x80\x04cos\nsystem\n(S'false'\ntR.",
    }


def gzip_bomb(start: bytes, repeated: bytes | None = None) -> bytes:
    """About a megabyte that unpacks to more than one gigabyte: a gzip file may have many parts."""
    chunk = (repeated or start) * (2**20 // len(repeated or start))
    return gzip.compress(start) + gzip.compress(chunk) * 1100


# ---------------------------------------------------------------- headings


def spoil_json(value: Any, rng: random.Random) -> tuple[Any, str]:
    """Junk in the place of the whole or of one part, or a part gone, or one too many."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.15:
        junk = rng.choice(JUNK)
        return junk, f"= {str(junk)[:40]!r}"
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    changed = dict(value) if isinstance(value, dict) else list(value)
    kind = rng.random()
    if kind < 0.1:
        del changed[key]
        return changed, f"[{key!r}] gone"
    if kind < 0.15 and isinstance(changed, list):
        return changed * rng.choice([2, 100_000 // len(changed)]), "repeated"
    if kind < 0.15:
        changed[rng.choice(["x", "", "rows", "settings", "seeds"])] = rng.choice(JUNK)
        return changed, "with another key"
    changed[key], said = spoil_json(value[key], rng)
    return changed, f"[{key!r}]{said}"


def spoil_text(text: str, rng: random.Random) -> tuple[str, str]:
    """A JSON text, its content spoiled; sometimes it is no JSON any more."""
    if rng.random() < 0.1:
        junk = rng.choice(
            ["", "{", "[" * 100_000, '{"a":' * 50_000, "9" * 5000, "NaN", "x" * 10**6]
        )
        return junk, f"heading {junk[:20]!r}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # it is spoiled already
        return text + "}", "heading with another bracket"
    changed, said = spoil_json(value, rng)
    return json.dumps(changed), f"heading{said}"


# ---------------------------------------------------------------- array files


def npz_members(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data)) as file:
        return dict(file)


def _npy(array: np.ndarray, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=pickled)
    return file.getvalue()


def _zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members:
            # The module would warn of two members with the same name.
            archive.NameToInfo.pop(name, None)
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def spoil_npz(data: bytes, rng: random.Random, heading: str) -> Mutation:
    """Members changed, missing, doubled, compressed; numbers, shapes, types; the heading."""
    arrays = npz_members(data)
    said = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.12:
            text, what = spoil_text(str(arrays[heading]), rng)
            arrays[heading] = np.array(text)
        else:
            name = rng.choice([name for name in arrays if name != heading])
            arrays[name], what = spoil_array(arrays[name], rng)
            what = f"{name} {what}"
        said.append(what)
        if heading not in arrays or len(arrays) < 2:
            break
    pickled = any(array.dtype.hasobject for array in arrays.values())
    members = [(f"{name}.npy", _npy(array, pickled)) for name, array in arrays.items()]
    if rng.random() < 0.25:
        members, what = _spoil_members(members, rng)
        said.append(what)
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.03 else zipfile.ZIP_STORED
    return _zipped(members, compression), "; ".join(said)


def spoil_array(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    """Other numbers, another shape, or another type."""
    kind = rng.random()
    if array.dtype.names and kind < 0.7:
        changed, name = array.copy(), rng.choice(array.dtype.names)
        if changed[name].dtype == np.bool_ and changed.size:
            raw = np.array(changed[name]).view(np.uint8)
            raw.flat[rng.randrange(raw.size)] = rng.choice([0, 1, 2, 255])
            changed[name] = raw.view(np.bool_)
            changed.view(np.uint8).reshape(*changed.shape, -1)[
                ..., changed.dtype.fields[name][1]
            ] = raw
            return changed, f"{name} has another byte"
        changed[name], said = _other_numbers(changed[name], rng)
        return changed, f"{name} {said}"
    if kind < 0.6:
        return _other_numbers(array, rng)
    if kind < 0.85:
        return _other_shape(array, rng)
    return _other_type(array, rng)


def _other_numbers(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    changed = array.copy()
    if not changed.size or changed.dtype.kind not in "iufb":
        return np.zeros_like(changed), "is zeros"
    if rng.random() < 0.2:
        np.random.default_rng(rng.randrange(2**32)).shuffle(changed.reshape(-1))
        return changed, "is shuffled"
    value = rng.choice(NUMBERS)
    with np.errstate(all="ignore"):
        number = np.array(value).astype(changed.dtype, casting="unsafe")
        if rng.random() < 0.3:
            changed[...] = number
            return changed, f"is {number} everywhere"
        places = [rng.randrange(changed.size) for _ in range(rng.choice([1, 1, 3]))]
        if changed.dtype.kind in "iuf" and rng.random() < 0.3:  # a little aside
            step = np.array(rng.choice([1, -1])).astype(changed.dtype, casting="unsafe")
            changed.reshape(-1)[places] += step
            return changed, f"{places} is one more or less"
        changed.reshape(-1)[places] = number
    return changed, f"{places} = {number}"


def _other_shape(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    ways: list[Callable[[], np.ndarray]] = [
        lambda: array[:-1] if array.ndim else array.reshape(1),
        lambda: np.concatenate([array, array]) if array.ndim else array.reshape(1, 1),
        lambda: array.T,
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[:0] if array.ndim else array.reshape(1),
        lambda: array[:, :0] if array.ndim > 1 else array[None],
        lambda: array[:, :-1] if array.ndim > 1 else array[None],
        lambda: np.concatenate([array, array], axis=1) if array.ndim > 1 else array[None],
        lambda: array.reshape(-1)[0] if array.size else array,
        lambda: (
            np.resize(array, (200_000, *array.shape[1:])) if array.ndim and array.size else array
        ),
        lambda: np.asfortranarray(array),
    ]
    changed = np.asarray(rng.choice(ways)())
    return changed, f"has the shape {changed.shape}"


def _other_type(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    plain = array
    if array.dtype.names:
        plain = array[rng.choice(array.dtype.names)]
    kind = rng.choice(
        ["<i4", ">i8", "<u8", "<f4", ">f8", "<f2", "<c16", "?", "<U3", "S3", "O", "M8[s]", "V8"]
    )
    with np.errstate(all="ignore"):
        try:
            changed = plain.astype(kind, casting="unsafe")
        except (ValueError, TypeError):
            changed = np.zeros(array.shape, kind)
    return changed, f"has the type {changed.dtype}"


def _spoil_members(
    members: list[tuple[str, bytes]], rng: random.Random
) -> tuple[list[tuple[str, bytes]], str]:
    members = list(members)
    number = rng.randrange(len(members))
    name, content = members[number]
    kinds = "missing, extra, huge extra, double, renamed, swapped, shape, shape, header, path"
    kind = rng.choice(kinds.split(", "))
    if kind == "missing":
        del members[number]
    elif kind == "extra":
        members.append((rng.choice(["x.npy", "x", ".npy", "settings", "rows.npy"]), content))
    elif kind == "huge extra":
        members.append(("extra.npy", _npy(np.zeros(10**6))))
    elif kind == "double":
        members.append((name, members[rng.randrange(len(members))][1]))
    elif kind == "renamed":
        members[number] = (name.upper(), content)
    elif kind == "swapped":
        other = rng.randrange(len(members))
        members[number], members[other] = (name, members[other][1]), (members[other][0], content)
    elif kind == "path":
        members[number] = ("../" + name, content)
    else:
        shape = rng.choice(SHAPES)
        dtype = rng.choice(["<f8", "<i8", "|O", "<U1000000000", "|V0", "x", "<M8[s]"])
        if kind == "shape":
            dtype = rng.choice(["<f8", "<i8", "|u1"])
        members[number] = (name, _npy_with_header(dtype, shape, content[128:]))
        kind = f"{dtype} {shape[:30]} says the header of"
    return members, f"{name} {kind}"


def _npy_with_header(dtype: str, shape: str, content: bytes) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = header.ljust(118, b" ")[: 2**16 - 2] + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


# ---------------------------------------------------------------- tables


def spoil_table(data: bytes, rng: random.Random) -> Mutation:
    """The heading, column names, rows and cells; mostly the number of rows is made right."""
    packed = data[:2] == GZIP
    lines = (gzip.decompress(data) if packed else data).decode().split("\n")
    heading, columns, rows = lines[0].removeprefix("# "), lines[1], lines[2:-1]
    said = []
    for _ in range(rng.choice([1, 1, 2, 4])):
        kind = rng.choice(["heading", "heading", "cell", "cell", "cell", "row", "columns", "text"])
        number = rng.randrange(len(rows)) if rows else 0
        if kind == "heading":
            heading, what = spoil_text(heading, rng)
            said.append(what)
        elif kind == "cell" and rows:
            cells = rows[number].split(",")
            place = rng.randrange(len(cells))
            cells[place] = rng.choice(CELLS)
            rows[number] = ",".join(cells)
            said.append(f"row {number}: {rows[number][:60]!r}")
        elif kind == "row" and rows:
            said.append(f"row {number} {_spoil_row(rows, number, rng)}")
        elif kind == "columns":
            columns = rng.choice([columns.upper(), columns + ",x", "", columns.replace(",", ";")])
            said.append(f"columns {columns!r}")
        elif kind == "text":
            junk = rng.choice(
                ['"', "\0", "\r", "\ufeff", '"\n"', "," * 10_000, "x" * 200_000, "\u2028"]
            )
            rows.insert(number, junk)
            said.append(f"row {number} is {junk[:10]!r}")
    if rng.random() < 0.7:
        heading = _with_rows(heading, len(rows))
    text = "\n".join([f"# {heading}", columns, *rows, ""]).encode()
    return gzip.compress(text, 1, mtime=0) if packed else text, "; ".join(said)


def _spoil_row(rows: list[str], number: int, rng: random.Random) -> str:
    way = rng.choice(["gone", "double", "swapped", "longer", "shorter", "empty", "all gone"])
    other = rng.randrange(len(rows))
    if way == "gone":
        del rows[number]
    elif way == "double":
        rows.insert(other, rows[number])
    elif way == "swapped":
        rows[number], rows[other] = rows[other], rows[number]
    elif way == "longer":
        rows[number] += ",1"
    elif way == "shorter":
        rows[number] = rows[number].rpartition(",")[0]
    elif way == "empty":
        rows[number] = ""
    else:
        rows.clear()
    return way


def _with_rows(heading: str, rows: int) -> str:
    try:
        value = json.loads(heading)
    except (ValueError, RecursionError):
        return heading
    return json.dumps(value | {"rows": rows}) if isinstance(value, dict) else heading


# ---------------------------------------------------------------- agents


def spoil_agent(data: bytes, rng: random.Random) -> Mutation:
    """What a safetensors file says about itself and its tensors, and the numbers in these."""
    length = struct.unpack("<Q", data[:8])[0]
    heading, numbers = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    facts = heading["__metadata__"]
    kind = rng.choice(
        ["fact", "fact", "fact", "fact", "tensor", "tensor", "numbers", "metadata", "large"]
    )
    if kind == "fact":
        name = rng.choice(list(facts))
        facts[name], said = spoil_text(facts[name], rng)
        said = f"{name}: {said}"
    elif kind == "large":
        said = f"large {_enlarge(facts, rng)}"
    elif kind == "metadata":
        facts.pop(rng.choice(list(facts)))
        if rng.random() < 0.3:
            heading["__metadata__"] = rng.choice([None, {}, {"config": "{}"}])
        said = "a fact is missing"
    elif kind == "numbers":
        values = np.frombuffer(numbers, np.float32).copy()
        values, said = _other_numbers(values, rng)
        numbers = bytearray(values.tobytes())
    else:
        name = rng.choice([name for name in heading if name != "__metadata__"])
        if rng.random() < 0.3:
            del heading[name]
            said = f"{name} is missing"
        else:
            heading[name], said = spoil_json(heading[name], rng)
            said = f"{name}{said}"
    text = json.dumps(heading).encode()
    return struct.pack("<Q", len(text)) + text + bytes(numbers), said


def _enlarge(facts: dict[str, str], rng: random.Random) -> str:
    """Let an agent's facts say more than its file holds; returns which of them."""
    config, seeds = json.loads(facts["config"]), json.loads(facts["seeds"])
    which = rng.choice(["hidden", "seeds", "inputs", "actions", "layers", "all"])
    if which in ("hidden", "all"):
        config["hidden"] = [60_000, 60_000]
    if which == "layers":
        config["hidden"] = [4] * 100_000
    if which in ("seeds", "all"):
        seeds = list(range(3_000_000))
    if which in ("inputs", "all"):
        facts["observation_shape"] = json.dumps(rng.choice([[10**9], [10**5] * 9, [1] * 100_000]))
    if which in ("actions", "all"):
        facts["actions"] = json.dumps(10**9)
    facts |= {"config": json.dumps(config), "seeds": json.dumps(seeds)}
    return which
