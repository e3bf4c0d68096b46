"""Compiled loops: their machine code is kept on disk, where there is a place for it."""

import pytest
from numba.core import caching

from per_tutorial.replay.compiling import njit_cached

CACHE = getattr(caching, "CacheImpl", None) or caching._CacheImpl  # its name under older numba


def double(number):
    return 2 * number


def test_machine_code_is_kept():
    assert njit_cached(double)(21) == 42
    assert njit_cached(double).stats.cache_path


@pytest.mark.parametrize("options", [{}, {"inline": "always"}])
def test_where_nothing_can_be_written_it_is_compiled_in_every_process(options, monkeypatch):
    # As for a package that root installed, and a user without a home.
    monkeypatch.setattr(CACHE, "_locator_classes", [])
    compiled = njit_cached(**options)(double)
    assert compiled(21) == 42
    assert compiled.stats.cache_path is None
