"""What happens if something is wrong with what a buffer is given."""

import numpy as np

from per_tutorial.conformance.answers import (
    BufferRaised,
    Fault,
    Finding,
    Inconclusive,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.questions.distribution import compare, mixed_error

SECTION = "not in the paper"


@question(
    "nan-errors",
    "Is a TD error that is NaN kept out of the priorities?",
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
    "And one that is infinite?",
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
        return holds(str(raised))
    return fails("it returned a transition")


@question(
    "large-minibatch",
    "What if a minibatch is larger than what is stored?",
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


def after_bad_errors(context: TestContext, bad: float) -> Finding:
    """Send one bad error along, and see what becomes of the draws."""
    harness = context.harness(CAPACITY, exact=True).set_errors(mixed_error)
    drawn, serials, _ = harness.sample()
    errors = np.array([mixed_error(serial) for serial in serials.tolist()])
    errors[len(errors) // 2] = bad
    try:
        harness.update(drawn, errors)
    except BufferRaised as raised:
        finding = compare(harness, 20_000)  # what it refuses, it must not have begun to write
        said = f"it refuses, {raised}"
        return (
            fails(f"{said}; but afterwards {finding.measured}") if finding.failed else holds(said)
        )
    if context.adapter.distribution == "uniform":
        harness.counts(200)
        return holds("it takes it, and draws go on as before")
    try:
        weights = harness.sample().weights
        if weights is not None and not np.isfinite(weights).all():
            share = (~np.isfinite(weights)).mean()
            return fails(f"it takes it, and then {share:.0%} of weights are NaN")
        finding = compare(harness.set_errors(mixed_error), 20_000)
    except (BufferRaised, Fault, Inconclusive) as fault:
        return fails(f"it takes it, and then drawing fails: {fault}")
    if finding.failed:
        return fails(f"it takes it, and never recovers: {finding.measured}")
    return reported("it takes it, and draws are right again once all errors were updated")
