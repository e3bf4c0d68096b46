"""The tables of docs/results.md that are made of shipped studies: what came after PER.

python tools/results_tables.py           fail unless they are those of the shipped studies
python tools/results_tables.py --write   put them right

They stand between two comments. The prose around them is written by hand.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from per_tutorial.common.data import data_folder
from per_tutorial.experiments.statistics.estimates import Estimate, estimate
from per_tutorial.experiments.statistics.families import Judged, agreement
from per_tutorial.experiments.studies.aggregates import (
    aggregate,
    aggregate_improvement,
    normalised_worlds,
)
from per_tutorial.experiments.studies.declared.equal_alpha import (
    EQUAL_ALPHA_STUDIES,
    EXPONENTS,
    THRESHOLD_CARTPOLE,
)
from per_tutorial.experiments.studies.declared.minatar import (
    PUBLISHED_BASE_STUDIES,
    PUBLISHED_SCORES,
    RATE_STUDIES,
)
from per_tutorial.experiments.studies.declared.step_sizes import SHARES
from per_tutorial.experiments.studies.declared.unfinished import UNFINISHED_STUDIES
from per_tutorial.experiments.studies.results import StudyResults, load_study

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
BEGIN, END = "<!-- tables of tools/results_tables.py -->", "<!-- end of the tables -->"
CLASSIC = {
    "after-cliffwalk": "Blind Cliffwalk",
    "after-cartpole": "CartPole",
    "after-acrobot": "Acrobot",
    "after-mountaincar": "MountainCar",
}
MINATAR = {
    "minatar-breakout": "Breakout",
    "minatar-space-invaders": "Space Invaders",
    "minatar-asterix": "Asterix",
}
METHODS = {
    "uniform": "uniform",
    "huber": "uniform, Huber's loss",
    "per": "PER",
    "rank": "rank-based PER",
    "lap": "LAP",
    "pal": "PAL",
    "reaper": "ReaPER",
    "laber": "LaBER",
}
PAIRS = (
    ("per", "uniform"),
    *((method, "per") for method in ("rank", "lap", "pal", "reaper", "laber")),
    ("huber", "uniform"),
    ("lap", "huber"),
    ("pal", "huber"),
)
RATES = {"": "The same learning rate as uniform replay's", "-quarter": "A quarter of it, for all"}


def shown(estimate: Estimate, form: str) -> str:
    value, low, high = (format(number, form).replace("-", "−") for number in estimate)
    return f"{value} [{low}, {high}]"


def differences(results: StudyResults, shown_pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A cell for each pair: the paired difference, corrected p, whether it is clear."""
    pairs = results.comparisons
    scores = {arm: results.scores(arm) for arm in results.arms}
    family = dict(
        zip(pairs, agreement([(scores[arm], scores[other]) for arm, other in pairs]), strict=True)
    )
    largest = max(abs(values).max() for values in scores.values())
    form = "+.1f" if largest > 20 else "+.2f" if largest > 2 else "+.3f"
    return [cell_of(family[pair], form) for pair in shown_pairs]


def cell_of(judged: Judged, form: str) -> str:
    """In bold where the verdict is clear, in italics where it is borderline."""
    p = "p < 0.001" if judged.p < 0.0005 else f"p {judged.p:.3f}"
    mark = {"clear": "**", "borderline": "*", "not told apart": ""}[judged.verdict]
    return f"{mark}{shown(judged.difference, form)}, {p}{mark}"


