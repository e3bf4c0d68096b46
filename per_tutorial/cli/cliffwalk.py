"""`cliffwalk`: the paper's figures 1 and 2."""

import argparse
import sys
from typing import TYPE_CHECKING

from per_tutorial.cli.files import check_targets
from per_tutorial.common.arguments import whole_number

if TYPE_CHECKING:
    from per_tutorial.experiments.cliffwalk.measurements import Point

HELP = "reproduce the paper's figures 1 and 2 on the Blind Cliffwalk"

MAX_LENGTH = 20  # states; each further one doubles time and memory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the results file and the longest walk."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="cliffwalk.csv",
        help="results, continued if they exist; the picture is FILE.png (default: %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=int,
        default=16,
        help=f"states of the longest walk, 2 to {MAX_LENGTH} (default: %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print the table of ratios, and draw the figures."""
    longest = whole_number("--longest", arguments.longest, minimum=2, maximum=MAX_LENGTH)
    picture = f"{arguments.out}.png"
    check_targets(out=arguments.out, **{"out, the picture": picture if arguments.out else None})

    from matplotlib.figure import Figure

    from per_tutorial.common.files import atomic_write
    from per_tutorial.experiments.cliffwalk.figures import draw_figures, ratio_table
    from per_tutorial.experiments.cliffwalk.measurements import measure_walks

    def progress(point: "Point") -> None:
        if not arguments.quiet:
            alpha = f", α {point.alpha}" if point.alpha else ""
            print(f"{point.figure}: {point.sampler}{alpha}, {point.n} states", file=sys.stderr)

    try:
        walks = measure_walks(arguments.out, longest, progress)
    except ValueError as error:
        if not str(error).startswith("path: "):
            raise
        said = str(error).replace("path", "--out", 1)  # its name on the command line
        raise ValueError(f"{said}; must be a new file, or one that this command wrote") from error
    print(ratio_table(walks))
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    draw_figures(figure, walks)
    with atomic_write(picture) as file:
        figure.savefig(file, format="png", dpi=110)
