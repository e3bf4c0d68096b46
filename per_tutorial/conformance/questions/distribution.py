"""How often each transition is drawn: P(i) = p_i^α / Σ_k p_k^α (section 3.3)."""

import numpy as np

from per_tutorial.conformance.answers import Finding, fails, holds, question, reported
from per_tutorial.conformance.chance import (
    FALSE_ALARM,
    draws_for_exponent,
    exponent_of,
    worst_group,
    worst_misfit,
)
from per_tutorial.conformance.context import CAPACITY, TestContext, refusals
from per_tutorial.conformance.harness import BufferHarness
from per_tutorial.replay.contracts import Floats

DRAWS = 20_000
FORMULA = "3.3, equation (1)"
EXPONENTS = ("exponent-small-errors", "exponent-large-errors")

# Tolerances of a measured exponent. A correct buffer exceeds them with probability `FALSE_ALARM`.
WITHIN, WITHIN_FULL_ALPHA = 0.01, 0.02


@question(
    "exponent-small-errors",
    "Which exponent do draws follow where |δ| < 1?",
    section=FORMULA,
    effect="A Huber loss (½δ² below 1) or δ² as the priority doubles α: greedier than was tuned, "
    "and small errors are forgotten.",
    needs=("duplicates",),
    false_alarm=FALSE_ALARM,
)
def exponent_small(context: TestContext) -> Finding:
    return exponent(context, largest=0.9, alpha=0.6, within=WITHIN)


@question(
    "exponent-large-errors",
    "Which exponent do draws follow where |δ| > 1?",
    section=FORMULA,
    effect="δ² as the priority doubles α; a clipped or Huber error makes all large errors alike.",
    needs=("exponent-small-errors",),
    false_alarm=FALSE_ALARM,
)
def exponent_large(context: TestContext) -> Finding:
    return exponent(context, largest=400.0, alpha=0.6, within=WITHIN)


