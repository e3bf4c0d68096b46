"""What the tests of the notebook room share: what was displayed, and what `check` said."""

from types import SimpleNamespace

import pytest


class Handle:
    """What `display(..., display_id=True)` returns; it passes updates on, without an id."""

    def __init__(self, displayed):
        self._displayed = displayed

    def update(self, thing, **options):
        self._displayed.append((thing, options))


@pytest.fixture
def shown(monkeypatch):
    """What was displayed or updated: a list of (object, options), the pictures' bundles
    among them.
    """
    from per_tutorial.notebook import explorers, page, videos

    displayed = []

    def display(thing, **options):
        displayed.append((thing, options))
        return Handle(displayed) if options.get("display_id") else None

    monkeypatch.setattr(page, "get_ipython", lambda: SimpleNamespace(execution_count=1))
    for module in (page, explorers, videos):
        monkeypatch.setattr(module, "display", display)
    return displayed


@pytest.fixture
def said(capsys):
    """(exercise, answer) → (whether it is right, what was printed)."""
    from per_tutorial.notebook.checking import check

    def say(name, answer):
        return check(name, answer), capsys.readouterr().out

    return say
