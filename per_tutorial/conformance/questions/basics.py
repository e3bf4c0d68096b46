"""What other questions depend on: calls work, stored transitions are drawn, updates arrive."""

import numpy as np

from per_tutorial.conformance.answers import (
    Finding,
    Inconclusive,
    NotOffered,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM, share_misfits
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import BufferHarness, Minibatch

DUPLICATE_DRAWS = 40_000  # a multiple of the batch size


@question(
    "handling",
    "Do add, sample and update work, with the right shapes?",
    section="Algorithm 1",
    effect="A column of weights (batch, 1) against TD errors (batch,) broadcasts to (batch, "
    "batch), and the correction vanishes from the loss.",
)
def handling(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY)
    for _ in range(20):
        drawn, observations, _ = harness.unread()
        harness.update(drawn, np.linspace(0.1, 2, len(observations)))
        harness.add(3)
    return holds("20 minibatches of 32 drawn and updated")


@question(
    "only-stored",
    "Is everything that is drawn something that is stored?",
    section="Algorithm 1, line 9",
    effect="The agent learns from transitions that never were, or that it should have forgotten.",
    needs=("handling",),
)
def only_stored(context: TestContext) -> Finding:
    for added, batch in ((5, 4), (35, 32), (CAPACITY + 21, 32)):
        context.harness(added, batch_size=batch).counts(2000)
    return holds("with 5, 35 and 64 of 64 stored")


@question(
    "reach",
    "Can all that is stored be drawn, the newest and the oldest included?",
    section="Algorithm 1, lines 6 and 9",
    effect="Slots are paid for and never used; the newest experience comes late or never.",
    needs=("only-stored",),
    false_alarm=FALSE_ALARM,
)
def reach(context: TestContext) -> Finding:
    for added in (CAPACITY // 2, CAPACITY, CAPACITY + 21):
        harness = context.harness(added, exact=True)  # without updates, all are equally likely
        counts = harness.counts(int(CAPACITY * np.log(3 * CAPACITY / FALSE_ALARM)) + 1)
        missing = harness.stored[counts == 0]
        if len(missing):
            which = {harness.stored[0]: " (the oldest)", harness.stored[-1]: " (the newest)"}
            named = ", ".join(f"{serial}{which.get(serial, '')}" for serial in missing[:3].tolist())
            return fails(
                f"of {len(counts)} stored transitions {len(missing)} never came in {counts.sum()} "
                f"draws: number {named}{' and others' if len(missing) > 3 else ''}"
            )
    return holds(f"all {CAPACITY} of a full buffer were drawn, before and after it wrapped around")


@question(
    "one-transition",
    "With one transition stored, is it the one that is drawn?",
    section="3.3, sum tree",
    effect="The first steps of a training hang or crash.",
    needs=("reach",),
)
def one_transition(context: TestContext) -> Finding:
    harness = context.harness(1, batch_size=1)
    harness.counts(50)
    harness.set_errors(lambda serial: 0.3).counts(50)
    return holds("it came in all 100 draws")


@question(
    "newcomers-at-first",
    "Before the first large error: do transitions that were never replayed come first?",
    section="Algorithm 1, lines 2 and 6 (p₁ = 1)",
    effect="What was stored first is starved: it waits behind transitions whose error is small "
    "already.",
    needs=("reach",),
    false_alarm=FALSE_ALARM,
)
def newcomers_at_first(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, exact=True, batch_size=4)
    replayed = set()
    for _ in range(4):
        drawn, serials, _ = harness.sample()
        harness.update(drawn, np.full(len(serials), 0.01))
        replayed |= set(serials.tolist())
    counts = harness.counts(20_000)
    known = np.isin(harness.stored, list(replayed))
    # If all are equally likely, those never replayed get a share in proportion to their number.
    fair = 1 - known.mean()
    fresh, draws = int(counts[~known].sum()), int(counts.sum())
    ratio = (fresh / (~known).sum()) / max(counts[known].sum() / known.sum(), 0.5 / known.sum())
    sentence = f"never replayed ones come {ratio:.3g} times as often as those with |δ| = 0.01"
    return fails(sentence) if share_misfits(fresh, draws, fair, 1.0) else holds(sentence)


@question(
    "update-positions",
    "Does every TD error of an update arrive: the first, the last, all between?",
    section="Algorithm 1, line 12",
    effect="Some errors are never noted: what was learned long ago keeps coming, what surprises "
    "does not.",
    needs=("newcomers-at-first",),
    false_alarm=FALSE_ALARM,
)
def update_positions(context: TestContext) -> Finding:
    if context.adapter.distribution == "uniform":
        raise NotOffered("updates mean nothing to it")
    size = 8
    for position in range(size):
        harness = context.harness(CAPACITY, alpha=1.0, batch_size=size)
        # Several errors of one transition are another question, "duplicates".
        harness.set_errors(lambda serial: 0.5, distinct=True)
        drawn, serials, _ = distinct_minibatch(harness)
        errors = np.full(size, 0.5)
        errors[position] = 0.005
        harness.update(drawn, errors)
        counts = harness.counts(4000)
        mine = counts[harness.stored == serials[position]][0]
        others = (counts.sum() - mine) / (len(counts) - 1)
        # It should be a hundredth as likely as each of the others (a fifth if ranks count). If the
        # error did not arrive, it has 0.5, or the initial 1: it is at least as likely as they are.
        if mine > 0.7 * others:
            word = {0: ", the first,", size - 1: ", the last,"}.get(position, "")
            return fails(
                f"number {position + 1} of {size}{word} does not: with a hundredth of the |δ| of "
                f"the others, the transition came {mine / max(others, 1e-9):.1f} times as often"
            )
    return holds(f"all of {size}")


def distinct_minibatch(harness: BufferHarness) -> Minibatch:
    """A minibatch that holds no transition twice."""
    for _ in range(200):
        minibatch = harness.sample()
        if len(set(minibatch.serials.tolist())) == len(minibatch.serials):
            return minibatch
    raise Inconclusive("all minibatches held a transition several times")


@question(
    "duplicates",
    "If a minibatch holds a transition several times, which of its errors counts?",
    section="Algorithm 1, line 12",
    effect="A choice; the last one is usual. The sums must fit in any case.",
    needs=("update-positions",),
    false_alarm=2 * FALSE_ALARM,
)
def duplicates(context: TestContext) -> Finding:
    context.require("proportional", "only proportional draws tell priorities apart")
    harness = context.harness(CAPACITY, exact=True)
    if harness.settings.batch_size == 1:
        raise NotOffered("no minibatch holds a transition twice")
    harness.set_errors(lambda serial: 200.0 if serial == 5 else 2.0)
    before = share_of(harness, 5)
    for _ in range(100):
        drawn, serials, _ = harness.sample()
        copies = np.flatnonzero(serials == 5)
        if len(copies) >= 3:
            break
    else:
        raise Inconclusive("no minibatch held the same transition three times")
    several = np.full(len(copies), 120.0)
    several[0], several[1], several[-1] = 40.0, 360.0, 100.0
    errors = np.full(len(serials), 2.0)
    errors[copies] = several
    harness.update(drawn, errors)
    after = share_of(harness, 5)
    candidates = {
        "the last": 100.0,
        "the first": 40.0,
        "the largest": 360.0,
        "their mean": float(several.mean()),
        "their sum": float(several.sum()),
        "none": 200.0,
    }
    for name, value in candidates.items():
        # The exponent is another question: here the share before determines it, up to chance.
        usual, largest, now = np.log(harness.priorities_of(np.array([2.0, 200.0, value])))
        off = 5.5 * np.sqrt(before * (1 - before) / DUPLICATE_DRAWS)
        odds = 63 * np.array([before - off, before + off]) / (1 - before + off * np.array([1, -1]))
        odds = np.maximum(odds, 1e-9) ** ((now - usual) / (largest - usual)) / 63
        low, high = odds / (1 + odds)
        if not share_misfits(round(after * DUPLICATE_DRAWS), DUPLICATE_DRAWS, low, high):
            return reported(f"{name} of {len(copies)}")
    return fails(
        f"neither the first nor the last, the largest, the mean or the sum of {len(copies)}: a "
        f"share of {after:.1%}"
    )


def share_of(harness: BufferHarness, serial: int) -> float:
    """The share of `DUPLICATE_DRAWS` that this transition gets."""
    counts = harness.counts(DUPLICATE_DRAWS)
    return float(counts[harness.stored == serial][0] / counts.sum())