@question(
    "exponent-another-alpha",
    "Does the exponent follow α, here 1?",
    section=FORMULA,
    effect="Tuning α does nothing, or something else than it seems.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def exponent_another(context: TestContext) -> Finding:
    return exponent(context, largest=0.9, alpha=1.0, within=WITHIN_FULL_ALPHA)


@question(
    "proportions-full",
    "In a full buffer, is each transition drawn as often as its priority says?",
    section=FORMULA,
    effect="The agent learns from the wrong transitions, and importance-sampling weights correct "
    "for something that did not happen.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def proportions_full(context: TestContext) -> Finding:
    return compare(context.harness(CAPACITY, exact=True).set_errors(mixed_error), DRAWS)


@question(
    "proportions-part-full",
    "And in a buffer that is only part full?",
    section=FORMULA,
    effect="At the start of training, where most is learned, the draws are not what was asked for.",
    needs=EXPONENTS,
    false_alarm=3 * FALSE_ALARM,
)
def proportions_part_full(context: TestContext) -> Finding:
    findings = [
        compare(context.harness(size, exact=True, batch_size=batch).set_errors(mixed_error), 8000)
        for size, batch in ((5, 4), (33, 32), (CAPACITY - 1, 32))
    ]
    return next((one for one in findings if one.failed), findings[-1])


@question(
    "proportions-wrapped",
    "And after the buffer has wrapped around?",
    section=FORMULA,
    effect="Once the buffer is full, which is most of a training, the draws are not what was asked "
    "for.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def proportions_wrapped(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, exact=True).set_errors(mixed_error)
    return compare(harness.add(CAPACITY + 21).set_errors(mixed_error), DRAWS)


@question(
    "proportions-odd-capacity",
    "And if the capacity is not a power of two?",
    section="3.3, sum tree",
    effect="Some slots are drawn too often, others not at all.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def proportions_odd_capacity(context: TestContext) -> Finding:
    harness = context.harness(0, exact=True, capacity=21, batch_size=16)
    return compare(harness.add(21 + 8).set_errors(mixed_error), DRAWS)


@question(
    "sign",
    "Do −δ and +δ count the same?",
    section="3.3, p = |δ| + ε",
    effect="Transitions that turned out worse than expected are never replayed, or NaN enters the "
    "tree.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def sign(context: TestContext) -> Finding:
    def error_of(serial: int) -> float:
        return mixed_error(serial // 2) * (-1) ** serial * (1 + serial / 1e5)  # no two are equal

    return compare(context.harness(CAPACITY, exact=True).set_errors(error_of), DRAWS)


@question(
    "alpha-zero",
    "With α = 0, are all transitions equally likely?",
    section=FORMULA,
    effect="What is compared with uniform replay is not uniform.",
    needs=EXPONENTS,
    false_alarm=FALSE_ALARM,
)
def alpha_zero(context: TestContext) -> Finding:
    with refusals("α = 0"):
        harness = context.harness(CAPACITY, exact=True, alpha=0.0)
        harness.sample()
    return compare(harness.set_errors(mixed_error), DRAWS)


@question(
    "stratified",
    "Are draws stratified, one in each of k equal ranges?",
    section="appendix B.2.1",
    effect="None to worry about: stratified minibatches vary less.",
    needs=("only-stored",),
)
def stratified(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY)
    counts = np.array(
        [harness.sample().serials.max() - harness.stored[-1] == 0 for _ in range(2000)]
    )
    # The newest is in 1 − (1 − 1/64)^32 = 40 % of independent minibatches. In strata of two: 50 %.
    halves = np.array([(harness.sample().serials >= CAPACITY // 2).sum() for _ in range(500)])
    spread = halves.var() / 8  # the variance of a binomial count of 32 draws: 32 · ½ · ½
    kind = "stratified" if spread < 0.3 else "independent" if spread > 0.7 else "in between"
    return reported(
        f"{kind}: the draws from half of the buffer vary {spread:.2f} times as much as independent "
        f"ones; the newest is in {counts.mean():.0%} of minibatches"
    )


@question(
    "repeats",
    "May a minibatch hold a transition twice?",
    section="3.3 (draws with replacement)",
    effect="Without repeats P(i) is not p^α / Σ p^α for large minibatches, and weights correct too "
    "much.",
    needs=("newcomers-at-first",),
)
def repeats(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY)
    harness.set_errors(lambda serial: 20.0 if serial == 3 else 0.1)
    most = max(int((harness.sample().serials == 3).sum()) for _ in range(50))
    if most > 1:
        return reported(f"yes, up to {most} times for one that has a share of a third")
    return reported("no, not even one that has a share of a third")


def mixed_error(serial: int) -> float:
    """A TD error between 0.1 and 4.2; small and large ones alternate."""
    return (0.1, 1.6, 0.4, 3.2, 0.2)[serial % 5] * (1 + serial % 7 / 20) * (1 + serial / 1e4)


def compare(harness: BufferHarness, draws: int) -> Finding:
    """Compare frequencies with P(i)."""
    expected, counts = harness.expected(), harness.counts(draws)
    share = counts / counts.sum()
    worst = worst_misfit(counts, expected, FALSE_ALARM / 2)
    if worst is not None:
        serial = int(harness.stored[worst])
        return fails(
            f"transition {serial} (|δ| = {abs(harness.errors.get(serial, np.nan)):.3g}) came in "
            f"{share[worst]:.2%} of {counts.sum()} draws, {expected[worst]:.2%} expected"
        )
    group = worst_group(counts, expected, FALSE_ALARM / 2)
    if group is not None:
        name, items = group
        return fails(
            f"the {name} of {len(counts)} transitions came in {share[items].sum():.2%} of "
            f"{counts.sum()} draws, {expected[items].sum():.2%} expected"
        )
    off = np.abs(share - expected).sum() / 2
    return holds(f"{len(counts)} transitions, {counts.sum()} draws: {off:.1%} fell elsewhere")


def exponent(context: TestContext, largest: float, alpha: float, within: float) -> Finding:
    """Measure the exponent that draws follow, on errors up to ``largest``."""
    harness = context.harness(CAPACITY, exact=True, alpha=alpha)
    # Four levels, with more items in the lower ones, so that the levels get similar shares of the
    # draws. Of all choices tried, this one measures an exponent with the fewest draws.
    level = np.repeat([0, 1, 2, 3], [43, 15, 5, 1])[context.rng.permutation(CAPACITY)]
    errors = largest * np.exp(1.08 / alpha * (level - 3)) * (1 - np.arange(CAPACITY) / 1e4)
    harness.set_errors(lambda serial: errors[serial])
    logs, wanted = logarithms(harness, errors[harness.is_known])
    counts = harness.counts(draws_for_exponent(logs, wanted, within))[harness.is_known]
    found = exponent_of(logs, counts)
    sentence = f"exponent {found:.3f} where {wanted:g} was set ({counts.sum()} draws)"
    return holds(sentence) if abs(found - wanted) <= within else fails(sentence)


def logarithms(harness: BufferHarness, errors: Floats) -> tuple[Floats, float]:
    """The logarithms (items,) of what is raised to a power, and the power: P ∝ exp(power · log)."""
    priorities, alpha = harness.priorities_of(errors), harness.settings.alpha
    if harness.adapter.distribution == "rank":
        return np.log(harness.probabilities(priorities, 1.0)), alpha
    return np.log(priorities), 0.0 if harness.adapter.distribution == "uniform" else alpha
