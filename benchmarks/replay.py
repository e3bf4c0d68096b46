"""Replay speed: prioritised and uniform replay beside every peer, and beside what memory allows.

    make bench ARGS=replay

Work: full buffers of N transitions, α = 0.6, β = 0.4, every transition with a TD error of its own.
As in training, every `sample` of B transitions is followed by an `update` of the same ones with new
TD errors; one transition and blocks of 256 are added. A step is what an agent does at each of its
steps: one transition is added, B are sampled, and (prioritised) the same B are updated. The buffers
of one capacity and kind have a process of their own, with one thread. In a round every contestant
works for a block of fixed time, in turns, and its median time in the block counts; ratios are taken
within a round (`benchmarks/harness.py`). What each is given and returns is in
`benchmarks/buffers.py`.

Writes docs/replay_speed.json (all numbers), .md (tables) and .png (time against N), and the summary
in docs/speed.md; --redraw makes the last three from the first.
"""

import gc
import itertools
import json
import re
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.buffers import CONTESTANTS, Limit, Ours, filled, transitions
from benchmarks.harness import ROOT, alternate, exponent, machine, ratio, ratios
from per_tutorial.notebook import COLORS, use_style

PAGE = ROOT / "docs" / "speed.md"  # with the summary
OURS, LIMIT = Ours.name, Limit.name
ROWS = {"4 floats": ((4,), np.float32), "Atari frames": ((4, 84, 84), np.uint8)}
OPERATIONS = {
    "prioritized": ("step", "sample + update", "sample", "update", "add one", "add 256"),
    "uniform": ("step", "sample", "add one", "add 256"),
}
ADDED = 256  # transitions in an added block
SHOWN = 256  # the minibatch of the picture


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    sizes: tuple = (10**3, 10**4, 10**5, 10**6, 10**7)
    batches: tuple = (32, 256, 1024)
    atari_size: int = 10**4
    rounds: int = 11
    block: float = 0.03  # seconds that a contestant works in each round
    alone: bool = True  # each capacity and kind in a process of its own


QUICK = Plan(sizes=(10**3, 10**4), atari_size=300, rounds=2, block=0.005, alone=False)

# One look for each contestant: a colour that colour-blind readers can tell apart, and a marker.
LOOKS = {
    OURS: (COLORS["per"], "o", "-"),
    LIMIT: (COLORS["quiet"], "", "--"),
    "cpprb": (COLORS["uniform"], "s", "-"),
    "tianshou": (COLORS["weight"], "^", "-"),
    "Stable-Baselines3": (COLORS["rank"], "D", "-"),
    "torchrl": (COLORS["return"], "v", "-"),
}


# Measuring ----------------------------------------------------------------------------------------


def replayed(buffer, prioritized, td_errors, seconds):
    """{operation: µs} of samples, each followed by the update of what was drawn.

    `td_errors` (n, B) are used in turn; there are as many draws in a minibatch.
    """
    errors = itertools.cycle(td_errors)
    sampling, updating = [], []
    for _ in _until(seconds):
        start = time.perf_counter()
        batch = buffer.sample(td_errors.shape[1])
        sampling.append(time.perf_counter() - start)
        if prioritized:
            indices, new = buffer.indices(batch), next(errors)
            start = time.perf_counter()
            buffer.update(indices, new)
            updating.append(time.perf_counter() - start)
    sample = _microseconds(sampling)
    if not prioritized:
        return {"sample": sample}
    update = _microseconds(updating)
    return {"sample + update": sample + update, "sample": sample, "update": update}


def stepped(buffer, prioritized, columns, td_errors, seconds):
    """{operation: µs} of whole steps: add one of `columns`, sample, update what was drawn."""
    transition = itertools.cycle(list(zip(*columns, strict=True)))
    errors = itertools.cycle(td_errors)
    times = []
    for _ in _until(seconds):
        fields, new = next(transition), next(errors)
        start = time.perf_counter()
        buffer.add(*fields)
        batch = buffer.sample(td_errors.shape[1])
        if prioritized:
            buffer.update(buffer.indices(batch), new)
        times.append(time.perf_counter() - start)
    return {"step": _microseconds(times)}


