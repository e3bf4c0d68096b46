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
from per_tutorial.conformance.exam import CAPACITY, Exam, refusals
from per_tutorial.conformance.trial import Trial, law_of
from per_tutorial.replay.contracts import Floats

DRAWS = 20_000
LAW = "3.3, equation (1)"

# Of the exponent, about what is wanted: a correct buffer is within, but for a chance of `FALSE_ALARM`.
WITHIN, WITHIN_FULL_ALPHA = 0.01, 0.02


@question(
    "handling",
    "Can one add, sample and update, and do shapes fit?",
    section="Algorithm 1",
    effect="A column of weights (batch, 1) against TD errors (batch,) broadcasts to (batch, batch), and "
    "the correction vanishes from the loss.",
)
def handling(exam: Exam) -> Finding:
    trial = exam.trial(40)
    for _ in range(20):
        drawn, serials, _ = trial.sample()
        exam.adapter.update(trial.buffer, drawn.keys, np.linspace(0.1, 2, len(serials)))
        trial.add(3)
    return holds("20 minibatches of 32 drawn and updated")


@question(
    "proportions-full",
    "Full: is each transition drawn as often as its priority says?",
    section=LAW,
    effect="The agent learns from the wrong transitions, and importance-sampling weights correct for "
    "something that did not happen.",
    false_alarm=FALSE_ALARM,
)
def proportions_full(exam: Exam) -> Finding:
    return compare(exam.trial(CAPACITY, exact=True).set_errors(mixed_error), DRAWS)


@question(
    "proportions-part-full",
    "Part full, at several N: the same?",
    section=LAW,
    effect="At the start of training, where most is learned, the draws are not what was asked for.",
    false_alarm=3 * FALSE_ALARM,
)
def proportions_part_full(exam: Exam) -> Finding:
    findings = [
        compare(exam.trial(size, exact=True, batch_size=batch).set_errors(mixed_error), 8000)
        for size, batch in ((5, 4), (33, 32), (CAPACITY - 1, 32))
    ]
    return next((one for one in findings if one.verdict.name == "FAILS"), findings[-1])


@question(
    "proportions-wrapped",
    "After the buffer went round: the same?",
    section=LAW,
    effect="Once the buffer is full, which is most of a training, the draws are not what was asked for.",
    false_alarm=FALSE_ALARM,
)
def proportions_wrapped(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, exact=True).set_errors(mixed_error)
    return compare(trial.add(CAPACITY + 21).set_errors(mixed_error), DRAWS)


@question(
    "proportions-odd-capacity",
    "A capacity that is no power of two: the same?",
    section="3.3, sum tree",
    effect="Some slots are drawn too often, others not at all.",
    false_alarm=FALSE_ALARM,
)
def proportions_odd_capacity(exam: Exam) -> Finding:
    trial = exam.trial(0, exact=True, capacity=21, batch_size=16)
    return compare(trial.add(21 + 8).set_errors(mixed_error), DRAWS)


@question(
    "exponent-small-errors",
    "Which exponent do draws follow where |δ| < 1?",
    section=LAW,
    effect="A Huber loss (½δ² below 1) or δ² as the priority doubles α: greedier than was tuned, and "
    "small errors are forgotten.",
    false_alarm=FALSE_ALARM,
)
def exponent_small(exam: Exam) -> Finding:
    return exponent(exam, largest=0.9, alpha=0.6, within=WITHIN)


@question(
    "exponent-large-errors",
    "And where |δ| > 1?",
    section=LAW,
    effect="δ² as the priority doubles α; a clipped or Huber error makes all large errors alike.",
    false_alarm=FALSE_ALARM,
)
def exponent_large(exam: Exam) -> Finding:
    return exponent(exam, largest=400.0, alpha=0.6, within=WITHIN)


@question(
    "exponent-another-alpha",
    "Does the exponent follow α, here 1?",
    section=LAW,
    effect="Tuning α does nothing, or something else than it seems.",
    false_alarm=FALSE_ALARM,
)
def exponent_another(exam: Exam) -> Finding:
    return exponent(exam, largest=0.9, alpha=1.0, within=WITHIN_FULL_ALPHA)


@question(
    "alpha-zero",
    "With α = 0, are all transitions equally likely?",
    section=LAW,
    effect="What is compared with uniform replay is not uniform.",
    false_alarm=FALSE_ALARM,
)
def alpha_zero(exam: Exam) -> Finding:
    with refusals("α = 0"):
        trial = exam.trial(CAPACITY, exact=True, alpha=0.0)
        trial.sample()
    return compare(trial.set_errors(mixed_error), DRAWS)


