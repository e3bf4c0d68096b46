"""Known bugs: each part has its one bug and no other, and the real parts stay what they are."""

import inspect
import pkgutil
import re
from importlib import import_module

import numpy as np
import pytest
import torch

import per_tutorial.dqn
import per_tutorial.replay
from per_tutorial.conformance import QUESTIONS
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.losses import Tensors
from per_tutorial.dqn.training import train
from per_tutorial.experiments import known_bugs
from per_tutorial.experiments.known_bugs import KNOWN_BUGS, Bug
from per_tutorial.experiments.known_bugs.examined import BugAdapter
from per_tutorial.experiments.known_bugs.trees import PlainDraw
from per_tutorial.experiments.studies.declared.broken import CONCERN_LEARNING
from per_tutorial.replay import SAMPLERS, PrioritizedReplayBuffer, ProportionalSampler

IN_BUFFERS = [name for name, bug in KNOWN_BUGS.items() if bug.in_buffer]
REAL = Bug(name="real", mistake="", wrong="", right="", found_by="")


def sources(package):
    """The code of all modules of a package, without spaces, for lines that are wrapped."""
    names = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return without_spaces("".join(inspect.getsource(import_module(one.name)) for one in names))


def without_spaces(code):
    return re.sub(r"\s", "", code).replace(",)", ")")


# What is told of a bug ----------------------------------------------------------------------


def test_the_list_is_large_enough():
    mistakes = [name for name in IN_BUFFERS if not KNOWN_BUGS[name].choice]
    assert len(mistakes) >= 25
    assert len(KNOWN_BUGS) - len(IN_BUFFERS) >= 4
    assert len(CONCERN_LEARNING) >= 12
    assert len({bug.mistake for bug in KNOWN_BUGS.values()}) == len(KNOWN_BUGS)


@pytest.mark.parametrize("name", KNOWN_BUGS)
def test_everything_is_told_of_a_bug(name):
    bug = KNOWN_BUGS[name]
    assert bug.name == name and re.fullmatch(r"[a-z0-9-]+", name)
    assert bug.mistake.endswith(".") and bug.lived and bug.found_by
    for case in bug.seen:
        assert re.match(r"[\w.-]+/[\w.-]+(#\d+$| \()", case), case
    changes = bool(bug.training) or (bug.in_buffer and not parts_of(bug))
    assert len(parts_of(bug)) + changes == 1  # one part, or else the settings


def test_the_wrong_line_is_what_runs_and_the_right_line_is_that_of_the_package():
    wrong, right = sources(known_bugs), sources(per_tutorial.replay) + sources(per_tutorial.dqn)
    for name, bug in KNOWN_BUGS.items():
        assert without_spaces(bug.right) in right, name
        if parts_of(bug):
            assert without_spaces(bug.wrong) in wrong, name
            assert without_spaces(bug.wrong) not in right, name
        else:  # a choice of settings
            assert without_spaces(bug.wrong) in right, name


def parts_of(bug):
    parts = (bug.sampler, bug.storage, bug.replay, bug.learner)
    return [part for part in parts if part.__module__.startswith(known_bugs.__name__)]


# What is not touched -----------------------------------------------------------------------------


def test_no_bug_is_registered():
    bugs = {bug.sampler for bug in KNOWN_BUGS.values()} - {ProportionalSampler}
    assert bugs.isdisjoint(SAMPLERS.values())


def test_the_list_adds_nothing_to_a_buffer_without_a_bug():
    settings = {"alpha": 0.7, "n_step": 2, "discount": 0.9}
    ours = REAL.buffer(20, (3,), runs=2, seed=5, **settings)
    real = PrioritizedReplayBuffer(20, (3,), runs=2, seed=5, **settings)
    assert ours.settings == real.settings
    assert {k: v.tolist() for k, v in ours.state.items()} == {
        k: v.tolist() for k, v in real.state.items()
    }


def test_the_list_adds_nothing_to_a_training_without_a_bug():
    config = DQNConfig(sampler="proportional", steps=120, learning_starts=32, hidden=(8,))
    real, ours = train(config, [3, 4]), REAL.train(config, [3, 4])
    # Also with a buffer of `Bug.buffer`
    whole = Bug(**{**vars(REAL), "sampler": PlainDraw}).train(config, [3, 4])
    for other in (ours, whole):
        assert other.episodes == real.episodes
        np.testing.assert_array_equal(other.measure("loss"), real.measure("loss"))


