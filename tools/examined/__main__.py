"""Examine the buffers of other libraries, and carry the results to docs/examined.md.

    make examine                      all that are installed in .examined
    make examine ARGS="cpprb pfrl"   only these; the results of the others stay

`adapters/` tells how to handle them. docs/examined.json holds the answers, and the page the table
that is made of them.
"""

import json
import sys
from pathlib import Path

from per_tutorial.conformance import CHECKS, examine, find_adapter

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
RESULTS, PAGE = DOCS / "examined.json", DOCS / "examined.md"
START, END = "<!-- table: written by make examine -->", "<!-- end of the table -->"

# Name → what `find_adapter` takes: ours by name, the others as a file of `adapters/` and a class.
OTHERS = {
    "cpprb": "cpprb.py:Cpprb",
    "flashbax": "flashbax.py:Flashbax",
    "pfrl": "pfrl.py:PFRL",
    "tianshou": "tianshou.py:Tianshou",
    "torchrl": "torchrl.py:TorchRL",
    "xuance": "xuance.py:XuanCe",
}
EXAMINED = {name: name for name in ("proportional", "rank", "uniform")} | {
    name: f"{HERE}/adapters/{place}" for name, place in OTHERS.items()
}
SIGNS = {"passed": "yes", "failed": "**no**", "skipped": "", "inconclusive": "?"}


def table(results):
    """Checks down, by kind, buffers across: Markdown, with the versions below."""
    names = [name for name in EXAMINED if name in results]
    lines = [f"| check | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for kind in ("algorithm", "further"):
        lines.append(f"| **{kind}** |{' |' * len(names)}")
        for check in [name for name in CHECKS if CHECKS[name].kind == kind]:
            found = [results[name]["results"].get(check, ["skipped"])[0] for name in names]
            lines.append(f"| {check} | {' | '.join(SIGNS[verdict] for verdict in found)} |")
    lines.append("")
    for name in names:
        versions = ", ".join(f"{one} {v}" for one, v in results[name]["versions"].items())
        lines.append(f"- {name}: {versions}")
    return "\n".join(lines)


def write(results):
    """Write the JSON, and put the table between its marks on the page."""
    ordered = {name: results[name] for name in EXAMINED if name in results}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table(ordered)}\n{END}{after}", encoding="utf-8")


def main(names):
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names or EXAMINED:
        if name not in EXAMINED:
            sys.exit(f"NAME: must be one of {', '.join(EXAMINED)}, got {name!r}")
        try:
            report = examine(find_adapter(EXAMINED[name]), everything=True)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        print(report, "\n", flush=True)
        results[name] = report.as_dict()
        write(results)


if __name__ == "__main__":
    main(sys.argv[1:])
