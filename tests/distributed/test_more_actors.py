"""The experiment about more actors: what is declared, one small run, and what is shipped."""

from pathlib import Path

import numpy as np
import pytest

from per_tutorial.distributed import more_actors
from per_tutorial.distributed.more_actors import ACTORS, Arm, the_arms, train
from per_tutorial.experiments.cells import load_cells
from per_tutorial.experiments.statistics.estimates import paired_difference


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


@pytest.mark.slow
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


def test_the_page_says_what_is_shipped():
    text = (Path(__file__).parents[2] / "docs" / "results.md").read_text("utf-8")
    section = text.split("## Do more actors learn better?")[1].split("\n## ")[0]
    said = " ".join(section.split()).replace("−", "-")
    for world, title in (("cartpole", "CartPole"), ("mountaincar", "MountainCar")):
        cells = load_cells(f"actors-{world}")["cells"]
        assert set(cells) == {arm.name for arm in the_arms(world)}
        scores = {name: np.mean(cell["scores"], axis=1) for name, cell in cells.items()}
        assert all(len(runs) == len(more_actors.SEEDS) for runs in scores.values())
        for actors in ACTORS:
            equal = "updates" if actors == 1 else "frames"
            names = [f"{kind}-{actors}-equal-updates" for kind in ("ladder", "one", "copied")]
            names += [f"{kind}-{actors}-equal-{equal}" for kind in ("ladder", "one")]
            row = [f"{scores[name].mean():.0f}" if name in scores else "" for name in names]
            assert f"| {title} | {actors} | {' | '.join(row)} |".replace("  ", " ") in said
        more = ["ladder-8-equal-updates", "copied-8-equal-updates", "ladder-8-equal-frames"]
        pairs = [(arm, "ladder-1-equal-updates") for arm in more]
        for arm, other in (*pairs, ("one-8-equal-updates", "one-1-equal-updates")):
            found = paired_difference(scores[arm], scores[other])
            assert "{:.0f} [{:.0f}, {:.0f}]".format(*found) in said
