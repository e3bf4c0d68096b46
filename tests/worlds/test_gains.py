"""The recorded results of the worlds: what is read, and gains by hand."""

import pytest

from per_tutorial.worlds.gains import gains, load_cells


def test_a_gain_of_one_is_half_the_area():
    cell = {"uniform": {"area": [0.4, 0.1]}, "per": {"area": [0.2, 0.2]}}
    assert gains(cell, "per").tolist() == [1.0, -1.0]


def test_results_that_are_not_there_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="when-maps.json.gz"):
        load_cells("maps", tmp_path)
