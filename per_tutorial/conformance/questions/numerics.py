"""Floating-point errors: sums of a tree that drift, and draws that miss what is stored."""

import numpy as np

from per_tutorial.conformance.answers import (
    BufferRaised,
    Fault,
    Finding,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import plain
from per_tutorial.conformance.questions.distribution import EXPONENTS, compare, mixed_error
from per_tutorial.conformance.questions.weights import fit, item_levels

UPDATES = 1_000_000
# Draws cannot show whether there is a very small ε: it brings none.
NO_EPSILON = "the adapter names no ε"


@question(
    "sum-after-updates",
    "Are draws still right after a million updates of usual size?",
    section="3.3, sum tree",
    effect="Sums that are changed by differences drift: in single precision within one training.",
    needs=("proportions-full",),
    false_alarm=FALSE_ALARM,
)
def sum_after_updates(context: TestContext) -> Finding:
    return after_many_updates(context, 1e-3, 1e3)


@question(
    "sum-after-outliers",
    "Are they still right after updates over sixteen orders of magnitude?",
    section="3.3, sum tree",
    effect="After an outlier the drift exceeds small priorities; the total may even be negative. "
    "Rare.",
    needs=("sum-after-updates",),
    false_alarm=FALSE_ALARM,
)
def sum_after_outliers(context: TestContext) -> Finding:
    return after_many_updates(context, 1e2, 1e10)


@question(
    "single-precision-errors",
    "Does it keep its precision if TD errors come as float32, as networks make them?",
    section="not in the paper; NumPy 2 (NEP 50)",
    effect="None by itself: seven digits of a priority are plenty. But sums that are changed by "
    "differences drift in single precision; the question “sum-after-updates” tells.",
    needs=("weights-exponent",),
)
def single_precision_errors(context: TestContext) -> Finding:
    off = {}
    for kind in (np.float64, np.float32):
        harness = context.harness(CAPACITY, beta=1.0)
        harness.set_errors(mixed_error, kind)
        serials, weights = harness.weighted(2000)
        item_levels(harness, serials, weights)
        off[kind] = fit(harness, serials, weights)[1]
    double, single = off[np.float64], off[np.float32]
    sentence = f"weights are off by {double:.0e} after float64 errors, {single:.0e} after float32"
    if double < 1e-10 and single < 1e-10:
        return holds(sentence)
    if double < 1e-10:
        return reported(f"{sentence}: single precision")
    # An ε of 1e-6 changes the weight of an error of 1 about as much as single precision does.
    unnamed = context.adapter.distribution == "proportional" and context.adapter.epsilon == 0
    other = ", or an ε that the adapter does not name" if unnamed else ""
    return reported(f"{sentence}: single precision either way{other}")


@question(
    "zero-errors",
    "Does a transition without error keep the small chance that ε gives it?",
    section="3.3, p = |δ| + ε",
    effect="Without ε it never comes again, even when the network has changed; with ε added twice, "
    "or too large a one, what is learned is replayed in vain.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def zero_errors(context: TestContext) -> Finding:
    epsilon = context.adapter.epsilon
    context.require("proportional", "only proportional draws know an ε")
    if epsilon == 0:
        return _without_epsilon(context)
    harness = context.harness(CAPACITY, exact=True)
    # So small that ε shows: half of the transitions get 6 % of the draws, or 9 % if ε is doubled.
    small = 100 * epsilon
    if small >= 1:  # keep it below the 1 of new transitions, which would hide the rest
        small = epsilon
    harness.set_errors(lambda serial: 0.0 if serial % 2 else small)
    return compare(harness, 20_000)


def _without_epsilon(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, exact=True)
    harness.set_errors(lambda serial: 0.0 if serial in (0, 7) else mixed_error(serial))
    counts = harness.counts(20_000)
    found = counts[(harness.stored == 0) | (harness.stored == 7)]
    if found.any():
        return reported(f"{NO_EPSILON}, and two without error still came {found.sum()} times")
    return reported(f"{NO_EPSILON}, and a transition without error does not come again")


@question(
    "edges",
    "Does a draw at the very edge of the total fall on something stored?",
    section="3.3, sum tree",
    effect="Once in millions of draws an empty slot is replayed: zeros, or an index out of range, "
    "and a weight of infinity.",
    needs=("newcomers-at-first",),
)
def edges(context: TestContext) -> Finding:
    context.offered("find")
    for stored in (5, 33, CAPACITY):
        harness = context.harness(stored, batch_size=4).set_errors(mixed_error)
        for fraction in (0.0, 5e-324, 1e-300, 0.5, 1 - 2.0**-24, 1 - 2.0**-53):
            place = f"with {stored} stored, at the fraction {fraction!r} of the total"
            try:
                observation = harness.call("find", harness.buffer, fraction)
                found = harness.serials(plain("find", observation, (2,))[None])[0]
            except (Fault, BufferRaised) as fault:
                return fails(f"{place}: {fault}")
            if fraction < 1e-9 and found != harness.stored[0] and stored < CAPACITY:
                return fails(f"{place}, it finds transition {found}, not the first")
    return holds("from 0 to 1 − 2⁻⁵³ of the total, with 5, 33 and 64 of 64 stored")


def after_many_updates(context: TestContext, low: float, high: float) -> Finding:
    """Update many times with errors in [low, high], then set small ones and compare."""
    harness = context.harness(CAPACITY, exact=True)
    size = (1000, harness.settings.batch_size)
    errors = np.exp(context.rng.uniform(np.log(low), np.log(high), size=size))
    done = harness.keep_updating(errors, UPDATES)
    # All are soon reached: transitions whose errors are still large are drawn first.
    harness.set_errors(lambda serial: 1e-3 * mixed_error(serial))
    finding = compare(harness, 20_000)
    less = "" if done >= UPDATES else " (all there was time for)"
    return Finding(finding.verdict, f"after {done:,} updates{less}: {finding.measured}")