def added(buffer, columns, seconds):
    """{operation: µs} of adding the transitions in `columns` one by one, and all at once."""
    transition = itertools.cycle(list(zip(*columns, strict=True)))
    single, together = [], []
    for _ in _until(seconds):
        fields = next(transition)
        start = time.perf_counter()
        buffer.add(*fields)
        single.append(time.perf_counter() - start)
    for _ in _until(seconds):
        start = time.perf_counter()
        buffer.extend(*columns)
        together.append(time.perf_counter() - start)
    return {"add one": _microseconds(single), f"add {ADDED}": _microseconds(together)}


def _until(seconds):
    """Repeat until the time is over; at least three times."""
    end = time.perf_counter() + seconds
    repeats = 0
    while repeats < 3 or time.perf_counter() < end:
        repeats += 1
        yield


def _microseconds(times):
    """The median: what other processes take from us now and then does not count."""
    return 1e6 * statistics.median(times)


def measure(plan):
    """A list of cells: what was measured, and {contestant: [µs in each round]}."""
    cells = []
    work = [("4 floats", size) for size in plan.sizes] + [("Atari frames", plan.atari_size)]
    for (rows, size), kind in itertools.product(work, OPERATIONS):
        print(f"{kind} replay, {rows}, N = {size:,}", flush=True)
        if plan.alone:  # what earlier buffers left of the heap would slow down some contestants
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                cells += pool.submit(measure_buffers, plan, rows, size, kind).result()
        else:
            cells += measure_buffers(plan, rows, size, kind)
    return cells


def measure_buffers(plan, rows, size, kind):
    """The cells of one kind of rows, one capacity and one kind of replay."""
    shape, dtype = ROWS[rows]
    prioritized = kind == "prioritized"
    buffers = {
        each.name: filled(each, size, shape, dtype, prioritized)
        for each in CONTESTANTS
        if kind in each.kinds and each.installed()
    }
    cells = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # nobody else uses more
    gc.collect()
    gc.disable()

    def in_turns(batch, work):
        """Measure `work`, a function of a buffer, for all of them, and note the results."""
        turns = {name: lambda buffer=buffer: work(buffer) for name, buffer in buffers.items()}
        results = alternate(turns, plan.rounds)
        for operation in results[OURS][0]:
            times = {
                name: [round(result[operation], 3) for result in rounds]
                for name, rounds in results.items()
            }
            setting = {"rows": rows, "kind": kind, "size": size, "batch": batch}
            cells.append({**setting, "operation": operation, "times": times})

    random = np.random.default_rng(0)
    for batch in plan.batches:
        if batch <= size:
            errors = random.standard_normal((64, batch), dtype=np.float32)
            in_turns(batch, lambda b, e=errors: replayed(b, prioritized, e, plan.block))
    # Last, since new transitions all have the same priority.
    columns = transitions(np.arange(ADDED), shape, dtype)
    for batch in plan.batches:
        if batch <= size:
            errors = random.standard_normal((64, batch), dtype=np.float32)
            in_turns(batch, lambda b, e=errors: stepped(b, prioritized, columns, e, plan.block))
    in_turns(None, lambda buffer: added(buffer, columns, plan.block))
    gc.enable()
    torch.set_num_threads(threads)
    return cells


# Reporting ----------------------------------------------------------------------------------------


