"""What `check` says of an answer."""

import pytest

from per_tutorial.notebook.checking import check


@pytest.fixture
def said(capsys):
    """(exercise, answer) → (whether it is right, what was printed)."""

    def say(name, answer):
        return check(name, answer), capsys.readouterr().out

    return say
