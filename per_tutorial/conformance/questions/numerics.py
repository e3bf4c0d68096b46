"""Where floating-point numbers let a tree drift, or a draw fall beside it."""

import time

import numpy as np

from per_tutorial.conformance.answers import (
    Fault,
    Finding,
    NotOffered,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.exam import CAPACITY, Exam
from per_tutorial.conformance.questions.distribution import compare, mixed_error
from per_tutorial.conformance.questions.weights import fit, item_levels
from per_tutorial.conformance.trial import Trial, plain

UPDATES = 1_000_000
MOST_SECONDS = 2.0  # of processor time for them
# A very small ε brings no draw, so draws cannot tell whether there is one.
NO_EPSILON = "the adapter names no ε"


@question(
    "sum-after-updates",
    "After a million updates of usual size, do draws follow the law?",
    section="3.3, sum tree",
    effect="Sums that are changed by differences drift: in single precision within one training.",
    false_alarm=FALSE_ALARM,
)
def sum_after_updates(exam: Exam) -> Finding:
    return after_many_updates(exam, 1e-3, 1e3)


@question(
    "sum-after-outliers",
    "And after updates over sixteen orders of magnitude?",
    section="3.3, sum tree",
    effect="After an outlier the drift exceeds small priorities; the total may even be negative. Rare.",
    false_alarm=FALSE_ALARM,
)
def sum_after_outliers(exam: Exam) -> Finding:
    return after_many_updates(exam, 1e2, 1e10)


@question(
    "single-precision-errors",
    "Does it keep its precision if TD errors come as float32, as networks make them?",
    section="not in the paper; NumPy 2 (NEP 50)",
    effect="None by itself: seven digits of a priority are plenty. But sums that are changed by "
    "differences drift in single precision; the question “sum-after-updates” tells.",
)
def single_precision_errors(exam: Exam) -> Finding:
    off = {}
    for kind in (np.float64, np.float32):
        trial = exam.trial(CAPACITY, beta=1.0)
        missing = set(trial.stored.tolist())
        for _ in range(600):
            drawn, serials, _ = trial.sample()
            errors = np.array([mixed_error(s) for s in serials.tolist()], dtype=np.float32)
            exam.adapter.update(trial.buffer, drawn.keys, errors.astype(kind))
            trial.errors.update(zip(serials.tolist(), errors.tolist(), strict=True))
            missing -= set(serials.tolist())
            if not missing:
                break
        serials, weights = trial.weighted(2000)
        item_levels(trial, serials, weights)
        off[kind] = fit(trial, serials, weights)[1]
    double, single = off[np.float64], off[np.float32]
    sentence = f"weights are off by {double:.0e} after float64 errors, {single:.0e} after float32"
    if double < 1e-10 and single < 1e-10:
        return holds(sentence)
    if double < 1e-10:
        return reported(f"{sentence}: single precision")
    # An ε of 1e-6 moves the weight of an error of 1 as much as single precision does.
    unnamed = exam.adapter.law == "proportional" and exam.adapter.epsilon == 0
    other = ", or an ε that the adapter does not name" if unnamed else ""
    return reported(f"{sentence}: single precision either way{other}")


@question(
    "zero-errors",
    "Does a transition without error keep the small chance that ε gives it?",
    section="3.3, p = |δ| + ε",
    effect="Without ε it never comes again, even when the network has changed; with ε added twice, or "
    "too large a one, what is learned is replayed in vain.",
    false_alarm=FALSE_ALARM,
)
def zero_errors(exam: Exam) -> Finding:
    epsilon = exam.adapter.epsilon
    if exam.adapter.law != "proportional":
        raise NotOffered("only proportional draws know an ε")
    if epsilon == 0:
        return _without_epsilon(exam)
    trial = exam.trial(CAPACITY, exact=True)
    # So small that ε is seen: a share of 6 % for one half of the transitions, 10 % if ε were doubled.
    small = 100 * epsilon
    if small >= 1:  # newcomers start at 1, and would drown the rest
        small = epsilon
    trial.set_errors(lambda serial: 0.0 if serial % 2 else small)
    return compare(trial, 20_000)


def _without_epsilon(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, exact=True)
    trial.set_errors(lambda serial: 0.0 if serial in (0, 7) else mixed_error(serial))
    counts = trial.counts(20_000)
    found = counts[(trial.stored == 0) | (trial.stored == 7)]
    if found.any():
        return reported(f"{NO_EPSILON}, and two without error still came {found.sum()} times")
    return reported(f"{NO_EPSILON}, and a transition without error does not come again")


@question(
    "edges",
    "Does a draw at the very edge of the total fall on something stored?",
    section="3.3, sum tree",
    effect="Once in millions of draws an empty slot is replayed: zeros, or an index out of range, and a "
    "weight of infinity.",
)
def edges(exam: Exam) -> Finding:
    exam.require("find")
    for stored in (5, 33, CAPACITY):
        trial = exam.trial(stored, batch_size=4).set_errors(mixed_error)
        for fraction in (0.0, 5e-324, 1e-300, 0.5, 1 - 2.0**-24, 1 - 2.0**-53):
            found = _found(trial, fraction)
            if fraction < 1e-9 and found != trial.stored[0] and stored < CAPACITY:
                return fails(f"at the fraction {fraction:g} lies transition {found}, not the first")
    return holds("from 0 to 1 − 2⁻⁵³ of the total, with 5, 33 and 64 of 64 stored")


def _found(trial: Trial, fraction: float) -> int:
    try:
        observation = trial.adapter.find(trial.buffer, fraction)  # type: ignore[attr-defined]
        return int(trial.serials(plain("find", observation, (2,))[None])[0])
    except (Fault, IndexError, RecursionError) as error:
        raise Fault(
            f"with {len(trial.stored)} stored, at the fraction {fraction!r} of the total: {error}"
        ) from error


def after_many_updates(exam: Exam, low: float, high: float) -> Finding:
    """Update again and again with errors in [low, high], then set small ones and compare."""
    trial = exam.trial(CAPACITY, exact=True)
    until = time.process_time() + min(MOST_SECONDS, exam.adapter.time_limit / 3)
    done, update, size = 0, exam.adapter.update, trial.settings.batch_size
    logs = exam.rng.uniform(np.log(low), np.log(high), size=(1000, size))
    errors = np.exp(logs)
    while done < UPDATES and time.process_time() < until:
        drawn = exam.adapter.sample(trial.buffer, size, trial.settings.beta)
        update(trial.buffer, drawn.keys, errors[done // size % 1000])
        done += size
    # On the way down all come quickly: those that are still large are drawn first.
    trial.set_errors(lambda serial: 1e-3 * mixed_error(serial))
    finding = compare(trial, 20_000)
    less = "" if done >= UPDATES else " (all there was time for)"
    return Finding(finding.verdict, f"after {done:,} updates{less}: {finding.measured}")
