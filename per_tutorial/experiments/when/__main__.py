"""python -m per_tutorial.experiments.when STUDY: run a study of this folder, or resume it.

Each cell is a file in ``results/when-STUDY/``; in the end all go to ``results/when-STUDY.json.gz``.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from per_tutorial.experiments.cells import run_cells
from per_tutorial.experiments.when import forecast, maps, mechanism, network, network_mechanism
from per_tutorial.experiments.when.results import load


def mechanism_of(cell: maps.Cell) -> Any:
    """The mechanism in a cell of the map, at the rate that the map chose for uniform replay."""
    found = load("map")["cells"][cell.name]
    return mechanism.run_cell(cell, found["uniform"]["rate"])


def worlds_of(test: str) -> Iterator[forecast.World]:
    """The worlds of a test of the forecast."""
    return map(forecast.World, forecast.TESTS[test])


def features_of(world: forecast.World) -> dict[str, Any]:
    """What a test of the forecast keeps about a world."""
    return {"features": world.features()}


STUDIES: dict[str, tuple[Callable[[], Iterator[Any]], Callable[[Any], Any]]] = {
    "map": (maps.the_map, maps.run_cell),
    "cuts": (maps.the_cuts, maps.run_cell),
    "signals": (maps.the_signals, maps.run_cell),
    "entries": (maps.the_entries, maps.run_cell),
    "mechanism": (maps.the_map, mechanism_of),
    "forecast": (lambda: worlds_of("forecast"), features_of),
    "forecast-again": (lambda: worlds_of("forecast-again"), features_of),
    "network": (network.the_cells, network.run_cell),
    "network-mechanism": (network.the_cells, network_mechanism.run_cell),
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in STUDIES:
        sys.exit(f"study: must be one of {', '.join(STUDIES)}")
    every, run_one = STUDIES[sys.argv[1]]
    print(run_cells(f"when-{sys.argv[1]}", every(), run_one, Path("results")))
