"""What a bug costs on the Blind Cliffwalk."""

import numpy as np
import pytest

from per_tutorial.cliffwalk.environment import true_values
from per_tutorial.experiments.known_bugs import KNOWN_BUGS, cliffwalk
from per_tutorial.experiments.known_bugs.cliffwalk import (
    ARMS,
    BUGS,
    CONVERGED,
    LIMIT,
    RUNS,
    STATES,
    learn,
    load_walks,
    logarithms,
    measure,
    measure_arms,
    report,
)
from per_tutorial.replay.contracts import Batch

# The Blind Cliffwalk -----------------------------------------------------------------------------


def test_a_minibatch_is_learned_one_transition_after_the_other():
    q = np.array([[[0.1, 0.2], [0.4, 0.3]]])
    fields = {
        "observations": [0, 0],
        "actions": [1, 1],
        "rewards": [1.0, 0.0],
        "next_observations": [1, 1],
        "terminated": [False, True],
        "weights": [1.0, 0.5],
        "indices": [0, 1],
    }
    batch = Batch(**{name: np.array([values]) for name, values in fields.items()})
    td_errors = learn(q, batch, discount=0.5)
    # Q(0, 1): 0.2 + ¼ (1 + ½ · 0.4 − 0.2) = 0.45, then 0.45 + ¼ · ½ (0 − 0.45)
    np.testing.assert_allclose(td_errors, [[1.0, -0.45]])
    np.testing.assert_allclose(q, [[[0.1, 0.45 - 0.45 / 8], [0.4, 0.3]]])


def test_a_run_depends_on_no_other():
    two, three = measure("per", runs=2), measure("per", runs=3)
    assert two == three[:2]
    assert all(walk.error < CONVERGED and walk.replayed % 8 == 0 for walk in three)


def test_a_run_that_does_not_converge_is_stopped():
    walks = measure("uniform", runs=2, limit=800)
    assert [walk.replayed for walk in walks] == [800, 800]
    assert all(walk.error >= CONVERGED for walk in walks)


def test_what_a_file_holds_is_not_measured_again(tmp_path, monkeypatch):
    measured = []

    def short(arm):
        measured.append(arm)
        return measure(arm, runs=2, limit=80)

    monkeypatch.setattr(cliffwalk, "measure", short)
    monkeypatch.setattr(cliffwalk, "ARMS", ("per", "uniform"))
    first = measure_arms(tmp_path / "walks.csv")
    monkeypatch.setattr(cliffwalk, "ARMS", ("per", "uniform", "tie-branch"))
    both = measure_arms(tmp_path / "walks.csv")
    assert measured == ["per", "uniform", "tie-branch"]
    assert both[:4] == first and load_walks(tmp_path / "walks.csv") == both
    monkeypatch.setattr(cliffwalk, "SETTINGS", {"states": 3})
    with pytest.raises(ValueError, match="was made with"):
        measure_arms(tmp_path / "walks.csv")


def test_the_shipped_walks_are_whole():
    walks = load_walks()
    assert [(walk.arm, walk.run) for walk in walks] == [(a, r) for a in ARMS for r in range(RUNS)]
    assert set(BUGS) <= set(KNOWN_BUGS)
    for walk in walks:
        assert (walk.replayed == LIMIT) == (walk.error >= CONVERGED)
        # Q is right to within the mean squared error, of which half of the entries count.
        if walk.error < CONVERGED:
            truth = true_values(STATES).max(axis=1).mean()
            assert abs(walk.value - truth) < 2 * np.sqrt(2 * CONVERGED)
    # and this package measures nearly the same, on any processor
    assert measure("per", runs=1)[0].replayed == pytest.approx(walks[0].replayed, rel=0.1)


def test_the_report_compares_every_arm_with_per():
    walks = load_walks()
    text, logs = report(walks), logarithms(walks)
    factor = 2 ** (logs["uniform"] - logs["per"]).mean()
    assert f"factor  {factor:6.2f}" in text and "factor ≥" in text
    for arm in ARMS:
        (line,) = [line for line in text.splitlines() if line.startswith(f"{arm} ")]
        assert ("factor" in line) == (arm != "per")
