"""The search for a reading of the paper: the plain one is ours, and each other one changes runs."""

import paper_readings
import pytest
from notebook_files import ROOT
from paper_readings import BOTH, LINEAR, SAMPLERS, Reader

from per_tutorial.experiments.cliffwalk.learner import CliffwalkLearner

LIMIT = 20_000
FORCED = "discount: 1 − 1/(n + 1); memory: a forced last state"
ALL = [(panel, sampler) for panel, samplers in SAMPLERS.items() for sampler in samplers]


def updates(panel, sampler, reading, n=4):
    return [
        Reader(panel, n, sampler, reading, seed).updates_until_converged(LIMIT) for seed in range(3)
    ]


@pytest.mark.parametrize(("panel", "sampler"), ALL)
def test_the_plain_reading_is_our_learner(panel, sampler):
    alpha = paper_readings.ATARI_ALPHA.get(sampler, 0.0)
    learners = [
        CliffwalkLearner(4, sampler, linear=panel == "linear", alpha=alpha, seed=seed)
        for seed in range(3)
    ]
    assert [learner.run() for learner in learners] == updates(panel, sampler, {})


@pytest.mark.parametrize(
    ("panel", "detail", "option"),
    [
        (panel, detail, option)
        for panel, details in {"tabular": BOTH, "linear": LINEAR}.items()
        for detail, options in details.items()
        for option in options[1:]
    ],
)
def test_each_other_reading_changes_some_sampler(panel, detail, option):
    plain = [updates(panel, sampler, {}) for sampler in SAMPLERS[panel]]
    read = [updates(panel, sampler, {detail: option}) for sampler in SAMPLERS[panel]]
    assert read != plain


def test_sorted_ranks_stay_sorted():
    reader = Reader("linear", 5, "rank", {"ranks": "sorted"}, 0)
    reader.updates_until_converged(100)
    keys, slots, ranks = (
        field[0].tolist()
        for field in (reader._choice.keys, reader._choice.slots, reader._choice.ranks)
    )
    assert keys[1:] == sorted(keys[1:], reverse=True)
    assert [ranks[slot] for slot in slots[1:]] == list(range(1, len(keys)))


def test_the_forced_state_is_learned():
    reader = Reader("tabular", 3, "uniform", {"memory": "a forced last state"}, 0)
    assert reader.updates_until_converged(LIMIT) < LIMIT
    discount = 1 - 1 / 3
    assert reader.q[3, 0] == pytest.approx(1, abs=0.2)
    assert reader.q[0, 0] == pytest.approx(discount**3, abs=0.2)


def test_the_results_have_every_reading_once():
    rows = paper_readings.load_results()
    for panel in SAMPLERS:
        names = [paper_readings.name_of(reading) for reading in paper_readings.readings(panel)]
        lengths = sum(len(paper_readings.lengths(panel, sampler)) for sampler in SAMPLERS[panel])
        found = [row.reading for row in rows if row.panel == panel]
        assert found == [name for name in names for _ in range(lengths)]
        assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def found():
    return paper_readings.ranges(paper_readings.load_results())


@pytest.mark.parametrize(
    ("panel", "reading", "shift", "sampler", "said"),
    [
        ("tabular", "plain", 0, "oracle", "0.96 to 1.05"),
        ("tabular", "plain", 0, "greedy", "0.99 to 1.24"),
        ("tabular", "plain", 0, "uniform", "1.06 to 1.78"),
        ("tabular", FORCED, 1, "oracle", "0.95 to 1.02"),
        ("tabular", FORCED, 1, "uniform", "0.81 to 1.19"),
        ("tabular", FORCED, 1, "greedy", "0.51 to 0.91"),
        ("linear", "ranks: sorted; alpha: 0.9", 1, "uniform", "0.39 to 0.60"),
        ("linear", "first: errors; ranks: sorted", 1, "oracle", "0.57 to 0.77"),
        ("linear", "ranks: sorted; alpha: 1", 0, "rank", "1.65 to 1.70"),
    ],
)
def test_ratios_that_stand_in_the_results(found, panel, reading, shift, sampler, said):
    low, high = found[panel, reading, shift][sampler]
    assert said == f"{low:.2f} to {high:.2f}"
    assert said in " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())


def test_no_reading_explains_a_panel(found):
    assert min(paper_readings.distance(curves.values()) for curves in found.values()) > 1.6
    plain = found["tabular", "plain", 1].values()
    assert all(high < 1 for _, high in plain)  # "all three are too low"
    rank = {
        key: paper_readings.distance([curves["rank"]])
        for key, curves in found.items()
        if key[0] == "linear"
    }
    for reading in ("ranks: sorted; alpha: 0.9", "first: errors; ranks: sorted"):
        assert rank["linear", reading, 1] < 1.09
    assert min(rank, key=lambda key: (key[2], rank[key])) == (
        "linear",
        "ranks: sorted; alpha: 1",
        0,
    )
