"""What priority a transition gets before its first TD error is known (Algorithm 1, line 6)."""

import numpy as np

from per_tutorial.conformance.answers import Finding, fails, holds, question, reported
from per_tutorial.conformance.chance import FALSE_ALARM, share_misfits, worst_misfit
from per_tutorial.conformance.exam import CAPACITY, Exam
from per_tutorial.conformance.questions.distribution import mixed_error
from per_tutorial.conformance.trial import Trial
from per_tutorial.replay.contracts import Floats

SECTION = "Algorithm 1, line 6"
DRAWS = 20_000


@question(
    "newcomers-at-first",
    "Before the first large error: do transitions that were never replayed come first?",
    section="Algorithm 1, lines 2 and 6 (p₁ = 1)",
    effect="What was stored first is starved: it waits behind transitions whose error is small already.",
    false_alarm=FALSE_ALARM,
)
def newcomers_at_first(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, exact=True, batch_size=4)
    replayed = set()
    for _ in range(4):
        drawn, serials, _ = trial.sample()
        exam.adapter.update(trial.buffer, drawn.keys, np.full(len(serials), 0.01))
        replayed |= set(serials.tolist())
    counts = trial.counts(DRAWS)
    known = np.isin(trial.stored, list(replayed))
    # Where all are equally likely, the share of those never replayed is their number's.
    fair = 1 - known.mean()
    fresh, draws = int(counts[~known].sum()), int(counts.sum())
    ratio = (fresh / (~known).sum()) / max(counts[known].sum() / known.sum(), 0.5 / known.sum())
    sentence = f"never replayed ones come {ratio:.3g} times as often as those with |δ| = 0.01"
    return fails(sentence) if share_misfits(fresh, draws, fair, 1.0) else holds(sentence)


@question(
    "newcomers-largest",
    "Does a newcomer get the largest priority so far?",
    section=SECTION,
    effect="Less (α applied twice, a fixed 1, ε): new experience is looked at late. More: nothing else is.",
    false_alarm=2 * FALSE_ALARM,
)
def newcomers_largest(exam: Exam) -> Finding:
    sentences = []
    for largest in (10.0, 1.5):

        def error_of(serial: int, largest: float = largest) -> float:
            return largest if serial % 2 else largest / 3

        trial = exam.trial(CAPACITY - 8, exact=True).set_errors(error_of)
        known = trial.priorities()
        counts = trial.add(8).counts(DRAWS)
        low, high = newcomers_share(trial, known, known.max())
        share = counts[-8:].sum() / counts.sum()
        ratio = relative(share, (low + high) / 2)
        sentence = f"{ratio:.2f} times as likely as the largest, |δ| = {largest:g}"
        if share_misfits(int(counts[-8:].sum()), int(counts.sum()), low, high):
            return fails(sentence)
        sentences.append(sentence)
    return holds("; ".join(sentences))


@question(
    "newcomers-forget",
    "Does a newcomer forget the priority of what it replaces?",
    section=SECTION,
    effect="New experience inherits the rank of unrelated old one.",
    false_alarm=FALSE_ALARM,
)
def newcomers_forget(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, exact=True).set_errors(mixed_error).add(24)
    counts = trial.counts(DRAWS)
    new = counts[-24:]
    if new.sum() == 0:
        return fails(f"24 newcomers never came in {counts.sum()} draws")
    if trial.adapter.law == "rank":
        # Among equals it is the order that decides, and only the whole counts.
        known = trial.priorities()
        low, high = newcomers_share(trial, known, known.max(), 24)
        if share_misfits(int(new.sum()), int(counts.sum()), low, high):
            return fails(f"24 newcomers get {new.sum() / counts.sum():.1%} of the draws")
        return holds(
            f"24 newcomers get {new.sum() / counts.sum():.1%} of the draws, as they should"
        )
    shares = np.append(np.full(24, new.mean() / counts.sum()), 1 - new.sum() / counts.sum())
    worst = worst_misfit(np.append(new, counts.sum() - new.sum()), shares)
    if worst is None:
        return holds("24 newcomers are equally likely, whatever they replaced")
    return fails(
        f"of 24 newcomers, one that replaced δ = {mixed_error(worst):.2g} came {new[worst]} times, "
        f"the mean is {new.mean():.0f}"
    )


@question(
    "newcomers-memory",
    "Is it the largest priority ever, or of what is stored now?",
    section=SECTION,
    effect="A choice. The paper's is the largest ever: after one outlier, newcomers stay on top for good.",
)
def newcomers_memory(exam: Exam) -> Finding:
    if exam.adapter.law != "proportional":
        return reported("of newcomers only the order counts here")
    trial = exam.trial(CAPACITY - 8, exact=True)
    trial.set_errors(lambda serial: 20.0).set_errors(lambda serial: 2.0 - serial / 1e3)
    known = trial.priorities()
    counts = trial.add(8).counts(8000)
    share = counts[-8:].sum() / counts.sum()
    ratio = relative(share, newcomers_share(trial, known, known.max())[0])
    ever = 10.0**trial.settings.alpha
    kinds = {"ever": ever, "stored now": 1.0}
    kind = min(kinds, key=lambda one: abs(np.log(ratio / kinds[one])) if ratio > 0 else 1.0)
    return reported(
        f"{kind}: {ratio:.2f} times as likely as the largest stored now ({ever:.2f}: ever)"
    )


def newcomers_share(
    trial: Trial, known: Floats, newest: float, count: int = 8
) -> tuple[float, float]:
    """The smallest and the largest share of draws of ``count`` newcomers with the priority ``newest``.

    They differ where ranks count: equals may be ordered in any way.
    """
    first = trial.masses(np.append(np.full(count, newest * (1 + 1e-9)), known))
    last = trial.masses(np.append(np.full(count, newest * (1 - 1e-9)), known))
    return float(last[:count].sum()) * (1 - 1e-6), float(first[:count].sum()) * (1 + 1e-6)


def relative(share: float, wanted: float) -> float:
    """How likely one of a group is, relative to what it should be, from the group's share."""
    odds = share / max(1 - share, 1e-9)
    return odds / (wanted / max(1 - wanted, 1e-9))
