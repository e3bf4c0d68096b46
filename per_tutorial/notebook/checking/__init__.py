"""`check`, which the notebooks call: it says whether an answer is right, or what is probably wrong.

| file | what it holds |
|---|---|
| here | `check` |
| `declaring` | what an exercise is, and how an answer to it is examined |
| `answers` | calls an answer and reads what it returns, whatever it does |
| `comparing` | compares an answer with the right one, and finds the mistake that explains it |
| `tensors` | the same for torch: arguments, results and gradients |

The exercises themselves are data in `exercises`, one file for each notebook.
"""

import re
import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from per_tutorial.notebook.checking.answers import Hint, Unsolved, is_stub
from per_tutorial.notebook.checking.declaring import CHECKERS, Checker

EXERCISES = "per_tutorial.notebook.exercises"


def check(name: str, answer: object) -> bool:
    """Print whether the answer to an exercise is right; return True if it is, False if not.

    Never raises because of the answer, so that a notebook runs to its end while it is unsolved.

    Args:
        name: the exercise, such as "01.2".
        answer: a value or a function; `...` (or a function that returns it) counts as unsolved.
    """
    checker = checker_of(name)
    mistake: str | None
    try:
        if is_stub(answer):
            raise Unsolved
        # The hint says what is wrong; NumPy's warnings about the same would only hide it.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            mistake = checker(answer)
    except Unsolved:
        print(
            f"○ {name}: not solved yet. "
            "Put your answer in place of the dots and run the cell again."
        )
        return False
    except Hint as hint:
        mistake = str(hint)
    except Exception as error:  # noqa: BLE001  (an answer may be an object that does anything)
        mistake = f"the check cannot read this answer ({type(error).__name__}: {error})."
    print(f"✓ {name}: right." if mistake is None else f"✗ {name}: {mistake}")
    return mistake is None


def checker_of(name: str) -> Checker:
    """The checker of an exercise; imports the exercises of its notebook on first use."""
    number = re.match(r"\d\d(?=\.)", name)
    module = f"{EXERCISES}.notebook_{number[0]}" if number else ""
    if name not in CHECKERS and module and find_spec(module):
        import_module(module)
    if name not in CHECKERS:
        raise ValueError(f"name: must be an exercise such as '01.2', got {name!r}")
    return CHECKERS[name]
