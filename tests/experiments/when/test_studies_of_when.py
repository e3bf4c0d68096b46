"""What was declared of the map, mechanism and forecast, in small; and what is shipped of them."""

import numpy as np
import pytest

from per_tutorial.experiments.cells import run_cells
from per_tutorial.experiments.when import features, forecast, maps, mechanism
from per_tutorial.experiments.when.learning import METHODS, Replaying
from per_tutorial.experiments.when.results import gains, judged, load
from per_tutorial.experiments.when.worlds import Knobs, experience


def test_the_map_and_the_cuts_are_whole_and_shipped():
    the_map, cuts = list(maps.the_map()), list(maps.the_cuts())
    assert len({cell.knobs.n for cell in the_map}) >= 6 and len(the_map) >= 30
    for study, cells in (("map", the_map), ("cuts", cuts)):
        found = load(study)["cells"]
        assert set(found) == {cell.name for cell in cells}
        for cell in cells:
            for method in cell.methods:
                assert len(found[cell.name][method]["area"]) == 30
                rates = maps.rates_of(cell.knobs)
                tuning = found[cell.name][method]["tuning"]
                assert found[cell.name][method]["rate"] == rates[int(np.argmin(tuning))]


def test_a_cell_can_be_run_again():
    cell = maps.Cell("map", "", Knobs(3, 0.5), Replaying(), ("uniform", "per"))
    again = maps.run_cell(cell)
    shipped = load("map")["cells"]["map-n3-noise0.5-"]
    for method in cell.methods:
        assert again[method]["rate"] == shipped[method]["rate"]
        np.testing.assert_allclose(again[method]["area"], shipped[method]["area"], rtol=1e-3)


def test_a_study_that_was_stopped_continues(tmp_path, monkeypatch, capsys):
    cells = list(maps.the_map())[:3]
    asked, alive = [], [True, False, True, True]

    def run_cell(cell):
        if not alive[len(asked)]:
            asked.append("stopped")
            raise KeyboardInterrupt
        asked.append(cell.name)
        return {"n": cell.knobs.n}

    with pytest.raises(KeyboardInterrupt):
        run_cells("when-map", iter(cells), run_cell, tmp_path)
    whole = run_cells("when-map", iter(cells), run_cell, tmp_path)
    assert asked == [cells[0].name, "stopped", cells[1].name, cells[2].name]
    monkeypatch.setattr("per_tutorial.common.data.CHECKOUT", whole.parent)
    monkeypatch.chdir(tmp_path)
    found = load("map")
    assert found["cells"] == {cell.name: {"n": cell.knobs.n} for cell in cells}
    assert {"study", "seconds", "versions"} <= set(found)


def test_a_verdict_needs_holms_correction():
    rng = np.random.default_rng(3)
    base = np.full(30, 0.5)
    cells = {
        f"cell {k}": {
            "uniform": {"area": base},
            "per": {"area": base * 2 ** rng.normal(-0.5 * (k == 0), 0.5, 30)},
        }
        for k in range(40)
    }
    found = judged(cells, ["per"], 10_000)
    assert found["cell 0", "per"].verdict == "helps"
    assert [one.verdict for one in found.values()].count("not told apart") == 39
    alone = [judged({name: cells[name]}, ["per"], 1000)[name, "per"].verdict for name in cells]
    # Without the correction some are told apart by chance
    assert alone.count("not told apart") < 39
    assert found["cell 0", "per"].gain.value == pytest.approx(gains(cells["cell 0"], "per").mean())
    flipped = {"one": {"uniform": cells["cell 0"]["per"], "per": cells["cell 0"]["uniform"]}}
    assert judged(flipped, ["per"], 1000)["one", "per"].verdict == "hurts"


