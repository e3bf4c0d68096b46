"""Runs the benchmarks: python -m benchmarks [NAME …] [--quick] [--redraw]"""

import argparse

from benchmarks import agents, gpu, methods, minatar, replay, training
from benchmarks.harness import ROOT

BENCHMARKS = {
    "replay": replay,
    "training": training,
    "agents": agents,
    "minatar": minatar,
    "methods": methods,
    "gpu": gpu,
}
ANYWHERE = [name for name in BENCHMARKS if name != "gpu"]


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure the speed of replay and of training."
    )
    parser.add_argument(
        "names",
        nargs="*",
        help=f"which of {', '.join(BENCHMARKS)}; all but gpu if none is named",
    )
    parser.add_argument(
        "--quick", action="store_true", help="little work, reported in build/benchmarks"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="measure nothing, report what was measured last"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"names: must be among {', '.join(BENCHMARKS)}, got {', '.join(unknown)}")
    folder = ROOT / "build" / "benchmarks" if options.quick else ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or ANYWHERE:
        BENCHMARKS[name].run(folder, quick=options.quick, redraw=options.redraw)


if __name__ == "__main__":
    main()
