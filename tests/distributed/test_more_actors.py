"""The experiment about more actors: what is declared, one small run, and what is shipped."""

import numpy as np
import pytest

from per_tutorial.distributed import more_actors
from per_tutorial.distributed.more_actors import ACTORS, Arm, the_arms, train


def test_each_control_differs_in_one_thing():
    arms = list(the_arms("cartpole"))
    assert len({arm.name for arm in arms}) == len(arms) == 17
    for actors in ACTORS[1:]:
        ladder, one = Arm("cartpole", actors), Arm("cartpole", actors, "one")
        copied = Arm("cartpole", actors, "copied")
        assert len(ladder.epsilons) == len(one.epsilons) == actors
        assert np.ptp(one.epsilons) == 0 < np.ptp(ladder.epsilons)
        assert np.log(one.epsilons).mean() == pytest.approx(np.log(ladder.epsilons).mean())
        np.testing.assert_array_equal(copied.epsilons, Arm("cartpole", 1).epsilons)
        assert {arm.updates_a_turn for arm in (ladder, one, copied)} == {50}
        assert Arm("cartpole", actors, equal="frames").updates_a_turn == 50 * actors
    np.testing.assert_array_equal(
        Arm("cartpole", 1, "one").epsilons, Arm("cartpole", 8, "one").epsilons[:1]
    )


@pytest.mark.parametrize(
    "arm, frames",
    [
        (Arm("cartpole", 1), 900),  # 600 before there are 500 windows; 4 turns have 50 updates each
        (Arm("cartpole", 4), 2_000),  # 800 of four actors
        (Arm("cartpole", 4, "copied"), 500),  # 200 of them are stored four times
        (Arm("cartpole", 4, equal="frames"), 800),
    ],
    ids=lambda value: value.name if isinstance(value, Arm) else str(value),
)
def test_frames_and_updates_of_a_run(arm, frames):
    run = train(arm, seed=0, updates=200)
    assert run["frames"] == frames
    assert len(run["scores"]) == more_actors.MOMENTS
    assert run == train(arm, seed=0, updates=200)


def test_stored_copies_are_of_one_actor(monkeypatch):
    added = []
    add = more_actors.Memory.add

    def noted(memory, windows, version):
        added.append(windows.observations.copy())
        return add(memory, windows, version)

    monkeypatch.setattr(more_actors.Memory, "add", noted)
    train(Arm("cartpole", 2, "copied"), seed=0, updates=20)
    for first, second in zip(added[::2], added[1::2], strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(added) >= 6
