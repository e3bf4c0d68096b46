"""`examine`: is a prioritised replay buffer what the paper describes?"""

import argparse
import sys

from per_tutorial.conformance.adapters import ADAPTERS

HELP = "examine a prioritised replay buffer: is it what the paper describes?"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the buffer and the seed of the examination."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help=f"{', '.join(ADAPTERS)}, or FILE.py:CLASS, an adapter of your own "
        "(per_tutorial.conformance.Adapter)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the examination (default: 0)")
    parser.add_argument("--quiet", action="store_true", help="no progress line")


def run(arguments: argparse.Namespace) -> None:
    """Print the report; the exit status is 1 if a question fails."""
    from per_tutorial.conformance import Answer, examine, find_adapter

    # One changing line, for a terminal only: the report repeats all answers.
    watched = sys.stderr.isatty() and not arguments.quiet

    def progress(answer: Answer) -> None:
        if watched:
            print(f"\r{answer.question.name}: {answer.verdict.value:30}", end="", file=sys.stderr)

    report = examine(find_adapter(arguments.name), arguments.seed, progress=progress)
    if watched:
        print(file=sys.stderr)
    print(report)
    if report.failures:
        sys.exit(1)
