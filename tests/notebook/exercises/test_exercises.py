"""Each exercise: the page's solution is right, its stub is not solved, usual mistakes hear hints.

The solutions and stubs are those of the pages themselves; the mistakes those of the exercises.
"""

import json
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import HuberLoss

from per_tutorial.conformance.plain import Plain
from per_tutorial.notebook.checking import EXERCISES

ROOT = Path(__file__).resolve().parents[3]
for path in (ROOT / "per_tutorial/notebook/exercises").glob("notebook_*.py"):
    import_module(f"per_tutorial.notebook.exercises.{path.stem}")

NAMES = {
    "np": np,
    "torch": torch,
    "smooth_l1_loss": torch.nn.functional.smooth_l1_loss,
    "Plain": Plain,
}


def on_pages():
    """{exercise: (source of its cell, source of the solution, the name that is checked)}."""
    found = {}
    for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"):
        sources = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
        for cell, following in pairwise(sources):
            called = re.search(r'^check\("(\d\d\.\d)", (\w+)\)', cell, re.MULTILINE)
            if called:
                solution = re.search(r"```python\n(.*?)```", following, re.DOTALL)[1]
                found[called[1]] = cell[: called.start()], solution, called[2]
    return found


ON_PAGES = on_pages()


def defined(source, name):
    names = dict(NAMES)
    exec(source, names)
    return names[name]


def test_pages_and_exercises_belong_together():
    assert ON_PAGES.keys() == EXERCISES.keys()


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_of_the_page_is_right_and_its_stub_is_not_solved(said, name):
    stub, solution, answer = ON_PAGES[name]
    assert said(name, defined(solution, answer)) == (True, f"✓ {name}: right.\n")
    right, words = said(name, defined(stub, answer))
    assert not right and "not solved yet" in words and words.count("\n") == 1


@pytest.mark.parametrize("name", EXERCISES)
def test_usual_mistakes_hear_their_hints(said, name):
    hints = EXERCISES[name].hints
    assert 3 <= len(hints) <= 5
    for answer, hint in hints:
        right, words = said(name, answer)
        assert not right and words.rstrip().endswith(hint)
        assert words.count("\n") == 1


class Odd:
    """An object that fails whatever one does with it."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    __eq__ = __array__ = __len__ = __iter__ = __float__ = __bool__ = lambda self, *given: 1 / 0


VALUES = [None, np.nan, 1j, "x", (), {1, 2}, [1, [2]], np.zeros((2, 2)), len, Odd()]
ODD = [*VALUES, *(lambda *given, value=value: value for value in VALUES)]
ODD += [lambda: 0, lambda *given: given, lambda *given: iter(given)]


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.slow
def test_no_answer_raises_and_nonsense_is_not_right(said, name):
    for answer in ODD:
        right, words = said(name, answer)
        assert not right and words.startswith(f"✗ {name}: ")


OTHER_WAYS = [
    ("00.2", lambda n, a: np.cumsum((np.arange(n, dtype="float32") + 1) ** -a)[-1]),
    ("01.1", torch.tensor([1, 3, 7, 14])),
    ("02.2", lambda step: torch.tensor(np.clip(np.float32(1.18 - 0.0009 * step), 0.1, 1))),
    ("03.1", lambda P, i, b: [(P[k] / min(P[i])) ** -b for k in i]),
    ("03.3", lambda d, w: w.flatten() @ d**2 / (2 * len(d))),
    ("05.1", lambda f, r: [torch.as_tensor(f)[-2:].amax(0), sum(r)]),
    ("06.2", lambda v, t, w: (w * HuberLoss(reduction="none")(v, t).squeeze()).mean()),
    ("08.1", lambda m, t, a: torch.tensor(m, dtype=float) * t ** (-1 / a)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer"), OTHER_WAYS)
def test_right_answers_pass_in_other_forms(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


def find_by_walking(nodes, prefix):
    leaves = nodes[len(nodes) // 2 :]
    for leaf, value in enumerate(leaves):
        if prefix < value:
            return leaf
        prefix -= value
    return max(leaf for leaf, value in enumerate(leaves) if value > 0)


def test_walks_and_changes_in_place_are_asked_for(said):
    assert "it read 1024 nodes of a tree with 1024 leaves" in said("01.2", find_by_walking)[1]
    set_leaf = EXERCISES["01.3"].right
    words = said("01.3", lambda nodes, *rest: set_leaf(list(nodes), *rest))[1]
    assert "change `nodes` itself, and return it" in words
    assert "change `nodes` itself" in said("01.3", lambda *given: set_leaf(*given) and None)[1]


def test_a_patient_is_not_cured_by_deleting_its_method(said):
    assert "`weights` is deleted" in said("07.2", type("Deleted", (Plain,), {}))[1]
