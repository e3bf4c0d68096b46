"""Compute the numbers of docs/results.md, and of the README's "Does PER help?", from the data.

python tools/results_page.py    print what the pages must say and what they lack; write the figure

The sentences and the table go into the pages by hand. The figure is the one that notebook 09 drew:
it is taken from its outputs.
"""

import base64
import sys
from pathlib import Path

import nbformat
import numpy as np

from per_tutorial.statistics import compare, failure_rate, t_interval
from per_tutorial.studies import evidence
from per_tutorial.studies.results import load_study
from per_tutorial.worlds.results import gains, load

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "results.md", ROOT / "README.md"
NOTEBOOK = ROOT / "notebooks" / "09_should_i_use_it.ipynb"
FIGURE = ROOT / "docs" / "per_minus_uniform.png"
HEAD = "| world | setting | PER − uniform | of range | pairs |\n|---|---|---|--:|--:|\n"


def signed(value, digits=0):
    """A number with its sign: +1.50, −2."""
    return f"{round(value, digits) + 0.0:+,.{digits}f}".replace("-", "−")


def interval(found, digits=0):
    """An estimate and its interval: +1.5 [0.2, 2.8]."""
    low, high = (f"{each:,.{digits}f}".replace("-", "−") for each in found[1:])
    return f"{signed(found[0], digits)} [{low}, {high}]"


def digits_of(found):
    """Decimals that leave three digits to the largest limit."""
    return max(0, 2 - int(np.floor(np.log10(np.abs(found[1:]).max()))))


def counted(family):
    """How many gains and losses are shown."""
    shown = [one.difference.value for one in family if one.shown]
    return sum(value > 0 for value in shown), sum(value < 0 for value in shown)


def table(rows, family):
    """The comparisons that are shown, from the largest gain to the largest loss."""
    shown = [(row, one.difference) for row, one in zip(rows, family, strict=True) if one.shown]
    shown.sort(key=lambda pair: -pair[1].value / pair[0].span)
    return HEAD + "".join(
        f"| {row.world} | {row.setting} | {interval(found, digits_of(found))} "
        f"| {signed(100 * found.value / row.span)} % | {len(row.scores[0])} |\n"
        for row, found in shown
    )


def of_everything(rows, family):
    """Sentences on the figure: PER minus uniform replay."""
    gained, lost = counted(family)
    pairs = sum(len(row.scores[0]) for row in rows)
    yield f"{len(rows)} comparisons with {pairs:,} pairs of runs: {gained} gains and {lost} loss"
    found = {
        f"{row.world}, {row.setting}": (interval(one.difference, digits_of(one.difference)), row)
        for row, one in zip(rows, family, strict=True)
    }
    for text, name in (
        ("MountainCar {} at η and {} at η/4", "MountainCar, 50k steps, 128 units, "),
        ("CartPole over 20,000 steps {} at η and {} at η/4", "CartPole, 20k steps, 128 units, "),
        ("Cliffwalk with DQN {} at η and {} at η/4", "Cliffwalk, 6k steps, 64 units, "),
    ):
        (one, row), (quarter, _) = (found[name + rate] for rate in ("η", "η/4"))
        yield f"{text.format(one, quarter)} ({len(row.scores[0])} pairs each)"
    long = "CartPole, 40k steps, 512 units, ≤ 4000, D3QN, "
    yield "{} with a hard target and {} with a soft one".format(
        *(found[long + rest][0] for rest in ("hard target, η", "η"))
    )
    games = "MinAtar Space Invaders, 500k steps, "
    yield "over 500,000 frames {} with our settings and {} with the published".format(
        *(found[games + rest][0] for rest in ("η", "published settings, η"))
    )


def of_space_invaders():
    """A sentence on early and late frames with the published settings, found after the fact."""
    grid, per = load_study("per-space-invaders").curve("per")
    difference = per - load_study("rate-space-invaders").curve("best-rate")[1]
    early, late = (
        np.nanmean(difference[frames], axis=0) for frames in (grid <= 200_000, grid > 200_000)
    )
    yield (
        f"{signed(early.mean(), 2)} up to frame 200,000 and {signed(late.mean(), 2)} after it; "
        f"late minus early {interval(t_interval(late - early), 2)}"
    )


def of_the_papers_rule():
    """A sentence on PER at a quarter of the rate that uniform replay has."""
    rows = evidence.quarter_minus_full()
    gained, lost = counted(compare([row.scores for row in rows]))
    yield f"Of {len(rows)} such declared comparisons {gained} shows a gain and {lost} show a loss"


