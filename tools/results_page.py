"""Compute the numbers of docs/results.md from the comparisons of all studies.

python tools/results_page.py    print what the page must say and what it lacks; write the figures

The sentences and the tables go into the page by hand.
"""

import sys

import numpy as np
from matplotlib import pyplot as plt
from notebook_files import NOTEBOOKS, ROOT

from per_tutorial.notebook import draw_estimates, use_style
from per_tutorial.statistics import Estimate, compare
from per_tutorial.studies.comparisons import read_comparisons
from per_tutorial.studies.declared.tuned import CHOSEN, GRID, SIDES, WORLDS
from per_tutorial.studies.results import load_study

RESULTS = NOTEBOOKS / "results"
PAGE = ROOT / "docs" / "results.md"
FIGURE = ROOT / "docs" / "per_minus_uniform.png"
SHOWN = ROOT / "docs" / "shown_differences.png"
HEAD = "| world | setting | PER − uniform | of range | pairs |\n|---|---|---|--:|--:|\n"
COMPARISONS = read_comparisons(RESULTS / "comparisons.csv")


def judged(family, m=None):
    """The comparisons of a family, what the rule says of each, and the numbers of gains, losses."""
    rows = COMPARISONS[family]
    verdicts = compare([row.scores for row in rows], m)
    shown = [one.difference.value for one in verdicts if one.shown]
    gained = sum(value > 0 for value in shown)
    return rows, verdicts, gained, len(shown) - gained


def signed(number, form):
    """A number or an `Estimate` with its sign: −2, +1.5 [0.2, 2.8]."""
    return format(number, f"+,{form}").replace("-", "−")


def rounded(one):
    """An estimate with three digits in its larger limit."""
    return signed(one, f".{max(0, 2 - int(np.floor(np.log10(np.abs(one[1:]).max()))))}f")


def table(rows, verdicts):
    """Differences as Markdown, from the largest gain in share of the range to the largest loss."""
    found = [(row, one.difference) for row, one in zip(rows, verdicts, strict=True)]
    found.sort(key=lambda pair: -pair[1].value / pair[0].range)
    lines = []
    for row, one in found:
        percent = 100 * one.value / row.range
        percent = signed(percent, ".0f" if abs(percent) >= 0.5 else ".1f")
        words = row.world, row.setting, rounded(one), f"{percent} %", len(row.scores[0])
        lines.append(f"| {' | '.join(map(str, words))} |\n")
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


def costs_of_rates(world):
    """Side → what a badly chosen rate costs in a world: chosen minus mean score, of each run."""
    grid = load_study(f"rates-{world}", RESULTS)
    return {
        side: grid.scores(f"{side}-{CHOSEN[world][side]:g}")
        - np.mean([grid.scores(f"{side}-{times:g}") for times in GRID], axis=0)
        for side in SIDES
    }


def of_rates():
    """A table and sentences on PER and uniform replay, each at the rate that serves it best."""
    rows, verdicts, gained, lost = judged("best rates", m=len(WORLDS))
    yield table(rows, verdicts)
    yield f"In {len(rows)} worlds {gained} gains and {lost} loss are shown"
    costs = [costs_of_rates(row.studies[0].removeprefix("tuned-")) for row in rows]
    verdicts = compare([(cost["per"], cost["uniform"]) for cost in costs], m=len(WORLDS))
    every = zip(rows, verdicts, strict=True)
    yield ", ".join(f"{row.world} {rounded(one.difference)}" for row, one in every)


def wanted():
    """What docs/results.md must say: tables and sentences."""
    rows, verdicts, *_ = judged("one rate")
    shown = [pair for pair in zip(rows, verdicts, strict=True) if pair[1].shown]
    return [table(*zip(*shown, strict=True)), *of_comparisons(), *of_rates()]


def missing(wanted, text):
    """What a text, whose sentences may be wrapped anywhere, does not have."""
    joined = " ".join(text.split())
    return [each for each in wanted if " ".join(each.split()) not in joined]


def estimates(shown_only=False):
    """World and setting → PER − uniform replay at one rate, in % of the range, world by world."""
    rows, verdicts, *_ = judged("one rate")
    found = [
        (row.world, Estimate(*(100 * np.array(one.difference) / row.range)), row.setting)
        for row, one in zip(rows, verdicts, strict=True)
        if one.shown or not shown_only
    ]
    found.sort(key=lambda each: (each[0], -each[1].value))
    return {f"{world}, {setting}": estimate for world, estimate, setting in found}


def described(found):
    """The numbers of a figure as text, which its file carries too."""
    return "\n".join(f"{label}: {one:+.1f}" for label, one in found.items())


def draw(path, found, height, title=""):
    """Write a figure of estimates, one below the other."""
    use_style()
    figure, axes = plt.subplots(figsize=(9.5, height))
    draw_estimates(axes, found)
    axes.set(title=f"{title}uniform is better ← 0 → PER is better", xlim=(-80, 170))
    axes.set_xlabel("PER − uniform replay, % of the range of uniform replay's learning curve")
    figure.savefig(path, dpi=100, metadata={"Description": described(found)})
    plt.close(figure)


def main():
    every, shown = estimates(), estimates(shown_only=True)
    draw(FIGURE, every, 13)
    draw(SHOWN, shown, 3.6, f"The {len(shown)} shown differences of {len(every)}: ")
    print(*wanted(), sep="\n")
    absent = missing(wanted(), PAGE.read_text(encoding="utf-8"))
    sys.exit("\n".join(["The page does not say:", *absent]) if absent else 0)


if __name__ == "__main__":
    main()
