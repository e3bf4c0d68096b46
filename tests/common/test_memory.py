"""What is promised is compared with what there is, all buffers together."""

import os
import warnings
import weakref

import pytest

from per_tutorial.common import memory
from per_tutorial.replay import ReplayBuffer


class Owner:
    pass


def test_all_owners_count_together_until_they_are_gone(monkeypatch):
    monkeypatch.setattr(memory, "_promised", weakref.WeakKeyDictionary())
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    one, two = Owner(), Owner()
    with warnings.catch_warnings(action="error"):
        memory.promise_memory(one, "capacity", 60)
    with pytest.warns(UserWarning, match="^capacity: all replay buffers together will need"):
        memory.promise_memory(two, "capacity", 60)
    del one
    with warnings.catch_warnings(action="error"):
        memory.promise_memory(two, "capacity", 60)


def test_what_is_available_is_part_of_the_machines_memory():
    available = memory.available_memory()
    if available is not None:
        assert 0 < available < 1.1 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_buffer_promises_its_rows(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    with pytest.warns(UserWarning, match="choose a smaller one"):
        buffer = ReplayBuffer(1000, (4,), runs=3)
    assert memory._promised[buffer.storage] == buffer.storage.rows.nbytes
