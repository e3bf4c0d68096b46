"""What the algorithm itself never does to a buffer: late updates, NaN, arrays written over."""

from collections.abc import Callable

import numpy as np

from per_tutorial.conformance.adapter import Drawn
from per_tutorial.conformance.answers import (
    BufferRaised,
    Fault,
    Finding,
    Inconclusive,
    NotOffered,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM, worst_misfit
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import BufferHarness, plain, write_over
from per_tutorial.conformance.questions.distribution import compare, mixed_error
from per_tutorial.replay.contracts import Floats

SECTION = "not in the paper"
OBSERVATIONS = ("observations", "next_observations")
FIELDS = (*OBSERVATIONS, "weights", "actions", "rewards", "terminated")  # those with arrays


@question(
    "stale-updates",
    "Does an update that comes too late leave the new owner of the slot alone?",
    kind="robustness",
    section="Algorithm 1, line 12",
    effect="Where transitions are added between drawing and updating (several actors, a prefetched "
    "minibatch), new experience gets the priority of what it replaced.",
    needs=("update-positions",),
    false_alarm=FALSE_ALARM,
)
def stale_updates(context: TestContext) -> Finding:
    if context.adapter.distribution == "uniform":
        raise NotOffered("updates mean nothing to it")
    harness = context.harness(CAPACITY, exact=True)
    drawn, serials, _ = harness.sample()
    harness.add(CAPACITY)
    errors = np.full(len(serials), 1000.0)
    try:
        harness.update(drawn, errors)
    except BufferRaised as raised:
        in_time = context.harness(CAPACITY, exact=True)
        require_accepts(
            "an update that comes in time", lambda: in_time.update(in_time.sample().drawn, errors)
        )
        return holds(f"it refuses such an update: {type(raised.__cause__).__name__}")
    counts = harness.counts(8000)
    owners = np.isin(harness.stored - CAPACITY, serials)
    fair, share = owners.mean(), counts[owners].sum() / counts.sum()
    if harness.adapter.distribution == "rank":
        # Ties may be ordered in any way: it fails if exactly the new owners come most often.
        top = np.argsort(-counts)[: owners.sum()]
        right = set(top.tolist()) != set(np.flatnonzero(owners).tolist())
    else:
        half = np.array([counts[owners].sum(), counts[~owners].sum()])
        right = worst_misfit(half, np.array([fair, 1 - fair])) is None
    sentence = f"the new owners got {share:.0%} of the draws, they are {fair:.0%} of the buffer"
    return holds(sentence) if right else fails(sentence)


@question(
    "arrays-added",
    "Does what is stored stay as it is, if the caller writes over the arrays that were added?",
    kind="robustness",
    section=SECTION,
    effect="If an environment writes each observation to the same array, the whole buffer shows "
    "its last one.",
    needs=("contents",),
)
def arrays_added(context: TestContext) -> Finding:
    added = CAPACITY + 21
    changed = zeros_drawn(context.harness().add(added, written_over=True))
    if changed:
        found = f"it keeps the arrays that are added: writing over them changes {changed}"
        return as_documented(context, "copies_added", found)
    return holds(f"the arrays of {added} transitions were written over, and nothing changed")


@question(
    "arrays-drawn",
    "Is a minibatch the caller's own: does it stay as it is, and may the caller modify it?",
    kind="robustness",
    section=SECTION,
    effect="A prefetched or kept minibatch changes later; scaling observations in place changes "
    "the memory.",
    needs=("contents",),
)
def arrays_drawn(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY)
    first = harness.unread()[0]
    before = fields_of(harness, first)
    events = {
        "the next one was drawn": harness.sample,
        "its transitions were replaced": lambda: harness.add(CAPACITY),
    }
    for event, happen in events.items():
        happen()
        after = fields_of(harness, first)
        same = {name: np.array_equal(before[name], after[name], equal_nan=True) for name in before}
        changed = [name for name in same if not same[name]]
        if changed:
            found = f"{' and '.join(changed)} of a minibatch changed when {event}"
            return as_documented(context, "copies_drawn", found)
    drawn = harness.unread()[0]
    write_over([getattr(drawn, name) for name in fields_of(harness, drawn)])
    shown = zeros_drawn(harness)
    if shown:
        found = f"writing over a minibatch changes {shown} that are stored"
        return as_documented(context, "copies_drawn", found)
    return holds("it stayed when others were drawn and added; writing over one changed no other")


@question(
    "nan-errors",
    "Is a TD error that is NaN kept out of the priorities?",
    kind="robustness",
    section=SECTION,
    effect="One NaN makes the total NaN: from then on every draw returns the same slot, in "
    "silence.",
    needs=("proportions-full",),
    false_alarm=FALSE_ALARM,
)
def nan_errors(context: TestContext) -> Finding:
    return after_bad_errors(context, np.nan)


@question(
    "infinite-errors",
    "Is an infinite TD error kept out of the priorities?",
    kind="robustness",
    section=SECTION,
    effect="The total is infinite: one transition is replayed for ever, and weights are 0 or NaN.",
    needs=("proportions-full",),
    false_alarm=FALSE_ALARM,
)
def infinite_errors(context: TestContext) -> Finding:
    return after_bad_errors(context, np.inf)


@question(
    "empty",
    "Does an empty buffer refuse to be sampled?",
    kind="robustness",
    section=SECTION,
    effect="The agent learns from transitions that never were.",
    needs=("handling",),
)
def empty(context: TestContext) -> Finding:
    harness = context.harness(0, batch_size=1)
    try:
        harness.sample()
    except Fault as fault:
        return fails(f"from an empty buffer, {fault}")
    except BufferRaised as raised:
        full = context.harness(CAPACITY, batch_size=1)
        require_accepts("to be sampled when it is full", full.sample)
        return holds(str(raised))
    return fails("it returned a transition")


@question(
    "large-minibatch",
    "What if a minibatch is larger than what is stored?",
    kind="robustness",
    section=SECTION,
    effect="None, as long as all that comes back was stored.",
    needs=("only-stored",),
)
def large_minibatch(context: TestContext) -> Finding:
    harness = context.harness(5)
    try:
        harness.sample()
    except BufferRaised as raised:
        return reported(f"it refuses: {raised}")
    return reported("it returns transitions several times")


def require_accepts(what: str, act: Callable[[], object]) -> None:
    """Raise `Inconclusive` if the buffer refuses this, too: its earlier refusal means nothing."""
    try:
        act()
    except (BufferRaised, Fault) as refusal:
        raise Inconclusive(f"it refuses {what} as well: {refusal}") from refusal


def fields_of(harness: BufferHarness, drawn: Drawn) -> dict[str, Floats]:
    """Copies of a minibatch's fields as they are now, by name."""
    size = harness.settings.batch_size
    shapes = {name: (size, 2) if name in OBSERVATIONS else (size,) for name in FIELDS}
    given = {name: getattr(drawn, name) for name in FIELDS}
    return {
        name: plain(name, value, shapes[name]).copy()
        for name, value in given.items()
        if value is not None
    }


def zeros_drawn(harness: BufferHarness, minibatches: int = 20) -> str:
    """Which of observations, next observations and rewards are drawn as 0; none was added so."""
    found: set[str] = set()
    for _ in range(minibatches):
        fields = fields_of(harness, harness.unread()[0])
        states = {name: fields[name][:, 0] for name in OBSERVATIONS if name in fields}
        rewards = {"rewards": fields["rewards"]} if "rewards" in fields else {}
        found |= {name for name, values in (states | rewards).items() if (values == 0).any()}
    return " and ".join(name.replace("_", " ") for name in FIELDS if name in found)


def as_documented(context: TestContext, attribute: str, found: str) -> Finding:
    """A failure, or a report if the adapter says that it is documented."""
    if getattr(context.adapter, attribute):
        return fails(f"{found} (if this is documented, say `{attribute} = False` in the adapter)")
    return reported(f"{found}, as documented (`{attribute} = False`)")


def after_bad_errors(context: TestContext, bad: float) -> Finding:
    """Update with one bad error among good ones, and check later draws."""
    harness = context.harness(CAPACITY, exact=True).set_errors(mixed_error)
    drawn, serials, _ = harness.sample()
    errors = np.array([mixed_error(serial) for serial in serials.tolist()])
    errors[len(errors) // 2] = bad
    try:
        harness.update(drawn, errors)
    except BufferRaised as raised:
        finding = compare(harness, 20_000)  # a refused update must have written nothing
        said = f"it refuses, {raised}"
        return (
            fails(f"{said}; but afterwards {finding.measured}") if finding.failed else holds(said)
        )
    if context.adapter.distribution == "uniform":
        harness.counts(200)
        return holds("it accepts the error, and draws go on as before")
    try:
        weights = harness.sample().weights
        if weights is not None and not np.isfinite(weights).all():
            share = (~np.isfinite(weights)).mean()
            return fails(f"it accepts the error, and then {share:.0%} of weights are not finite")
        finding = compare(harness.set_errors(mixed_error), 20_000)
    except (BufferRaised, Fault, Inconclusive) as fault:
        return fails(f"it accepts the error, and then drawing fails: {fault}")
    if finding.failed:
        return fails(f"it accepts the error, and never recovers: {finding.measured}")
    return reported("it accepts the error, and draws are right again once all errors were updated")
