"""The recorded results of the worlds: what is read, gains by hand, and who is judged how."""

import numpy as np
import pytest

from per_tutorial.worlds.knobs import Knobs
from per_tutorial.worlds.learning import Replaying, learn
from per_tutorial.worlds.results import gains, judged, load


def test_a_gain_of_one_is_half_the_area():
    cell = {"uniform": {"area": [0.4, 0.1]}, "per": {"area": [0.2, 0.2]}}
    assert gains(cell, "per").tolist() == [1.0, -1.0]


def test_a_clear_gain_helps_a_clear_loss_hurts_and_the_family_is_corrected():
    rng = np.random.default_rng(3)
    base, noise = np.full(30, 0.5), rng.normal(0, 0.1, 30)
    cells = {
        f"cell {k}": {
            "uniform": {"area": base},
            "per": {"area": base * 2**-shift * 2**noise},
        }
        for k, shift in enumerate((0.5, -0.5, 0.0))
    }
    found = judged(cells, ("per", "rank"), resamples=20_000)
    assert [one.verdict for one in found.values()] == ["helps", "hurts", "not told apart"]
    assert found["cell 0", "per"].gain.value == pytest.approx(0.5 - noise.mean())
    p_near = {"cell": {"uniform": {"area": base}, "per": {"area": base * 2 ** (noise - 0.05)}}}
    alone = judged(p_near, ("per",), resamples=20_000)
    many = judged(p_near | {f"{k}": cells["cell 2"] for k in range(40)}, ("per",), 20_000)
    assert alone["cell", "per"].verdict == "helps" and many["cell", "per"].verdict != "helps"


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
