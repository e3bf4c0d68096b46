"""Examine the buffers of other libraries, and carry the results to docs/examined.md.

    make examine                      all that are installed in .examined
    make examine ARGS="cpprb rllib"   only these; the results of the others stay

`adapters/` tells how to handle them. docs/examined.json holds the answers, and the page the table
that is made of them.
"""

import json
import sys
from pathlib import Path

from per_tutorial.conformance import QUESTIONS, Verdict, examine, find_adapter
from per_tutorial.conformance.answers import KINDS

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
RESULTS, PAGE = DOCS / "examined.json", DOCS / "examined.md"
START, END = "<!-- table: written by make examine -->", "<!-- end of the table -->"

# Name → what `find_adapter` takes: ours by name, the others as a file of `adapters/` and a class.
EXAMINED = {
    "proportional": "proportional",
    "rank": "rank",
    "uniform": "uniform",
    **{
        name: f"{HERE}/adapters/{place}"
        for name, place in {
            "agilerl": "agilerl.py:AgileRL",
            "cpprb": "cpprb.py:Cpprb",
            "flashbax": "flashbax.py:Flashbax",
            "pfrl": "pfrl.py:PFRL",
            "rllib": "rllib.py:RLlibEpisodes",
            "rllib-old": "rllib.py:RLlibTransitions",
            "tianshou": "tianshou.py:Tianshou",
            "torchrl": "torchrl.py:TorchRL",
            "xuance": "xuance.py:XuanCe",
        }.items()
    },
}

SIGNS = {
    Verdict.HOLDS: "yes",
    Verdict.FAILS: "**no**",
    Verdict.NOT_JUDGED: "(no)",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_OFFERED: "",
    Verdict.REPORTED: "·",
}


def table(results):
    """Questions down, by kind, buffers across: Markdown. What was not asked yet is "–"."""
    names = [name for name in EXAMINED if name in results]
    lines = [f"| question | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for kind in KINDS:
        lines.append(f"| **{kind}** |{' |' * len(names)}")
        for question in [name for name in QUESTIONS if QUESTIONS[name].kind == kind]:
            cells = []
            for name in names:
                answer = results[name]["answers"].get(question)
                cells.append(SIGNS[Verdict(answer[0])] if answer else "–")
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
    for name in names or EXAMINED:
        if name not in EXAMINED:
            sys.exit(f"NAME: must be one of {', '.join(EXAMINED)}, got {name!r}")
        try:
            report = examine(find_adapter(EXAMINED[name]))
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        print(report, "\n", flush=True)
        results[name] = report.as_dict()
        ordered = {name: results[name] for name in EXAMINED if name in results}
        text = json.dumps(ordered, indent=1, ensure_ascii=False)
        RESULTS.write_text(f"{text}\n", encoding="utf-8")
        write_page(ordered)


if __name__ == "__main__":
    main(sys.argv[1:])