def test_a_draw_written_out_is_the_real_draw():
    real, plain = (kind(13, [1, 2], alpha=0.5) for kind in (ProportionalSampler, PlainDraw))
    sizes = np.array([13, 13])
    for sampler in (real, plain):
        slots = np.tile(np.arange(13), (2, 1))
        sampler.add(slots, sizes)
        sampler.update(slots, np.random.default_rng(0).normal(size=slots.shape))
    for _ in range(20):
        for one, other in zip(real.sample(7, sizes, 0.4), plain.sample(7, sizes, 0.4), strict=True):
            assert one.tolist() == other.tolist()


# The bug of each ---------------------------------------------------------------------------------

ERRORS = np.array([-3.0, 2.0, 0.0, 0.25, 1.5, -0.5, 4.0, 0.125])  # of the first eight transitions
CAPACITY = 16


def filled(bug, added=12, n_step=1):
    """A buffer with episodes of five steps; every other one is cut by a time limit."""
    replay = bug.buffer(CAPACITY, (1,), seed=3, n_step=n_step, discount=0.5)
    for k in range(added):
        ends = k % 5 == 4
        terminal = ends and k % 10 == 4
        replay.add([k], k % 2, float(k), [k + 0.5], terminal, ends and not terminal)
    return replay


def leaves(replay):
    sums = replay.sampler.sums
    return sums.get([range(sums.capacity)])[0].tolist()


def set_evenly(replay, priorities=None):
    """Give all that is stored priorities as the real sampler does it."""
    size = int(replay.storage.ring.sizes[0])
    priorities = np.arange(1.0, size + 1) if priorities is None else np.array(priorities)
    ProportionalSampler._write(replay.sampler, np.arange(size)[None], priorities[None])


def priorities(bug):
    replay = filled(bug)
    replay.update_priorities(np.arange(8), ERRORS)
    return leaves(replay)[:8]


def priorities_of_float32(bug):
    replay = filled(bug)
    replay.update_priorities(np.arange(8), ERRORS.astype(np.float32) / 3)
    return leaves(replay)[:8]


def newcomers(bug):
    replay = filled(bug)
    ProportionalSampler.update(replay.sampler, np.array([[0]]), np.array([[9.0]]))
    replay.add([50], 0, 0.0, [51], False)
    return leaves(replay)[12]


def after_an_outlier(bug):
    replay = filled(bug)
    for error in (9.0, 0.1):
        ProportionalSampler.update(replay.sampler, np.array([[0]]), np.array([[error]]))
    replay.add([50], 0, 0.0, [51], False)
    return leaves(replay)[12]


def empty_slots(bug):
    return leaves(filled(bug))[12:]


def sums(bug):
    replay = filled(bug, CAPACITY)
    for size in (1e6, 0.1, 1e-3):
        replay.update_priorities(np.repeat(np.arange(8), 2), np.repeat(size * ERRORS, 2))
    tree = replay.sampler.sums
    return abs(tree.total[0] / np.sum(leaves(replay)) - 1) < 1e-9


def draws(bug):
    replay = filled(bug, CAPACITY)
    set_evenly(replay, [1.0, 3.0] * 8)
    ring, sampler = replay.storage.ring, replay.sampler
    return [ring.ids(sampler.sample(6, ring.sizes, 0.4)[0]).tolist() for _ in range(5)]


def edge(bug):
    replay = filled(bug)
    set_evenly(replay)
    return replay.sampler.sums.find(replay.sampler.sums.total[:, None] * (1 - 2.0**-53)).tolist()


def random_numbers(bug):
    return filled(bug).sampler.streams.states.tolist()


def batches(bug):
    """The whole way to a minibatch, where what happens depends on transitions."""
    replay = filled(bug, CAPACITY)
    set_evenly(replay)
    return [replay.sample(6).indices.tolist() for _ in range(5)]


def weights(bug):
    """How far the weights of a batch are from (N · P)^−β over the largest, by β; part full."""
    replay, found = filled(bug), []
    set_evenly(replay)
    sizes = replay.storage.ring.sizes
    for beta in (0.0, 0.5, 1.0):
        slots, weight = replay.sampler.sample(8, sizes, beta)
        right = (sizes[0] * replay.sampler.probabilities(slots, sizes)) ** -beta
        found.append(np.abs(weight - right / right.max()).max() < 1e-12)
    return found


def contents(bug):
    replay = filled(bug, 22)
    slots = np.arange(CAPACITY)[None]
    rows, steps = replay.storage.n_step_transitions(slots)
    return len(replay), int(replay.storage.added[0]), rows.tolist(), steps.tolist()


