"""`examine`: is a prioritised replay buffer what the paper describes?"""

import sys
from typing import Annotated

import tyro


def examine(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    seed: int = 0,
    quiet: bool = False,
) -> None:
    """Examine a prioritised replay buffer; the exit status is 1 if a question fails.

    Args:
        name: such as proportional, or FILE.py:CLASS, an adapter of your own
            (per_tutorial.conformance.Adapter)
        seed: of the examination
        quiet: no progress line
    """
    from per_tutorial.conformance import Answer, examine, find_adapter

    # One changing line, for a terminal only: the report repeats all answers.
    watched = sys.stderr.isatty() and not quiet

    def progress(answer: Answer) -> None:
        if watched:
            print(f"\r{answer.question.name}: {answer.verdict.value:30}", end="", file=sys.stderr)

    report = examine(find_adapter(name), seed, progress=progress)
    if watched:
        print(file=sys.stderr)
    print(report)
    if report.failures:
        sys.exit(1)