def table(heads: list[str], columns: list[list[str]]) -> list[str]:
    rows = [" | ".join(row) for row in zip(*columns, strict=True)]
    rule = "|".join(["---"] * len(heads))
    return [f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {row} |" for row in rows), ""]


def of_worlds(worlds: dict[str, str], rates: dict[str, str]) -> list[str]:
    """The tables of those of these studies that are shipped: {name: its world in words}."""
    there = {name: world for name, world in worlds.items() if is_shipped(name)}
    if not there:
        return []
    lines = []
    for rate, title in rates.items():
        columns = [[f"{METHODS[arm]} − {METHODS[other]}" for arm, other in PAIRS]]
        pairs = [(arm + rate, other + rate) for arm, other in PAIRS]
        columns += [differences(load_study(name), pairs) for name in there]
        lines += table([title, *there.values()], columns)
    scores = normalised_worlds(there)
    means = aggregate(scores)
    together = f"{len(there)} world{'s together' if len(there) > 1 else ''}"
    heads, columns = [together], [list(METHODS.values())]
    for rate in rates:
        words = ", a quarter of the rate" if rate else ""
        heads += [f"normalised score, IQM{words}", f"P(better than PER){words}"]
        columns.append([shown(means[arm + rate], ".2f") for arm in METHODS])
        better = {
            arm: shown(aggregate_improvement(scores, arm + rate, f"per{rate}"), ".2f")
            for arm in METHODS
            if arm != "per"
        }
        columns.append([better.get(arm, "") for arm in METHODS])
    return lines + table(heads, columns)


def shipped_worlds(prefix: str, rates: dict[str, str]) -> dict[str, StudyResults]:
    """The shipped studies with this prefix: {world and rate in words: results}."""
    return {
        f"{world}{words}": load_study(name)
        for world_name, world in CLASSIC.items()
        for rate, words in rates.items()
        if is_shipped(name := world_name.replace("after", prefix) + rate)
    }


def of_pairs(
    head: str, pairs: dict[str, tuple[str, str]], there: dict[str, StudyResults]
) -> list[str]:
    """The table of these pairs, by name, in these studies; no line if there is none."""
    if not there:
        return []
    columns = [differences(study, pairs.values()) for study in there.values()]
    return table([head, *there], [list(pairs), *columns])


def equal_alpha() -> list[str]:
    """The table of one exponent for all, of those worlds and rates that are shipped."""
    there = shipped_worlds("equal-alpha", {"": "", "-quarter": ", a quarter of the rate"})
    pairs = in_words(EQUAL_ALPHA_STUDIES[0].comparisons)
    return of_pairs("One exponent for all, 30 new pairs", pairs, there)


def long_cartpole() -> list[str]:
    """The table of CartPole until most runs have solved it, if that study is shipped."""
    name, pairs = THRESHOLD_CARTPOLE.name, in_words(THRESHOLD_CARTPOLE.comparisons)
    there = {"CartPole": load_study(name)} if is_shipped(name) else {}
    return of_pairs("One exponent for all, 60,000 steps, 30 new pairs", pairs, there)


def in_words(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """These comparisons of `equal_alpha`, by name."""
    return {f"{arm_in_words(arm)} − {arm_in_words(other)}": (arm, other) for arm, other in pairs}


def step_sizes() -> list[str]:
    """The table of PAL against LAP over learning rates, of those worlds that are shipped."""
    pairs = {
        f"learning rate {share:g} η": (f"pal-{words}", f"lap-{words}")
        for words, share in SHARES.items()
    }
    there = shipped_worlds("step-sizes", {"": ""})
    return of_pairs("PAL − LAP, α = 0.6, κ = 0.01, 30 new pairs", pairs, there)


def unfinished() -> list[str]:
    """The table of ReaPER with unfinished episodes as in the paper, of worlds that are shipped."""
    words = {"per": "PER", "reaper": "ReaPER, R = 1", "conservative": "ReaPER as in the paper"}
    pairs = {
        f"{words[arm]} − {words[other]}": (arm, other)
        for arm, other in UNFINISHED_STUDIES[0].comparisons
    }
    there = shipped_worlds("unfinished", {"": ""})
    return of_pairs("Unfinished episodes, 30 new pairs", pairs, there)


def arm_in_words(arm: str) -> str:
    """An arm of `equal_alpha`: "lap-4" is "LAP, α = 0.4"."""
    if arm == "huber-1":
        return "uniform, Huber's loss with κ = 1"
    method, _, digit = arm.partition("-")
    return METHODS[method] + (f", α = {EXPONENTS[digit]:g}" if digit else "")


def long_games() -> list[str]:
    """The table of half a million frames: PER, uniform replay and published DQN."""
    names = {name.replace("minatar", "long"): game for name, game in MINATAR.items()}
    there = {game: load_study(name) for name, game in names.items() if is_shipped(name)}
    if not there:
        return []
    pairs = [(study.scores("per"), study.scores("uniform")) for study in there.values()]
    columns = [list(there), [cell_of(judged, "+.2f") for judged in agreement(pairs)]]
    heads = ["500,000 frames", "PER − uniform, score over training"]
    for frames in (200_000, 500_000):
        heads += [f"uniform, last 100 episodes, after {frames:,}", "published DQN"]
        columns.append([range_of_runs(study, frames) for study in there.values()])
        columns.append(
            [f"{PUBLISHED_SCORES[study.arms['per'].env][frames]:g}" for study in there.values()]
        )
    return table(heads, columns)


def published_curves() -> list[str]:
    """The table of DQN with the published settings beside the published curves."""
    rows = []
    for study in RATE_STUDIES:
        if not is_shipped(study.name):
            continue
        game = game_of(study.name)
        grid, scores = load_study(study.name).curve("best-rate")
        published = PUBLISHED_SCORES[study.arms["best-rate"].env.replace("-v0", "-v1")]
        for frames, score in published.items():
            runs = scores[grid == frames].squeeze()
            mean, extremes = shown(estimate(runs), ".2f"), f"{runs.min():.2f} to {runs.max():.2f}"
            rows.append((f"{game}, {frames:,} frames", mean, extremes, f"{score:g}"))
    heads = ["The published settings, step size of the sweep's best", "ours, ten runs"]
    heads += ["lowest to highest run", "published DQN"]
    return table(heads, [list(column) for column in zip(*rows, strict=True)]) if rows else []


def published_base() -> list[str]:
    """The table of PER on DQN with the published settings, of those games that are shipped."""
    there = {
        game_of(study.name): load_study(study.name)
        for study in PUBLISHED_BASE_STUDIES
        if is_shipped(study.name)
    }
    words = {
        "per": "PER",
        "per-quarter": "PER at a quarter of the step size",
        "rank": "rank-based PER",
    }
    pairs = {f"{words[arm]} − uniform": (arm, "uniform") for arm in words}
    return of_pairs("The published settings, 200,000 frames, ten pairs", pairs, there)


def game_of(name: str) -> str:
    """The game of a study that is named "KIND-GAME", such as "rate-space-invaders"."""
    return name.partition("-")[2].replace("-", " ").title()


def range_of_runs(study: StudyResults, frames: int) -> str:
    """The score of uniform replay after this many frames: mean, lowest and highest of the runs."""
    grid, scores = study.curve("uniform")
    scores = scores[grid == frames].squeeze()
    return f"{scores.mean():.2f} ({scores.min():.2f} to {scores.max():.2f})"


def is_shipped(name: str) -> bool:
    return (data_folder() / f"{name}.csv.gz").is_file()


def tables() -> str:
    """All that stands between the two comments, comments included."""
    games = of_worlds(MINATAR, {"": RATES[""]})
    lines = [
        BEGIN,
        "",
        *of_worlds(CLASSIC, RATES),
        *equal_alpha(),
        *long_cartpole(),
        *step_sizes(),
        *unfinished(),
        *games,
        *long_games(),
    ]
    lines += [*published_curves(), *published_base(), END]
    return "\n".join(lines)


def parts(page: str) -> tuple[str, str, str]:
    """What stands before the tables, the tables, and what stands after them."""
    before, rest = page.split(BEGIN)
    between, after = rest.split(END)
    return before, BEGIN + between + END, after


def main() -> None:
    parser = argparse.ArgumentParser(description="Check or write the tables of docs/results.md.")
    parser.add_argument("--write", action="store_true", help="put them right")
    options = parser.parse_args()
    before, found, after = parts(PAGE.read_text(encoding="utf-8"))
    right = tables()
    if options.write:
        PAGE.write_text(before + right + after, encoding="utf-8")
    elif found != right:
        sys.exit(f"{PAGE}: its tables are not those of the shipped studies; call this with --write")


if __name__ == "__main__":
    main()
