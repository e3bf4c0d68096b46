"""Compute the numbers of docs/results.md, and of the README's "Does PER help?", from the data.

python tools/results_page.py    print what the pages must say and what they lack; write the figure

The sentences and the tables go into the pages by hand. The figure is the one that notebook 09 drew:
it is taken from its outputs.
"""

import base64
import sys

import nbformat
import numpy as np
from notebook_files import NOTEBOOKS, ROOT

from per_tutorial.statistics import Estimate, compare, failure_rate, t_interval
from per_tutorial.studies.comparisons import read_comparisons
from per_tutorial.studies.results import load_study
from per_tutorial.worlds.gains import gains, load_cells

PAGE, README = ROOT / "docs" / "results.md", ROOT / "README.md"
RESULTS = NOTEBOOKS / "results"
FIGURE = ROOT / "docs" / "per_minus_uniform.png"
HEAD = "| world | setting | PER − uniform | of range | pairs |\n|---|---|---|--:|--:|\n"
COMPARISONS = read_comparisons(RESULTS / "comparisons.csv")


def judged(family):
    """The comparisons of a family, what the rule says of each, and the numbers of gains, losses."""
    rows = COMPARISONS[family]
    verdicts = compare([row.scores for row in rows])
    shown = [one.difference.value for one in verdicts if one.shown]
    gained = sum(value > 0 for value in shown)
    return rows, verdicts, gained, len(shown) - gained


def signed(number, form):
    """A number or an `Estimate` with its sign: −2, +1.5 [0.2, 2.8]."""
    return format(number, f"+,{form}").replace("-", "−")


def table(rows, verdicts):
    """Differences as Markdown, from the largest gain in share of the range to the largest loss."""
    found = [(row, one.difference) for row, one in zip(rows, verdicts, strict=True)]
    found.sort(key=lambda pair: -pair[1].value / pair[0].range)
    lines = []
    for row, one in found:
        digits = max(0, 2 - int(np.floor(np.log10(np.abs(one[1:]).max()))))  # three in all
        lines.append(
            f"| {row.world} | {row.setting} | {signed(one, f'.{digits}f')} "
            f"| {signed(100 * one.value / row.range, '.0f')} % | {len(row.scores[0])} |\n"
        )
    return HEAD + "".join(lines)


def of_comparisons():
    """Sentences on all comparisons, family by family."""
    rows, _, gained, lost = judged("one rate")
    pairs = sum(len(row.scores[0]) for row in rows)
    yield f"{len(rows)} comparisons with {pairs:,} pairs of runs: {gained} gains and {lost} loss"
    rows, _, gained, lost = judged("a quarter of the rate")
    yield f"Of {len(rows)} such declared comparisons {gained} shows a gain and {lost} show a loss"
    rows, _, gained, lost = judged("other exponents")
    yield f"Of {len(rows)} comparisons with another α or β, {gained + lost} show a difference"
    rows, verdicts, gained, lost = judged("newer methods")
    yield f"In {len(rows)} comparisons {gained} gains and {lost} losses are shown"
    losses = {row.method: [] for row in rows}
    for row, one in zip(rows, verdicts, strict=True):
        losses[row.method].append(one.difference.high < 0)
    yield ", ".join(f"{method} {sum(each)} of {len(each)}" for method, each in losses.items())


def of_policies():
    """A sentence on the final policies of MountainCar that fail; the README has it, too."""
    shares = []
    for name, arms in (
        ("ablation-mountaincar", ("dqn-uniform", "dqn-per")),
        ("equal-alpha-mountaincar", ("uniform", "per-6")),
    ):
        study = load_study(name, RESULTS)
        for arm in arms:
            failed = failure_rate(study.scores(arm, "greedy score"), study.facts["failed_below"])
            shares.append(f"{100 * failed.value:.0f} %")
    yield (
        "failed final policies: {} with uniform replay, {} with PER; in new runs {} and {}"
    ).format(*shares)


def of_pong():
    """A sentence on the runs of each arm."""
    pong = load_study("pong", RESULTS)
    scores = (pong.scores(arm, "greedy score") for arm in ("per", "uniform"))
    per, uniform = (", ".join(f"{score:.1f}" for score in found) for found in scores)
    yield f"PER {per}; uniform replay {uniform}"


def less_error(gain):
    """A gain, log2 of uniform replay's error over the method's, as a change of the error in %."""
    value, high, low = (100 * (2**-each - 1) for each in gain)
    return signed(Estimate(value, low, high), ".1f" if abs(value) < 10 else ".0f")


def of_small_worlds():
    """Sentences on the map, on the two settings in which PER loses, and on fresh priorities."""
    cells = load_cells("map", RESULTS).values()
    every = {method: [gains(cell, method) for cell in cells] for method in ("per", "rank")}
    verdicts = compare([(gain, 0 * gain) for method in every for gain in every[method]])
    means = [less_error(t_interval(np.mean(every[method], axis=0))) for method in every]
    worse = sum(one.difference.high < 0 for one in verdicts)
    yield f"PER changes the error by {means[0]} %, rank-based PER by {means[1]} %"
    yield f"Of the {len(verdicts)} comparisons with uniform replay, {worse} are shown to be worse"
    cuts = load_cells("cuts", RESULTS)
    yield "by {} % where one reward in a hundred was off by ±10, and by {} % where 64".format(
        *(
            less_error(t_interval(gains(cuts[name], "per")))
            for name in ("outliers-n5-noise0.0-outliers=0.01", "batch-n5-noise0.0-batch=64")
        )
    )
    fresh = []
    for study, method in (("signals", "per"), ("entries", "entered"), ("signals", "fresh")):
        found = load_cells(study, RESULTS)
        each = [gains(found[f"{study}-n{n}-noise0.0-"], method) for n in (4, 5, 6)]
        fresh.append(less_error(t_interval(np.mean(each, axis=0))))
    yield "by {} %, with newcomers at their own error by {} %, and with all fresh by {} %".format(
        *fresh
    )


def wanted():
    """What each page must say: {path: sentences and tables}."""
    rows, verdicts, *_ = judged("one rate")
    shown = [pair for pair in zip(rows, verdicts, strict=True) if pair[1].shown]
    policies = list(of_policies())
    said = [table(*zip(*shown, strict=True)), *of_comparisons(), *policies, *of_pong()]
    return {PAGE: [*said, *of_small_worlds()], README: policies}


def missing(wanted, text):
    """What a text, whose sentences may be wrapped anywhere, does not have."""
    joined = " ".join(text.split())
    return [each for each in wanted if " ".join(each.split()) not in joined]


def figure():
    """The figure of notebook 09 as PNG."""
    notebook = nbformat.read(NOTEBOOKS / "09_should_i_use_it.ipynb", 4)
    (cell,) = (cell for cell in notebook.cells if cell.id == "forest")
    shown = (output.get("data", {}) for output in cell.outputs)
    (png,) = (data["image/png"] for data in shown if "image/png" in data)
    return base64.b64decode(png)


def main():
    FIGURE.write_bytes(figure())
    absent = []
    for path, sentences in wanted().items():
        print(path.name, *sentences, "", sep="\n")
        absent += missing(sentences, path.read_text(encoding="utf-8"))
    sys.exit("\n".join(["The pages do not say:", *absent]) if absent else 0)


if __name__ == "__main__":
    main()
