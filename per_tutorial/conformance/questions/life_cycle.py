"""What becomes of a transition: its contents, overwriting, late updates, duplicates, seeds."""

import numpy as np
from numpy.typing import NDArray

from per_tutorial.conformance.answers import (
    Finding,
    NotOffered,
    Untold,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM, worst_misfit
from per_tutorial.conformance.exam import CAPACITY, Exam
from per_tutorial.conformance.trial import Trial, observation_of, plain, reward_of

CONTENTS = ("actions", "rewards", "next_observations", "terminated")


@question(
    "contents",
    "Do observation, action, reward and next observation come back together?",
    section="Algorithm 1, line 6",
    effect="The agent is told of steps that nobody took, most often where the buffer wraps around.",
)
def contents(exam: Exam) -> Finding:
    for added in (CAPACITY // 2 + 3, CAPACITY + 21):
        trial = exam.trial(added, discount=1.0)
        found = contents_fault(trial, 40)
        if found:
            return fails(found)
    return holds("in 80 minibatches, before and after the buffer went round")


@question(
    "truncation",
    "Is a time limit told from a terminal state?",
    section="not in the paper; Pardo et al. 2018",
    effect="The value after a time limit is taken for 0: a good state at the limit is learned to be bad.",
)
def truncation(exam: Exam) -> Finding:
    trial = exam.trial(discount=1.0).add(CAPACITY - 8, truncated=True)
    found = contents_fault(trial, 40)
    if found:
        return fails(f"with episodes that end by a time limit: {found}")
    return holds("truncated steps come back as not terminated, with their true next observation")


@question(
    "stale-updates",
    "Does an update that comes too late leave the new owner of the slot alone?",
    section="Algorithm 1, line 12",
    effect="Where transitions are added between drawing and updating (several actors, a prefetched "
    "minibatch), new experience gets the priority of what it replaced.",
    false_alarm=FALSE_ALARM,
)
def stale_updates(exam: Exam) -> Finding:
    if exam.adapter.law == "uniform":
        raise NotOffered("updates mean nothing to it")
    trial = exam.trial(CAPACITY, exact=True)
    known = trial.count(
        trial.draw(1000).serials
    )  # a buffer that is not even at first: no verdict here
    drawn, serials, _ = trial.sample()
    trial.add(CAPACITY)
    try:
        exam.adapter.update(trial.buffer, drawn.keys, np.full(len(serials), 1000.0))
    except Exception as error:
        return holds(f"it refuses such an update: {type(error).__name__}")
    counts = trial.counts(8000)
    half = np.array([counts[np.isin(trial.stored - CAPACITY, serials)].sum(), 0])
    half[1] = counts.sum() - half[0]
    of = len(set(serials.tolist())) / len(known)
    share = half[0] / counts.sum()
    if trial.adapter.law == "rank":
        # Newcomers are equals, and any order of them is right: only which ones come often may tell.
        top = np.argsort(-counts)[: len(set(serials.tolist()))]
        owners = np.flatnonzero(np.isin(trial.stored - CAPACITY, serials))
        if set(top.tolist()) == set(owners.tolist()):
            return fails(
                f"the {len(owners)} new owners took the first ranks, {share:.0%} of the draws"
            )
        return holds(
            f"the new owners got {share:.0%} of the draws, they are {of:.0%} of the buffer"
        )
    if worst_misfit(half, np.array([of, 1 - of])) is None:
        return holds(
            f"the new owners got {share:.0%} of the draws, they are {of:.0%} of the buffer"
        )
    return fails(f"the new owners got {share:.0%} of the draws, they are {of:.0%} of the buffer")


@question(
    "duplicates",
    "If a minibatch holds a transition several times, which of its errors counts?",
    section="Algorithm 1, line 12",
    effect="A choice; the last one is usual. The sums must fit in any case.",
    false_alarm=2 * FALSE_ALARM,
)
def duplicates(exam: Exam) -> Finding:
    if exam.adapter.law != "proportional":
        raise NotOffered("only proportional draws tell priorities apart")
    trial = exam.trial(CAPACITY, exact=True)
    if trial.settings.batch_size == 1:
        raise NotOffered("no minibatch holds a transition twice")
    trial.set_errors(lambda serial: 50.0 if serial == 5 else 0.5)
    for _ in range(50):
        drawn, serials, _ = trial.sample()
        places = np.flatnonzero(serials == 5)
        if len(places) >= 3:
            break
    else:
        raise Untold("no minibatch held the same transition three times")
    several = np.full(len(places), 30.0)
    several[0], several[1], several[-1] = 10.0, 90.0, 25.0
    errors = np.full(len(serials), 0.5)
    errors[places] = several
    exam.adapter.update(trial.buffer, drawn.keys, errors)
    counts = trial.counts(40_000)
    item = int(np.flatnonzero(trial.stored == 5)[0])
    candidates = {
        "the last": 25.0,
        "the first": 10.0,
        "the largest": 90.0,
        "their mean": float(several.mean()),
        "their sum": float(several.sum()),
        "none": 50.0,
    }
    for name, value in candidates.items():
        trial.errors[5] = value
        if worst_misfit(counts, trial.expected()) is None:
            return reported(f"{name} of {len(places)}")
    return fails(
        f"neither the first nor the last, the largest, the mean or the sum of {len(places)}: a share "
        f"of {counts[item] / counts.sum():.1%}"
    )


@question(
    "seeds",
    "Does the seed decide what is drawn?",
    section="not in the paper",
    effect="Runs cannot be repeated; or all runs are the same one, and thirty seeds are one.",
)
def seeds(exam: Exam) -> Finding:
    if not exam.adapter.seeded:
        raise NotOffered("it takes no seed")

    def run(seed: int) -> list[int]:
        trial: Trial = exam.trial(CAPACITY, seed=seed)
        drawn, first, _ = trial.sample()
        exam.adapter.update(trial.buffer, drawn.keys, np.linspace(0.1, 2, len(first)))
        return [*first.tolist(), *trial.draw(100).serials.ravel().tolist()]

    first, again, other = run(7), run(7), run(8)
    if first != again:
        return fails("the same seed twice draws different transitions")
    if first == other:
        return fails("two seeds draw the same transitions")
    return holds("equal seeds draw the same, two seeds differ")


def contents_fault(trial: Trial, batches: int) -> str | None:
    """What is wrong with the contents of drawn transitions, or None."""
    checked: set[str] = set()
    size = trial.settings.batch_size
    for _ in range(batches):
        drawn, serials, _ = trial.sample()
        trial.count(serials)
        for name in CONTENTS:
            value = getattr(drawn, name)
            if value is None:
                continue
            checked.add(name)
            shape = (size, 2) if name == "next_observations" else (size,)
            got, wanted = plain(name, value, shape), true_values(trial, name, serials)
            wrong = np.abs(got.astype(np.float64) - wanted).reshape(size, -1).max(axis=1) > 1e-4
            if wrong.any():
                k = int(np.flatnonzero(wrong)[0])
                where = {trial.stored[0]: ", the oldest", trial.stored[-1]: ", the newest"}
                return (
                    f"of transition {serials[k]}{where.get(serials[k], '')}, {name} is "
                    f"{np.asarray(got[k]).tolist()}, not {wanted[k].tolist()}"
                )
    if not checked:
        raise NotOffered("the adapter hands out nothing but observations")
    return None


def true_values(trial: Trial, name: str, serials: NDArray[np.int64]) -> NDArray[np.float64]:
    """A field of these transitions, as it was added."""
    values = []
    for serial in serials.tolist():
        transition = trial.history[serial]
        state = int(np.asarray(transition.observation)[0])
        values.append(
            {
                "actions": transition.action,
                "rewards": reward_of(serial),
                "next_observations": observation_of(state + 1),
                "terminated": transition.terminated,
            }[name]
        )
    return np.array(values, dtype=np.float64)
