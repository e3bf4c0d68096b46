"""Examine the buffers of other libraries, and carry the results to docs/examined.md.

    make examine                      all that are installed in .examined
    make examine ARGS="cpprb rllib"   only these; the results of the others stay

docs/examined.json holds the answers, and the page the table that is made of them.
"""

import json
import sys
from pathlib import Path

from per_tutorial.conformance import ADAPTERS, QUESTIONS, Verdict, examine, find_adapter

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS, PAGE = DOCS / "examined.json", DOCS / "examined.md"
START, END = "<!-- table: written by make examine -->", "<!-- end of the table -->"

SIGNS = {
    Verdict.HOLDS: "yes",
    Verdict.FAILS: "**no**",
    Verdict.UNTOLD: "?",
    Verdict.NOT_OFFERED: "",
    Verdict.REPORTED: "·",
}


def table(results):
    """Questions down, buffers across: Markdown."""
    names = [name for name in ADAPTERS if name in results]
    lines = [f"| question | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for question in QUESTIONS:
        cells = []
        for name in names:
            verdict = results[name]["answers"].get(question, [Verdict.NOT_OFFERED.value])[0]
            cells.append(SIGNS[Verdict(verdict)])
        lines.append(f"| {question} | {' | '.join(cells)} |")
    versions = []
    for name in names:
        found = dict(results[name]["versions"])
        python, numpy = found.pop("python"), found.pop("numpy")
        listed = ", ".join(f"{package} {number}" for package, number in found.items())
        versions.append(f"- {name}: {listed} (Python {python}, NumPy {numpy})")
    return "\n".join([*lines, "", *versions])


def write_page(results):
    """Put the table of these results between its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table(results)}\n{END}{after}", encoding="utf-8")


def main(names):
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names or ADAPTERS:
        try:
            report = examine(find_adapter(name))
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        print(report, "\n", flush=True)
        results[name] = report.as_dict()
        ordered = {name: results[name] for name in ADAPTERS if name in results}
        RESULTS.write_text(
            json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        write_page(ordered)


if __name__ == "__main__":
    main(sys.argv[1:])
