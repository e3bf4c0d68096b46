"""Attacks the package from outside, and lists what did not hold.

    .venv/bin/python tools/attack.py ATTACK … [--count N] [--seed S] [--quick]

The attacks are files, operations, kills, interrupts and commands.

An attack is repeated as often as `COUNT` in its module says, or as --count says; with --quick, as
often as fits into seconds. The seed decides everything but the moments of kills and interrupts. The
status is 1 if something was found.
"""

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ATTACKS = ("files", "operations", "kills", "interrupts", "commands")
QUICK = {
    "files": 150,
    "operations": 20_000,
    "kills": 2,
    "interrupts": 700,
    "commands": 20,
}


def main(words: list[str] | None = None) -> int:
    """Run the attacks that the words name; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "attacks", nargs="+", choices=ATTACKS, metavar="ATTACK", help=", ".join(ATTACKS)
    )
    parser.add_argument("--count", type=int, help="files, elements, kills, interrupts or commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    chosen = parser.parse_args(words)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a forked process has no other threads
    sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tests" / "support")]
    found = False
    for name in chosen.attacks:
        start = time.perf_counter()
        module = importlib.import_module(f"attacks.{name}")
        count = chosen.count or (QUICK[name] if chosen.quick else module.COUNT)
        for finding in module.attack(count, chosen.seed):
            print(finding)
            found = True
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