@question(
    "sign",
    "Do −δ and +δ count the same?",
    section="3.3, p = |δ| + ε",
    effect="Transitions that turned out worse than expected are never replayed, or NaN enters the tree.",
    false_alarm=FALSE_ALARM,
)
def sign(exam: Exam) -> Finding:
    def error_of(serial: int) -> float:
        return mixed_error(serial // 2) * (-1) ** serial * (1 + serial / 1e5)  # no two are equal

    trial = exam.trial(CAPACITY, exact=True).set_errors(error_of)
    return compare(trial, DRAWS)


@question(
    "reach",
    "Can all that is stored be drawn, the newest and the oldest included?",
    section="Algorithm 1, lines 6 and 9",
    effect="Slots are paid for and never used; the newest experience comes late or never.",
    false_alarm=FALSE_ALARM,
)
def reach(exam: Exam) -> Finding:
    for added in (CAPACITY // 2, CAPACITY, CAPACITY + 21):
        trial = exam.trial(added, exact=True)  # newcomers are equally likely
        draws = int(CAPACITY * np.log(3 * CAPACITY / FALSE_ALARM)) + 1
        counts = trial.counts(draws)
        missing = trial.stored[counts == 0]
        if len(missing):
            which = {trial.stored[0]: " (the oldest)", trial.stored[-1]: " (the newest)"}
            named = ", ".join(f"{serial}{which.get(serial, '')}" for serial in missing[:3].tolist())
            return fails(
                f"of {len(counts)} stored transitions {len(missing)} never came in {counts.sum()} "
                f"draws: number {named}{' and others' if len(missing) > 3 else ''}"
            )
    return holds(f"all {CAPACITY} of a full buffer came, before and after it went round")


@question(
    "one-transition",
    "With one transition stored, is it the one that is drawn?",
    section="3.3, sum tree",
    effect="The first steps of a training hang or crash.",
)
def one_transition(exam: Exam) -> Finding:
    trial = exam.trial(1, batch_size=1)
    trial.counts(50)
    trial.set_errors(lambda serial: 0.3).counts(50)
    return holds("it came in all 100 draws")


@question(
    "stratified",
    "Are draws stratified, one in each of k equal ranges?",
    section="appendix B.2.1",
    effect="None to worry about: stratified minibatches vary less.",
)
def stratified(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY)
    counts = np.array([trial.sample()[1].max() - trial.stored[-1] == 0 for _ in range(2000)])
    # Is the newest one there? Independent: 1 − (1 − 1/64)^32 = 40 %. In strata of two slots: 50 %.
    halves = np.array([(trial.sample()[1] >= CAPACITY // 2).sum() for _ in range(500)])
    spread = halves.var() / 8  # of a binomial count of 32 draws: 32 · ½ · ½
    kind = "stratified" if spread < 0.3 else "independent" if spread > 0.7 else "in between"
    return reported(
        f"{kind}: the draws from half of the buffer vary {spread:.2f} times as much as independent "
        f"ones; the newest is in {counts.mean():.0%} of minibatches"
    )


@question(
    "repeats",
    "May a minibatch hold a transition twice?",
    section="3.3 (draws with replacement)",
    effect="Without repeats P(i) is not p^α / Σ p^α for large minibatches, and weights correct too much.",
)
def repeats(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY)
    trial.set_errors(lambda serial: 20.0 if serial == 3 else 0.1)
    most = max(int((trial.sample()[1] == 3).sum()) for _ in range(50))
    if most > 1:
        return reported(f"yes, up to {most} times for one that has a share of a third")
    return reported("no, not even one that has a share of a third")


def mixed_error(serial: int) -> float:
    """TD errors between 0.1 and 3.2, in turns small and large."""
    return (0.1, 1.6, 0.4, 3.2, 0.2)[serial % 5] * (1 + serial % 7 / 20) * (1 + serial / 1e4)


def compare(trial: Trial, draws: int) -> Finding:
    """Hold frequencies against the law of the buffer."""
    expected, counts = trial.expected(), trial.counts(draws)
    share = counts / counts.sum()
    worst = worst_misfit(counts, expected, FALSE_ALARM / 2)
    if worst is not None:
        serial = int(trial.stored[worst])
        return fails(
            f"transition {serial} (|δ| = {abs(trial.errors.get(serial, np.nan)):.3g}) came in "
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


def exponent(exam: Exam, largest: float, alpha: float, within: float) -> Finding:
    """Measure the exponent that draws follow, on errors up to ``largest``."""
    trial = exam.trial(CAPACITY, exact=True, alpha=alpha)
    # Four levels, and more of the lower ones, so that each level gets a quarter of the draws: of all
    # choices that come to mind, this one measures an exponent with the fewest draws.
    level = np.repeat([0, 1, 2, 3], [43, 15, 5, 1])[exam.rng.permutation(CAPACITY)]
    errors = largest * np.exp(1.08 / alpha * (level - 3)) * (1 - np.arange(CAPACITY) / 1e4)
    trial.set_errors(lambda serial: errors[serial])
    logs, wanted = logarithms(trial, errors[trial.is_known])
    counts = trial.counts(draws_for_exponent(logs, wanted, within))[trial.is_known]
    found = exponent_of(logs, counts)
    sentence = f"exponent {found:.3f} where {wanted:g} was set ({counts.sum()} draws)"
    return holds(sentence) if abs(found - wanted) <= within else fails(sentence)


def logarithms(trial: Trial, errors: Floats) -> tuple[Floats, float]:
    """What is raised to a power, as logarithms (items,), and the power: P ∝ exp(power · log)."""
    priorities, alpha = trial.adapter.priorities(errors), trial.settings.alpha
    if trial.adapter.law == "rank":
        return np.log(law_of(trial.adapter, priorities, 1.0)), alpha
    return np.log(priorities), 0.0 if trial.adapter.law == "uniform" else alpha
