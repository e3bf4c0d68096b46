"""The numbers of the explorable map: `python site/when_map.py` writes them anew.

They follow from the results that come with the package, and are committed as a module, so that the
page needs neither a build nor Python. A test compares the two.
"""

import json
import sys
from pathlib import Path

import numpy as np

SITE = Path(__file__).resolve().parent
sys.path.insert(0, str(SITE.parent))

from per_tutorial.worlds.knobs import Knobs  # noqa: E402
from per_tutorial.worlds.learning import CURVE  # noqa: E402
from per_tutorial.worlds.results import LENGTHS, NOISES, judged, load  # noqa: E402  # noqa: E402

DATA = SITE / "explorables" / "when-map" / "data.js"
METHODS = ("uniform", "per", "rank", "relo")
SCALE = 10_000  # an error of 1, in the units of the curves
FIRST = 0.2  # without noise nearly all of the learning is in the first fifth

HEAD = """\
// Written by site/when_map.py from the results that come with the package. A line is a world:
// the rarest last, and for each rarity the least noise first. It holds the learning rate and the
// curve of each method: the first error, then the changes from point to point, in 1 / scale. For
// each method but the first it holds the gain over the first with its interval, and the verdict.
"""


def written() -> str:
    """The module's text."""
    cells = load("map")["cells"]
    verdicts = judged(cells, METHODS[1:])
    lines = []
    for n in LENGTHS:
        for noise in NOISES:
            name = f"map-n{n}-noise{noise}-"
            found = [verdicts[name, method] for method in METHODS[1:]]
            world = {
                "rates": [cells[name][method]["rate"] for method in METHODS],
                "curves": [differences(cells[name][method]["curve"], noise) for method in METHODS],
                "gains": [[round(number, 4) for number in one.gain] for one in found],
                "verdicts": [one.verdict for one in found],
            }
            lines.append(compact(world))
    facts = {
        "methods": METHODS,
        "rarities": [Knobs(n).rarity for n in LENGTHS],
        "noises": NOISES,
        "shown": [share_shown(noise) for noise in NOISES],  # share of the training
        "points": CURVE,  # of a whole training
        "scale": SCALE,
    }
    exports = "".join(f"export const {name} = {compact(value)};\n" for name, value in facts.items())
    return f"{HEAD}\n{exports}export const worlds = [\n" + ",\n".join(lines) + ",\n];\n"


def differences(curve: list[float], noise: float) -> list[int]:
    """The part of a curve that is shown, in whole units: its first error, then each change."""
    errors = np.rint(SCALE * np.array(curve[: round(share_shown(noise) * CURVE)])).astype(int)
    return np.diff(errors, prepend=0).tolist()


def share_shown(noise: float) -> float:
    """How much of the training is shown in a world of this noise."""
    return 1.0 if noise else FIRST


def compact(value: object) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    DATA.write_text(written(), "utf-8")
    print(f"{DATA}: {DATA.stat().st_size:,} bytes")