def n_step_transitions(bug):
    replay = filled(bug, n_step=3)
    slots = np.arange(12)[None]
    rows, steps = replay.storage.n_step_transitions(slots)
    return rows.tolist(), steps.tolist()


def starts(bug):
    """The steps that a window can start from."""
    return [leaf > 0 for leaf in leaves(filled(bug, n_step=3))[:12]]


def stale(bug):
    replay = filled(bug)
    for k in range(CAPACITY):
        replay.add([k], 0, 0.0, [k], False)
    before = leaves(replay)
    replay.update_priorities([3], [7.0])
    return leaves(replay) == before


def nan(bug):
    replay = filled(bug)
    try:
        replay.update_priorities([3], [np.nan])
    except ValueError:
        return "refused"
    return "taken"


def loaded(bug):
    replay, other = filled(bug), filled(bug, 0)
    set_evenly(replay)
    other.restore(replay.state)
    return leaves(other) == leaves(replay), other.sampler.largest_priority.tolist()


PROBES = (
    *(priorities, priorities_of_float32, newcomers, after_an_outlier, empty_slots, sums, draws),
    *(edge, random_numbers, batches, weights, contents, n_step_transitions, starts, stale, nan),
    loaded,
)
# What each bug does in another way than the real parts; all else is the same.
DIFFERENT = {
    "squared-priority": {priorities, priorities_of_float32},
    "huber-priority": {priorities, priorities_of_float32},
    "signed-priority": {priorities, priorities_of_float32},
    "no-epsilon": {priorities, priorities_of_float32},
    "epsilon-twice": {priorities, priorities_of_float32},
    "alpha-twice": {priorities, priorities_of_float32, newcomers, after_an_outlier},
    "alpha-twice-for-newcomers": {newcomers, after_an_outlier},
    "starved-newcomers": {newcomers, after_an_outlier},
    "newcomers-at-one": {newcomers, after_an_outlier},
    "current-maximum": {after_an_outlier},
    "mixed-units": {weights},
    "no-weights": {weights},
    "inverted-weights": {weights},
    "weights-that-sum-to-one": {weights},
    "zero-minimum": {weights},
    "buffer-minimum": {weights},
    "beta-climbs-with-draws": {weights},
    "off-by-one-total": {draws, batches},
    "tie-branch": {draws},
    "single-precision-prefix": {edge},
    # In float32 leaves are rounded, too.
    "drifting-sums": {priorities, priorities_of_float32, newcomers, after_an_outlier, sums},
    "duplicates-count-twice": {sums},
    # A state that no real buffer can have is not loaded.
    "unfilled-slots": {empty_slots, edge, loaded},
    "stale-write-back": {stale},
    "truncation-as-terminal": {contents, n_step_transitions},
    "windows-cross-truncations": {n_step_transitions},
    "next-slots-observation": {contents, n_step_transitions},
    "tail-never-flushed": {starts},
    "rejected-draws": {batches},
    "not-a-number": {nan},
    "single-precision-errors": {priorities_of_float32},
    # Two transitions more than were added shift all that follows.
    "autoreset-stored": {
        *(newcomers, after_an_outlier, empty_slots, draws, edge, batches, contents),
        *(n_step_transitions, loaded),
    },
    "lossy-checkpoint": {loaded},
    "forgotten-priorities": {loaded},
    "seed-ignored": {draws, random_numbers, batches},
}


def test_every_bug_of_a_buffer_is_covered_here():
    assert set(DIFFERENT) == set(IN_BUFFERS)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", DIFFERENT)
def test_a_bug_has_its_bug_and_no_other(name):
    found = set()
    for probe in PROBES:
        try:
            answer = repr(probe(KNOWN_BUGS[name]))
        except ValueError as error:
            answer = str(error)
        if answer != repr(probe(REAL)):
            found.add(probe)
    assert {probe.__name__ for probe in found} == {probe.__name__ for probe in DIFFERENT[name]}


