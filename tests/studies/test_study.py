"""What a study declares must fit together; its fast form and its form for another device."""

import dataclasses

import pytest
from small_study import CONFIG, STUDY


@pytest.mark.parametrize(
    "changes, exception, message",
    [
        ({"metric": "luck"}, ValueError, "metric: must be one of 'score over training', 'final"),
        ({"at_once": 0}, ValueError, "at_once: must be at least 1, got 0"),
        ({"failed_below": "475"}, TypeError, "failed_below: must be a number, got '475'"),
        ({"curves": ("q_values",)}, ValueError, "curves: must be one of 'eps.*, got 'q_values'"),
        ({"seeds": range(1)}, ValueError, r"seeds: .* at least two, got range\(0, 1\)"),
        ({"name": "../up"}, ValueError, "name, arms: must be of a–z.*, got '../up'"),
        ({"arms": {"Uniform": CONFIG}}, ValueError, "name, arms: must be .*, got 'Uniform'"),
        (
            {"arms": STUDY.arms | {"short": CONFIG.replace(steps=150)}},
            ValueError,
            r"arms: must all have the same number of steps, got \[150, 300\]",
        ),
        (
            {"comparisons": (("per", "unifrom"),)},
            ValueError,
            "comparisons: must be one of 'uniform', 'per', got 'unifrom'",
        ),
    ],
)
def test_a_study_that_does_not_fit_together(changes, exception, message):
    with pytest.raises(exception, match=message):
        dataclasses.replace(STUDY, **changes)


def test_a_study_moves_to_another_device_with_nothing_else_changed():
    moved = STUDY.on("cuda")
    assert {config.device for config in moved.arms.values()} == {"cuda"}
    assert moved.on("cpu") == STUDY
