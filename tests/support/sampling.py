"""Parameters of which some are tried by default, and the others by `make test-all`."""

import pytest


def one_in(number, rows):
    """Every ``number``-th row, the first one among them."""
    return [_param(row, k % number == 0) for k, row in enumerate(rows)]


def one_for_each(key, rows):
    """The first row of each ``key(row)``."""
    keys = [key(row) for row in rows]
    return [_param(row, keys.index(keys[k]) == k) for k, row in enumerate(rows)]


def _param(row, by_default):
    marks = [] if by_default else pytest.mark.exhaustive
    return pytest.param(*(row if isinstance(row, tuple) else [row]), marks=marks)
