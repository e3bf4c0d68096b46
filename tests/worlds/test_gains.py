"""The recorded results of the worlds: what is read, and gains by hand."""

import numpy as np
import pytest

from per_tutorial.worlds.knobs import Knobs
from per_tutorial.worlds.learning import Replaying, learn
from per_tutorial.worlds.results import gains, load


def test_a_gain_of_one_is_half_the_area():
    cell = {"uniform": {"area": [0.4, 0.1]}, "per": {"area": [0.2, 0.2]}}
    assert gains(cell, "per").tolist() == [1.0, -1.0]


@pytest.mark.slow
def test_a_cell_of_the_map_comes_again():
    """Trained again in a few seconds; rounding differs between processors."""
    recorded = load("map")["cells"]["map-n3-noise0.5-"]
    for method in ("uniform", "per", "rank"):
        again = learn(Knobs(3, 0.5), Replaying(method), range(30), [recorded[method]["rate"]])
        np.testing.assert_allclose(again.area, recorded[method]["area"], rtol=1e-3)


def test_results_that_are_not_there_are_named():
    with pytest.raises(FileNotFoundError, match="when-maps.json.gz"):
        load("maps")
