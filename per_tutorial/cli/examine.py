"""`examine`: is a prioritised replay buffer what the paper describes?"""

import json
import sys
from typing import Annotated

import tyro


def examine(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    check: tuple[str, ...] = (),
    all: bool = False,
    capacity: int = 60,
    batch_size: int = 32,
    seed: int = 0,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Examine a prioritised replay buffer; exit status 1 if a check of the algorithm fails.

    Args:
        name: such as proportional, or FILE.py:CLASS, an adapter of your own
            (per_tutorial.conformance.Adapter)
        check: only these checks
        all: also n-step, files and robustness
        capacity: of the buffers
        batch_size: of minibatches
        seed: of the examination
        as_json: print the results as JSON
    """
    from per_tutorial.conformance import examine, find_adapter

    report = examine(
        find_adapter(name),
        seed,
        checks=list(check) or None,
        everything=all,
        capacity=capacity,
        batch_size=batch_size,
    )
    print(json.dumps(report.as_dict(), ensure_ascii=False) if as_json else report)
    if report.failures:
        sys.exit(1)
