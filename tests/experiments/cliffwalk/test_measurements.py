"""The updates that walks take: measured, continued, refused; those that come with the package."""

import pytest

from per_tutorial.experiments.cliffwalk import measurements
from per_tutorial.experiments.cliffwalk.measurements import (
    RUNS,
    load_results,
    measure,
    measure_walks,
    points,
    updates_by_point,
)


def test_measuring_continues_where_it_stopped(tmp_path):
    path = tmp_path / "results.csv"
    measured = []
    measure_walks(path, longest=2, progress=measured.append)
    assert measured == points(2)
    more = []
    rows = measure_walks(path, longest=3, progress=more.append)
    assert set(more) == set(points(3)) - set(measured)
    assert load_results(path) == rows
    assert len(rows) == RUNS * len(points(3))


def test_what_is_stopped_in_the_middle_loses_one_point(tmp_path):
    path = tmp_path / "results.csv"

    def stop_at_third(point, seen=[]):  # noqa: B006  (it counts)
        seen.append(point)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_walks(path, longest=3, progress=stop_at_third)
    assert len(load_results(path)) == 2 * RUNS


def test_results_of_other_settings_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    measure_walks(path, longest=2)
    monkeypatch.setitem(measurements.SETTINGS, "step_size", 0.5)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="was made with"):
        measure_walks(path, longest=3)
    assert path.read_bytes() == before


def test_damaged_results_are_named(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="holds no results"):
        load_results(path)


@pytest.mark.parametrize(
    "change", [("uniform", "unifrm"), ("tabular,2", "tabular,1"), (",2,", ",x,")]
)
def test_rows_of_what_is_not_measured_are_refused(change, tmp_path):
    path = tmp_path / "results.csv"
    measure_walks(path, longest=2)
    path.write_text(path.read_text(encoding="utf-8").replace(*change, 1), encoding="utf-8")
    with pytest.raises(ValueError, match="holds no results"):
        load_results(path)


def test_the_shipped_results_are_complete_and_what_the_code_gives():
    rows = load_results()
    assert {walk.point for walk in rows} == set(points())
    assert len(rows) == RUNS * len(points())
    for walk in rows[:: len(rows) // 40]:
        if walk.n <= 9:
            again = measure(walk.point, walk.run).updates  # processors round differently
            assert again == pytest.approx(walk.updates, rel=0.01)


def test_a_run_that_never_converged_counts_as_infinite():
    walk = load_results()[0]
    walks = [walk, walk._replace(updates=float("nan"))]
    assert updates_by_point(walks) == {walk.point: [walk.updates, float("inf")]}
