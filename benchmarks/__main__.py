"""Measures speed: python -m benchmarks [NAME …] [--quick] [--write]"""

import argparse
from pathlib import Path

from benchmarks import agents, gpu, replay, table, training
from benchmarks.harness import ROOT, write

ANYWHERE = {"replay": replay, "training": training, "agents": agents}


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the speed of replay and of training; docs/speed/NAME.json holds all.",
    )
    parser.add_argument(
        "names", nargs="*", help="replay, training, agents, gpu; all but gpu if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="little work, into build/benchmarks")
    parser.add_argument("--write", action="store_true", help="write the table of docs/speed.md")
    parser.add_argument("--folder", type=Path, help="where the numbers go, such as $OUT")
    parser.add_argument("--minutes", type=float, default=14, help="what gpu may take (%(default)s)")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - {*ANYWHERE, "gpu"})
    if unknown:
        parser.error(f"names: must be replay, training, agents or gpu, got {', '.join(unknown)}")
    folder = options.folder or ROOT / ("build/benchmarks" if options.quick else "docs/speed")
    for name in options.names or ([] if options.write else ANYWHERE):
        if name == "gpu":
            gpu.run(folder, quick=options.quick, minutes=options.minutes)
        else:
            write(folder, name, ANYWHERE[name].measure(options.quick))
    if options.write:
        table.write(ROOT / "docs")


if __name__ == "__main__":
    main()