def of_policies():
    """A sentence on the final policies of MountainCar that fail; the README has it, too."""
    shares = []
    for name, arms in (
        ("ablation-mountaincar", ("dqn-uniform", "dqn-per")),
        ("equal-alpha-mountaincar", ("uniform", "per-6")),
    ):
        study = load_study(name)
        for arm in arms:
            failed = failure_rate(study.scores(arm, "greedy score"), study.facts["failed_below"])
            shares.append(f"{100 * failed.value:.0f} %")
    yield (
        "failed final policies: {} with uniform replay, {} with PER; in new runs {} and {}"
    ).format(*shares)


def of_other_methods():
    """Sentences on newer methods, and on other exponents."""
    rows = evidence.newer_minus_per()
    family = compare([row.scores for row in rows])
    gained, lost = counted(family)
    yield f"In {len(rows)} comparisons {gained} gains and {lost} losses are shown"
    shares = []
    for method in evidence.METHODS.values():
        of = [one for row, one in zip(rows, family, strict=True) if row.method == method]
        shares.append(f"{method} {counted(of)[1]} of {len(of)}")
    yield ", ".join(shares)
    rows = evidence.other_exponents()
    gained, lost = counted(compare([row.scores for row in rows]))
    yield f"Of {len(rows)} comparisons with another α or β, {gained + lost} show a difference"


def less_error(gain):
    """A gain, log2 of uniform replay's error over the method's, as a change of the error in %."""
    value, high, low = (100 * (2**-each - 1) for each in gain)
    return interval((value, low, high), 1 if abs(value) < 10 else 0)


def of_small_worlds():
    """Sentences on the map, on the two settings in which PER loses, and on fresh priorities."""
    cells = load("map")["cells"].values()
    every = {method: [gains(cell, method) for cell in cells] for method in ("per", "rank")}
    family = compare([(gain, 0 * gain) for method in every for gain in every[method]])
    means = [less_error(t_interval(np.mean(every[method], axis=0))) for method in every]
    worse = counted(family)[1]
    yield f"PER changes the error by {means[0]} %, rank-based PER by {means[1]} %"
    yield f"Of the {len(family)} comparisons with uniform replay, {worse} are shown to be worse"
    cuts = load("cuts")["cells"]
    yield "by {} % where one reward in a hundred was off by ±10, and by {} % where 64".format(
        *(
            less_error(t_interval(gains(cuts[name], "per")))
            for name in ("outliers-n5-noise0.0-outliers=0.01", "batch-n5-noise0.0-batch=64")
        )
    )
    fresh = []
    for study, method in (("signals", "per"), ("entries", "entered"), ("signals", "fresh")):
        found = load(study)["cells"]
        each = [gains(found[f"{study}-n{n}-noise0.0-"], method) for n in (4, 5, 6)]
        fresh.append(less_error(t_interval(np.mean(each, axis=0))))
    yield "by {} %, with newcomers at their own error by {} %, and with all fresh by {} %".format(
        *fresh
    )


def of_pong():
    """A sentence on the three runs of each arm."""
    pong = load_study("pong")
    scores = (pong.scores(arm, "greedy score") for arm in ("per", "uniform"))
    per, uniform = (", ".join(f"{score:.1f}" for score in found) for found in scores)
    yield f"PER {per}; uniform replay {uniform}"


def wanted():
    """What each page must say: {path: sentences}, and the table as Markdown."""
    rows = evidence.per_minus_uniform()
    family = compare([row.scores for row in rows])
    policies = list(of_policies())
    sentences = [*of_everything(rows, family), *of_space_invaders(), *of_the_papers_rule()]
    sentences += [*policies, *of_other_methods(), *of_small_worlds(), *of_pong()]
    return {PAGE: sentences, README: policies}, table(rows, family)


def missing(sentences, text):
    """The sentences that a text, which may be wrapped anywhere, does not have."""
    joined = " ".join(text.split())
    return [sentence for sentence in sentences if sentence not in joined]


def figure():
    """The figure of notebook 09 as PNG."""
    (cell,) = (cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.id == "forest")
    shown = (output.get("data", {}) for output in cell.outputs)
    (png,) = (data["image/png"] for data in shown if "image/png" in data)
    return base64.b64decode(png)


def main():
    pages, rows = wanted()
    print(*pages[PAGE], "", rows, sep="\n")
    FIGURE.write_bytes(figure())
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    absent = [sentence for path in pages for sentence in missing(pages[path], texts[path])]
    absent += [] if rows in texts[PAGE] else ["the table"]
    sys.exit("\n".join(["The pages do not say:", *absent]) if absent else 0)


if __name__ == "__main__":
    main()
