"""The results of a study: read from its file, as curves and scores, and reported as text.

The file is a tidy table: the arm, the seed of the run, what was measured, when, and the value. No
settings are built from it, so a file stays readable when settings go.
"""

import csv
import gzip
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of
from per_tutorial.statistics import LEVEL, compare, failure_rate, t_interval
from per_tutorial.studies.study import METRICS

COLUMNS = ("arm", "seed", "measure", "at", "value")


def read_results(
    path: str | os.PathLike[str], *facts: str
) -> tuple[dict[str, Any], list[list[str]]]:
    """The heading and the rows of a results file, of one part or of a whole study.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged or not whole, its heading lacks one of the ``facts``, or a
            row has no numbers where they belong.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
    try:
        data = Path(path).read_bytes()
        text = (gzip.decompress(data) if os.fspath(path).endswith(".gz") else data).decode()
        first, columns, *lines = text.splitlines()
        heading = json.loads(first.removeprefix("# "))
        if missing := [name for name in ("rows", *facts) if name not in heading]:
            raise ValueError(f"no {', '.join(missing)}")
        # A number cut short would still be a number.
        if heading["rows"] != len(lines) or not text.endswith("\n"):
            raise ValueError(f"it must have {heading['rows']} whole rows")
        if columns != ",".join(COLUMNS):
            raise ValueError(f"the columns are {columns}")
        rows = list(csv.reader(lines))
        for _, seed, _, at, value in rows:
            int(seed), int(at), float(value)
    except Exception as error:  # a flipped bit may claim anything
        raise _holds_none(path, error) from error
    return heading, rows


def _holds_none(path: str | os.PathLike[str], what: object) -> ValueError:
    return ValueError(f"path: {os.fspath(path)!r} holds no results ({what})")


class StudyResults:
    """The results of a study, read from its file.

    Attributes:
        facts: dict of what was declared and how the runs were made.
        arms: name → dict of the settings that were recorded, to show and to compare.
        seeds: of the runs; all arrays below have this order.
        comparisons: the declared pairs (arm, arm that it is compared with).
    """

    def __init__(self, facts: dict[str, Any], rows: Iterable[Sequence[str]]) -> None:
        self.facts = facts
        parts = facts["stacks"]  # as the first files called them
        self.arms: dict[str, dict[str, Any]] = {
            part["arm"]: dict(part["settings"]) for part in parts
        }
        self.seeds = sorted({int(seed) for part in parts for seed in part["seeds"]})
        # measure → at → (arm, seed) → value
        self._values: dict[str, dict[int, dict[tuple[str, int], float]]] = {}
        for arm, seed, measure, at, value in rows:
            moments = self._values.setdefault(measure, {})
            moments.setdefault(int(at), {})[arm, int(seed)] = float(value)
        one_of("metric", facts["metric"], METRICS)
        self.comparisons = [(arm, other) for arm, other in facts["comparisons"]]
        for pair in self.comparisons:
            for arm in pair:
                one_of("comparisons", arm, self.arms)

    def curve(
        self, arm: str, measure: str = "score"
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """A measure over time: the grid (points,) of all arms, and the values (points, runs).

        Args:
            arm: its name.
            measure: "score" and the study's curves over environment steps; "score after episodes"
                over episodes, if the study keeps it. NaN where a run has no value yet.
        """
        one_of("arm", arm, self.arms)
        values = self._values[one_of("measure", measure, self._values)]
        grid = sorted(values)
        curve = [[values[at].get((arm, seed), np.nan) for seed in self.seeds] for at in grid]
        return np.array(grid), np.array(curve)

    def scores(self, arm: str, metric: str | None = None) -> NDArray[np.float64]:
        """One number per run, (runs,): ``metric`` of `METRICS`, by default the declared one.

        A curve counts from the run's first finished episode on; NaN if it finished none.
        """
        metric = one_of("metric", metric or self.facts["metric"], METRICS)
        if metric == "greedy score":
            return self.curve(arm, "greedy")[1][-1]
        if metric == "final score":
            return self.curve(arm)[1][-1]
        return np.nanmean(self.curve(arm)[1], axis=0)


def load_study(name: str, folder: str | os.PathLike[str] = "results") -> StudyResults:
    """The `StudyResults` of a study in a folder; a notebook has those of the series beside it.

    Raises:
        FileNotFoundError: the folder holds no results at all.
        ValueError: there are none of this name, or the file is damaged.
    """
    path = Path(folder) / f"{name}.csv.gz"
    if not path.is_file():
        known = sorted(found.name.removesuffix(".csv.gz") for found in path.parent.glob("*.csv.gz"))
        if not known:
            raise FileNotFoundError(
                f"folder: must hold results of studies, got {str(path.parent.absolute())!r}; those "
                "of the series are in notebooks/results of its repository, not in the package"
            )
        one_of("name", name, known)
    facts, rows = read_results(path, "stacks", "metric", "comparisons", "failed_below")
    try:
        return StudyResults(facts, rows)
    except (KeyError, TypeError, ValueError) as error:  # the heading has another form
        raise _holds_none(path, error) from error


def report(results: StudyResults) -> str:
    """The results as text: a line for each arm, then a line for each declared comparison."""
    metric = results.facts["metric"]
    scores = {arm: results.scores(arm) for arm in results.arms}
    largest = max(np.nanmax(np.abs(values)) for values in scores.values())
    digits = 1 if largest > 2 else 3  # a tenth is a lot where scores are at most 1
    lines = [f"{metric}, {len(results.seeds)} runs an arm, 95 % intervals"]
    for arm, values in scores.items():
        greedy = results.scores(arm, "greedy score")
        failed = failure_rate(greedy, results.facts["failed_below"])
        lines.append(
            f"{arm:28} mean {t_interval(values):9.{digits}f}  "
            f"median {np.median(values):9.{digits}f}  failed {failed:.0%}"
        )
    pairs = results.comparisons
    if not pairs:
        return "\n".join(lines)
    lines.append(
        f"paired differences of the mean {metric}, with t intervals at confidence "
        f"1 − {LEVEL}/{len(pairs)}; shown: the interval excludes zero"
    )
    family = compare([(scores[arm], scores[other]) for arm, other in pairs])
    for (arm, other), one in zip(pairs, family, strict=True):
        lines.append(
            f"{f'{arm} − {other}':48} {one.difference:+9.{digits}f}  "
            f"{'shown' if one.shown else 'not shown'}"
        )
    return "\n".join(lines)
