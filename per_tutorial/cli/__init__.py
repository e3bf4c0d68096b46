"""The command line, one file per command.

A command is a module of this package with the command's name, which is in `COMMANDS`. It defines
``HELP`` (a line for the list of commands), ``add_options(parser)`` and ``run(arguments)``. Its
imports at the top need only NumPy and numba, so every installation lists all commands.
"""

import argparse
import difflib
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module

from per_tutorial.common.lazy import missing_extra

COMMANDS = ("train", "evaluate", "study", "cliffwalk", "examine")

PROGRAM = "python -m per_tutorial"
EXAMPLES = f"""\
examples:
  {PROGRAM} train --sampler proportional --double --save agent.safetensors
  {PROGRAM} evaluate agent.safetensors --video episode.mp4
  {PROGRAM} examine proportional

{PROGRAM} COMMAND --help lists the options of a command."""


def main(words: list[str] | None = None) -> None:
    """Run a command. An error becomes one line and exit status 1; Ctrl-C exits with 130.

    Args:
        words: of the command line; None: those of the process. Without words, lists the commands.
    """
    parser = _parser()
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        arguments.parser.error(
            f"unrecognized arguments: {' '.join(unknown)}{_meant(unknown[0], arguments.parser)}"
        )
    if arguments.run is None:
        parser.print_help()
        return
    usual = warnings.formatwarning
    try:
        # One line each, like errors: the place in the package means nothing to a user.
        warnings.formatwarning = lambda message, *_: f"{PROGRAM}: warning: {message}\n"
        arguments.run(arguments)
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        sys.exit(130)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"{PROGRAM}: {error}")
    except ImportError as error:
        if (error.name or "").startswith("per_tutorial"):  # our own bug, not a missing extra
            raise
        sys.exit(f"{PROGRAM}: {missing_extra(error, arguments.command)}")
    except (MemoryError, RuntimeError) as error:
        if not _is_about_memory(error):
            raise
        sys.exit(f"{PROGRAM}: not enough memory for these settings ({_first_line(error)})")
    finally:
        warnings.formatwarning = usual


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Train, evaluate and compare agents; reproduce the paper; examine a buffer.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=None, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name in COMMANDS:
        command = import_module(f"{__name__}.{name}")
        one = commands.add_parser(name, help=command.HELP)
        one.set_defaults(run=command.run, parser=one)
        one.register("type", int, partial(_number, int, "a whole number"))
        one.register("type", float, partial(_number, float, "a number"))
        command.add_options(one)
    return parser


def _number(kind: Callable[[str], float], words: str, text: str) -> float:
    """`kind(text)`, for argparse's `type`, with an error that says what is allowed."""
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {words}, got {text!r}") from None


def _meant(unknown: str, parser: argparse.ArgumentParser) -> str:
    """A hint at the parser's option that is most similar to an unknown one, or ""."""
    options = {option.strip("-"): option for option in parser._option_string_actions}
    near = difflib.get_close_matches(unknown.strip("-").partition("=")[0], options, n=1)
    return f" (did you mean {options[near[0]]}?)" if near else ""


def _is_about_memory(error: Exception) -> bool:
    """Whether memory ran out, which PyTorch reports by a plain RuntimeError."""
    return isinstance(error, MemoryError) or "alloc" in str(error) or "out of memory" in str(error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