def test_the_outlook_is_that_of_single_transitions():
    knobs = Knobs(4, noise=0.5, slip=0.2)
    met = experience(knobs, [1, 2], 50)
    q = np.random.default_rng(0).normal(size=(2, 8, 2))
    found = mechanism.outlook(knobs, q, met, 40)
    chances, rewards = knobs.model()
    truth = np.vstack([knobs.true_values, np.zeros((4, 2))])
    for run in range(2):
        for k in range(40):
            s, a, r, following, ended = (column[run, k] for column in met)
            delta = r + knobs.gamma * (not ended) * q[run, following].max() - q[run, s, a]
            mean = rewards[s, a] + knobs.gamma * sum(
                chances[s, a, t] * q[run, t].max() for t in range(8)
            )
            assert found.deltas[run, k] == pytest.approx(delta)
            assert found.errors[run, k] == pytest.approx(q[run, s, a] - truth[s, a])
            assert found.means[run, k] == pytest.approx(mean - q[run, s, a])
            moved = q[run, s, a] + 0.1 * delta
            less = (q[run, s, a] - truth[s, a]) ** 2 - (moved - truth[s, a]) ** 2
            brought = mechanism.brought(found.errors, 0.1 * found.deltas)
            assert brought[run, k] == pytest.approx(less)


def test_draws_of_per_have_its_chances():
    deltas = np.array([1.0, -4.0, 0.0, 2.0])
    counts, rng = np.zeros(4), np.random.default_rng(0)
    for _ in range(20):
        drawn, weights = mechanism.minibatches_of_per(deltas, 0.4, rng)
        counts += np.bincount(drawn.ravel(), minlength=4)
        assert weights.max(axis=1).tolist() == [1.0] * len(weights)
    expected = (np.abs(deltas) + 1e-6) ** 0.6
    np.testing.assert_allclose(counts / counts.sum(), expected / expected.sum(), atol=0.01)


def test_the_frozen_rule_is_the_fit_to_the_map():
    found, cells = load("mechanism")["cells"], load("map")["cells"]
    names = [cell.name for cell in maps.the_map()]
    means = [features.mean_features(found[name]["features"]) for name in names]
    numbers, s = forecast.fit(means, [gains(cells[name], "per").mean() for name in names])
    np.testing.assert_allclose(numbers, forecast.NUMBERS, atol=2e-3)
    assert s == pytest.approx(forecast.SPREAD, abs=2e-3)


def test_the_rule_says_yes_no_or_undecided():
    agent = {"concentration": 1.0, "repeat": 0.5}
    for gain, word in ((0.2, "yes"), (-0.2, "no"), (0.01, "undecided")):
        assert forecast.answer(agent, (gain - 0.3, 0.2, 0.2), 0.1) == (word, pytest.approx(gain))


@pytest.mark.slow
@pytest.mark.parametrize("test", forecast.TESTS)
def test_the_worlds_of_a_test_have_features_and_a_truth(test):
    shipped, truths = load(test)["cells"], forecast.truths(test)
    assert set(shipped) == set(truths) == set(forecast.TESTS[test])
    for name, truth in truths.items():
        assert truth.helps in ("yes", "no", "undecided")
        assert (truth.helps == "undecided") or (truth.gain.value > 0) == (truth.helps == "yes")
        assert len(shipped[name]["features"]) == (3 if name.startswith("minatar-") else 5)
    # The truths of the first test were kept beside the features when it ran.
    if test == "forecast":
        kept = {name: world["truth"] for name, world in shipped.items()}
        assert kept == {name: truth.helps for name, truth in truths.items()}


def test_features_of_an_agent_that_learns():
    from per_tutorial import DQNConfig

    config = DQNConfig(steps=2000, hidden=(8,), learning_starts=50)
    (run,) = features.features_of_agent(config, [0])
    assert set(run) == set(features.FEATURES) and np.isfinite(list(run.values())).all()
    assert 0 < run["coverage"] <= 1 and -1 <= run["repeat"] <= 1 and run["concentration"] >= 0


def test_methods_are_those_of_the_registry():
    from per_tutorial.replay import SAMPLERS

    assert {name for name, *_ in METHODS.values()} <= set(SAMPLERS)