def test_what_is_to_be_seen_in_the_books():
    """Numbers that were worked out by hand, or that the cases report."""
    tie = KNOWN_BUGS["tie-branch"].buffer(4, (1,), alpha=1.0, seed=0)
    for k in range(4):
        tie.add([k], 0, 0.0, [k], False)
    set_evenly(tie, [1.0, 3.0, 1.0, 3.0])
    slots = np.concatenate([tie.sampler.sample(4, np.array([4]), 0.4)[0] for _ in range(20_000)])
    shares = np.bincount(slots.ravel(), minlength=4) / slots.size
    np.testing.assert_allclose(shares, np.array([1, 7, 1, 7]) / 16, atol=0.01)

    huber = KNOWN_BUGS["huber-priority"].buffer(2, (1,), alpha=1.0, priority_epsilon=1e-6)
    for k in range(2):
        huber.add([k], 0, 0.0, [k], False)
    huber.update_priorities([0, 1], [0.5, -3.0])
    np.testing.assert_allclose(leaves(huber), [0.125 + 1e-6, 2.5 + 1e-6])

    collapsed = KNOWN_BUGS["buffer-minimum"].buffer(100, (1,), seed=0)  # ε^(αβ) = 0.036 at β = 0.4
    for k in range(100):
        collapsed.add([k], 0, 0.0, [k], False)
    collapsed.update_priorities([7], [0.0])
    assert np.median(collapsed.sample(32, beta=0.4).weights) == pytest.approx(1e-6**0.24, rel=0.01)


# The examination ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KNOWN_BUGS if name not in IN_BUFFERS])
def test_what_lives_in_an_agent_is_found_otherwise(name):
    assert KNOWN_BUGS[name].found_by not in QUESTIONS
    with pytest.raises(ValueError, match="bug: must be one of a buffer"):
        BugAdapter(KNOWN_BUGS[name])


# The learners ------------------------------------------------------------------------------------


def gradients(kind, **settings):
    """The learner's gradient of Q(s, a), its losses, δ and the weights, of a random minibatch."""
    learner = kind(DQNConfig(hidden=(8,), batch_size=5, **settings), (3,), 2, seeds=[1, 2])
    rng = np.random.default_rng(0)
    shape = (2, 5)
    tensors = Tensors(
        torch.tensor(rng.normal(size=(*shape, 3)), dtype=torch.float32),
        torch.tensor(rng.integers(2, size=shape)),
        torch.tensor(3 * rng.normal(size=shape), dtype=torch.float32),
        torch.tensor(rng.normal(size=(*shape, 3)), dtype=torch.float32),
        torch.tensor(rng.random(shape) < 0.3),
        torch.tensor(rng.random(shape), dtype=torch.float32),
        torch.full(shape, 0.9),
    )
    q_values = torch.tensor(rng.normal(size=shape), dtype=torch.float32)
    with torch.no_grad():
        return *learner.errors_and_losses(q_values, tensors), tensors.weights


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("name", ["loss-broadcast", "weights-after-mean"])
def test_a_collapsed_loss_weighs_all_errors_alike(name, loss):
    real_errors, real_losses, real_gradients, weights = gradients(DQNLearner, loss=loss)
    errors, losses, found, _ = gradients(KNOWN_BUGS[name].learner, loss=loss)
    assert torch.equal(errors, real_errors)
    # Worked out by hand: the mean of the weights in place of each weight
    alike = real_gradients / weights * weights.mean(dim=1, keepdim=True)
    torch.testing.assert_close(found, alike)
    assert not torch.allclose(found, real_gradients, rtol=0.1)
    kind = {"squared": torch.nn.MSELoss, "huber": torch.nn.HuberLoss}[loss](reduction="none")
    elementwise = kind(errors, torch.zeros_like(errors)) * (0.5 if loss == "squared" else 1.0)
    torch.testing.assert_close(losses, weights.mean(dim=1) * elementwise.mean(dim=1))
    assert not torch.allclose(losses, real_losses, rtol=0.01)


def test_weighted_squares_are_written_back_and_nothing_else_is_changed():
    config = DQNConfig(sampler="proportional", steps=40, learning_starts=32, hidden=(8,))
    batches, updates = [], []

    def note(kind):
        class Noting(kind):
            def update(self, batch, step_size=None):
                batches.append(batch)
                updates.append(super().update(batch, step_size))
                return updates[-1]

        return Noting

    train(config.replace(steps=32), [0], learner=note(DQNLearner))
    train(
        config.replace(steps=32), [0], learner=note(KNOWN_BUGS["weighted-squared-priority"].learner)
    )
    real, broken = updates
    expected = batches[1].weights * real.td_errors.astype(np.float64) ** 2
    np.testing.assert_allclose(broken.td_errors, expected)
    assert broken.losses.tolist() == real.losses.tolist()


def test_a_compounding_beta_is_a_change_of_settings():
    config = DQNConfig(sampler="proportional", steps=60, learning_starts=32, hidden=(8,))
    history = KNOWN_BUGS["compounding-beta"].train(config, [0])
    assert history.config == config.replace(beta_schedule="compounding")
