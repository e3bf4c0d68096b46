"""`examine`: is a prioritised replay buffer what the paper describes?"""

import argparse
import json
import sys

from per_tutorial.conformance.adapters import ADAPTERS

HELP = "examine a prioritised replay buffer: is it what the paper describes?"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the buffer and the examination."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help=f"{', '.join(ADAPTERS)}, or FILE.py:CLASS, an adapter of your own "
        "(per_tutorial.conformance.Adapter)",
    )
    parser.add_argument("--check", nargs="+", metavar="CHECK", help="only these checks")
    parser.add_argument("--all", action="store_true", help="also n-step, files and robustness")
    parser.add_argument("--capacity", type=int, default=64, help="of the buffers (default: 64)")
    parser.add_argument("--batch-size", type=int, default=32, help="of minibatches (default: 32)")
    parser.add_argument("--seed", type=int, default=0, help="of the examination (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress line")


def run(arguments: argparse.Namespace) -> None:
    """Print the report; the exit status is 1 if a check of the algorithm fails."""
    from per_tutorial.conformance import Result, examine, find_adapter

    # One changing line, for a terminal only: the report repeats what matters.
    watched = sys.stderr.isatty() and not arguments.quiet

    def progress(result: Result) -> None:
        if watched:
            print(f"\r{result.check}: {result.verdict:30}", end="", file=sys.stderr)

    report = examine(
        find_adapter(arguments.name),
        arguments.seed,
        checks=arguments.check,
        everything=arguments.all,
        capacity=arguments.capacity,
        batch_size=arguments.batch_size,
        progress=progress,
    )
    if watched:
        print(file=sys.stderr)
    print(json.dumps(report.as_dict(), ensure_ascii=False) if arguments.json else report)
    if report.failures:
        sys.exit(1)
