"""The command line: one file per command, read by tyro.

A command is a function of the module with its name, which is in `COMMANDS`; its arguments are the
options, its docstring the help. What a command needs beyond NumPy and numba is imported inside.
"""

import sys
import warnings
from importlib import import_module

from per_tutorial.common.lazy import missing_extra

COMMANDS = ("train", "evaluate", "study", "examine")

PROGRAM = "python -m per_tutorial"
DESCRIPTION = f"""\
Train and evaluate agents, run studies, examine a replay buffer. Examples:

{PROGRAM} train --sampler proportional --double --save agent.safetensors

{PROGRAM} evaluate agent.safetensors --video episode.mp4

{PROGRAM} examine proportional
"""


def main(words: list[str] | None = None) -> None:
    """Run a command. An error becomes one line and exit status 1; Ctrl-C exits with 130.

    Args:
        words: of the command line; None: those of the process. Without words, lists the commands.
    """
    words = sys.argv[1:] if words is None else words
    command = words[0] if words and words[0] in COMMANDS else "the command line"
    usual = warnings.formatwarning
    try:
        # One line each, like errors: the place in the package means nothing to a user.
        warnings.formatwarning = lambda message, *_: f"{PROGRAM}: warning: {message}\n"
        import tyro

        commands = {name: getattr(import_module(f"{__name__}.{name}"), name) for name in COMMANDS}
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog=PROGRAM,
            description=DESCRIPTION,
            args=words or ["--help"],
            config=(tyro.conf.OmitArgPrefixes,),  # --alpha, not --config.alpha
        )
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        sys.exit(130)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"{PROGRAM}: {error}")
    except ImportError as error:
        if (error.name or "").startswith("per_tutorial"):  # our own bug, not a missing extra
            raise
        sys.exit(f"{PROGRAM}: {missing_extra(error, command, command)}")
    finally:
        warnings.formatwarning = usual
