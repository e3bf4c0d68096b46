"""How all benchmarks here measure: in turns, round after round, with ratios within a round.

Why not pyperf, asv or pytest-benchmark: they measure one contestant to the end, in processes of its
own, and then the next one. On a machine whose clock and neighbours change within seconds their
ratio is that of two moments, and filling a buffer of ten million transitions anew in each of
pyperf's twenty processes would take far longer than measuring it. Taken over from them: a warm-up
that does not count, blocks long enough for the clock, all raw numbers kept.
"""

import json
import re
import statistics
import subprocess
import time
from pathlib import Path

import torch

from per_tutorial.common.provenance import processor, versions

ROOT = Path(__file__).resolve().parent.parent


def alternate(contestants, rounds):
    """{name: results of the counted rounds} of functions that take turns, after a warm-up round."""
    results = {name: [] for name in contestants}
    for count in range(rounds + 1):
        for name, run in contestants.items():
            result = run()
            if count:
                results[name].append(result)
    return results


def timed(work, parts, clock=time.perf_counter):
    """A function that does the work, and returns the seconds of one of its equal parts."""

    def measured():
        start = clock()
        work()
        return (clock() - start) / parts

    return measured


def ratios(values, others):
    """Median, smallest and largest ratio of numbers taken in the same rounds."""
    pairs = [a / b for a, b in zip(values, others, strict=True)]
    return statistics.median(pairs), min(pairs), max(pairs)


def machine(packages):
    """Processor, threads and versions, in a line."""
    threads = torch.get_num_threads()
    found = versions(*packages)  # a contestant that is not installed does not take part
    listed = [f"Python {found.pop('python')}", *(f"{name} {found[name]}" for name in found)]
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}; {', '.join(listed)}"


def write(folder, name, measured):
    """Write what was measured, and at which commit, into NAME.json."""
    status, commit = subprocess.getstatusoutput(f'git -C "{ROOT}" rev-parse --short HEAD')
    text = json.dumps({"commit": "unknown" if status else commit, **measured}, indent=1)
    # What was measured in all rounds stands in one line.
    text = re.sub(r"\[[-+.\w,\s]*\]", lambda numbers: " ".join(numbers[0].split()), text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