class Results:
    """The measured cells, and what is read from them."""

    def __init__(self, data):
        self.machine, self.rounds, self.cells = data["machine"], data["rounds"], data["cells"]

    def select(self, **wanted):
        """Cells in which each named setting has the wanted value."""
        return [c for c in self.cells if all(c[key] == value for key, value in wanted.items())]

    def curve(self, name, axis, **wanted):
        """(values of the setting `axis`, median µs) of a contestant over cells that fit."""
        cells = [cell for cell in self.select(**wanted) if name in cell["times"]]
        return [c[axis] for c in cells], [statistics.median(c["times"][name]) for c in cells]

    def exponents(self, name, kind, operation):
        """Growth with N (at the middle batch) and with B (at the largest N): two exponents."""
        wanted = {"rows": "4 floats", "kind": kind, "operation": operation}
        sampled = self.select(**wanted)
        batches = sorted({cell["batch"] for cell in sampled})
        size = max(cell["size"] for cell in sampled)
        with_size = exponent(*self.curve(name, "size", batch=batches[len(batches) // 2], **wanted))
        return with_size, exponent(*self.curve(name, "batch", size=size, **wanted))


def contestants(cells):
    """Names in the order of the tables: ours, the limit, the peers."""
    return [each.name for each in CONTESTANTS if each.name in cells[0]["times"]]


def microseconds(time):
    return f"{time:.1f}" if time < 100 else f"{time:,.0f}"


def times_ours(cell, name):
    return f"· ×{ratio(cell['times'][name], cell['times'][OURS])}"


def table(cells):
    """Markdown: a row for each cell; the time of each contestant, and as a multiple of ours."""
    names = contestants(cells)
    lines = [_row(["N", "B", *names]), _row(["--:"] * (2 + len(names)))]
    for cell in cells:
        entries = [f"{cell['size']:,}", str(cell["batch"] or "")]
        for name in names:
            entry = microseconds(statistics.median(cell["times"][name]))
            entries.append(entry if name == OURS else f"{entry} {times_ours(cell, name)}")
        lines.append(_row(entries))
    return lines


def summary(results):
    """Markdown: what an agent does, at the two usual sizes of buffer and minibatch."""
    lines = []
    for kind, operation, rows in (
        ("prioritized", "step", "4 floats"),
        ("prioritized", "step", "Atari frames"),
        ("uniform", "step", "4 floats"),
        ("prioritized", "sample + update", "4 floats"),
    ):
        cells = [
            cell
            for cell in results.select(rows=rows, kind=kind, operation=operation)
            if cell["size"] in (10**4, 10**6) and cell["batch"] in (32, 256)
        ]
        peers = [n for n in contestants(results.select(kind=kind)) if n not in (OURS, LIMIT)]
        title = f"{operation}, {kind}, {rows}"
        header = [title, f"{OURS}, µs", f"times the {LIMIT}", *peers]
        lines += ["", _row(header), _row(["---"] + ["--:"] * (len(header) - 1))]
        for cell in cells:
            ours = cell["times"][OURS]
            entries = [f"N = {cell['size']:,}, B = {cell['batch']}"]
            entries.append(microseconds(statistics.median(ours)))
            entries.append(f"{ratios(ours, cell['times'][LIMIT])[0]:.1f}")
            entries += [f"×{ratios(cell['times'][name], ours)[0]:.1f}" for name in peers]
            lines.append(_row(entries))
    return lines[1:]


def growth(results):
    """Markdown: the exponents of N and B."""
    lines = []
    for kind, operation in (("prioritized", "sample + update"), ("uniform", "sample")):
        names = contestants(results.select(kind=kind))
        fits = [results.exponents(name, kind, operation) for name in names]
        lines += ["", _row([f"{kind}, {operation}", *names]), _row(["---"] * (1 + len(names)))]
        lines.append(_row(["N", *(f"{with_size:.2f}" for with_size, _ in fits)]))
        lines.append(_row(["B", *(f"{with_batch:.2f}" for _, with_batch in fits)]))
    return lines


def bytes_touched(results):
    """Markdown: what one sample and its update must move, with a binary tree of 8-byte sums."""
    header = ["rows", "N", "B", "rows, read and written out", "lines of the tree, read and written"]
    lines = [_row(header), _row(["---"] + ["--:"] * 4)]
    for cell in results.select(kind="prioritized", operation="update", batch=SHOWN):
        size, batch = cell["size"], cell["batch"]
        row = Limit(1, *ROWS[cell["rows"]], True).rows.itemsize
        # Eight sums are a line of 64 bytes; no level has more lines than that, nor more than draws.
        levels = (2**level for level in range((size - 1).bit_length() + 1))
        touched = sum(min(batch, -(-nodes // 8)) for nodes in levels)
        moved = (f"{2 * each / 1024:,.0f} KiB" for each in (batch * row, touched * 64))
        lines.append(_row([cell["rows"], f"{size:,}", str(batch), *moved]))
    return lines


def _row(entries):
    return f"| {' | '.join(entries)} |"


def report(results):
    """The text of replay_speed.md."""
    lines = [
        "# Replay speed",
        "",
        "Written by `make bench` (`benchmarks/replay.py`, which describes the work).",
        f"Medians over {results.rounds} rounds, in µs, on {results.machine}.",
        f"×: as a multiple of {OURS}'s time, median and range of the ratio within a round.",
        f"“{LIMIT}”: NumPy copies rows at given indices, and writes one number for each,",
        "without drawing, weights, sums or checks. Cells with B > N are left out.",
        "",
        "![Time against the number of stored transitions](replay_speed.png)",
        "",
        *summary(results),
    ]
    for rows, (kind, operations) in itertools.product(ROWS, OPERATIONS.items()):
        for operation in operations:
            cells = results.select(rows=rows, kind=kind, operation=operation)
            lines += ["", f"## {kind}, {rows}: {operation}", "", *table(cells)]
    lines += [
        "",
        "## How the cost grows",
        "",
        "The exponent k of time ∝ Nᵏ at the middle B, and ∝ Bᵏ at the largest N: rows of 4 floats.",
        *growth(results),
        "",
        "## Bytes touched",
        "",
        "What one sample and its update move: the rows, and at most this much of a binary tree of "
        "sums,",
        "in lines of 64 bytes. Each line counts once, since all draws share the upper levels.",
        "",
        *bytes_touched(results),
    ]
    return "\n".join(lines) + "\n"


def plot(results, path):
    """Time against N, both axes logarithmic: prioritised and uniform replay side by side."""
    use_style()
    figure = Figure(figsize=(9.6, 4.4))
    panels = (("prioritized", "sample + update"), ("uniform", "sample"))
    for axes, (kind, operation) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
        wanted = {"rows": "4 floats", "kind": kind, "operation": operation, "batch": SHOWN}
        for name in contestants(results.select(**wanted)):
            color, marker, style = LOOKS[name]
            axes.loglog(
                *results.curve(name, "size", **wanted),
                color=color,
                marker=marker,
                linestyle=style,
                label=name,
            )
        axes.set_title(f"{kind}: {operation}, B = {SHOWN}")
        axes.set_xlabel("transitions stored, N")
        axes.set_ylabel("time (µs)")
        axes.label_outer()
    # Every contestant takes part in the last panel.
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(path, metadata={"Software": None})


def published(page, results):
    """docs/speed.md with the summary between its two marks."""
    picture = "![Time of prioritised and uniform replay against N](replay_speed.png)"
    lines = [picture, "", *summary(results), "", f"On {results.machine}."]
    marks = r"(<!-- replay speed: written by make bench -->\n).*?(<!-- end of replay speed -->)"
    text, count = re.subn(marks, lambda m: m[1] + "\n".join(lines) + "\n" + m[2], page, flags=re.S)
    if count != 1:
        raise ValueError(
            f"docs/speed.md: must have the marks of the replay speed once, has {count}"
        )
    return text


def dump(data):
    """JSON with one line for each cell, so that versions can be compared."""
    lines = ",\n".join(json.dumps(cell) for cell in data["cells"])
    head = json.dumps({key: value for key, value in data.items() if key != "cells"})
    return f'{head[:-1]}, "cells": [\n{lines}\n]}}\n'


def run(folder, *, quick=False, redraw=False):
    """Measure (or read what was measured) and write the report into `folder`."""
    raw = folder / "replay_speed.json"
    if not redraw:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as `measure_buffers` does
        plan = QUICK if quick else Plan()
        packages = ["torch", "numpy", "numba"] + [each.distribution for each in CONTESTANTS]
        data = {"machine": machine(dict.fromkeys(packages)), "rounds": plan.rounds}
        data["cells"] = measure(plan)
        raw.write_text(dump(data), encoding="utf-8")
        torch.set_num_threads(threads)
    results = Results(json.loads(raw.read_text(encoding="utf-8")))
    (folder / "replay_speed.md").write_text(report(results), encoding="utf-8")
    plot(results, folder / "replay_speed.png")
    if not quick:
        PAGE.write_text(published(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    print("\n".join(summary(results)))
