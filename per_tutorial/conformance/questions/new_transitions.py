"""The priority of a transition before its first TD error is known (Algorithm 1, line 6).

The names of questions call new transitions "newcomers".
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from per_tutorial.conformance.answers import Finding, Inconclusive, fails, holds, question, reported
from per_tutorial.conformance.chance import FALSE_ALARM, share_misfits, worst_misfit
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import BufferHarness
from per_tutorial.conformance.questions.distribution import EXPONENTS, mixed_error
from per_tutorial.replay.contracts import Floats

SECTION = "Algorithm 1, line 6"
DRAWS = 20_000
NEW = 8  # transitions that are added before the draws are counted
UPDATES = 64_000  # priorities, 2,000 minibatches: a decay of 1e-4 per minibatch loses 18 %


@question(
    "newcomers-largest",
    "Does a new transition get the largest priority so far?",
    section=SECTION,
    effect="Less (α applied twice, a fixed 1, ε): new experience is looked at late. More: nothing "
    "else is. The mean of what is stored is a choice: new experience waits its turn.",
    needs=EXPONENTS,
    false_alarm=2 * FALSE_ALARM,
)
def newcomers_largest(context: TestContext) -> Finding:
    fitting, sentences = {"the largest", "the mean", "the mean of p^α"}, []
    for largest in (10.0, 1.5):
        harness = context.harness(CAPACITY - NEW, exact=True)
        harness.set_errors(partial(alternating, largest))
        kinds, ratio = kinds_of_new(harness)
        sentences.append(f"{ratio:.2f} times as likely as the largest, |δ| = {largest:g}")
        fitting &= kinds
    return judge_new(fitting, "; ".join(sentences))


@question(
    "newcomers-forget",
    "Does a new transition forget the priority of what it replaces?",
    section=SECTION,
    effect="New experience inherits the rank of unrelated old one.",
    needs=("newcomers-largest",),
    false_alarm=FALSE_ALARM,
)
def newcomers_forget(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, exact=True).set_errors(mixed_error).add(24)
    counts = harness.counts(DRAWS)
    new, rest = counts[-24:], counts[:-24].sum()
    share = new.sum() / counts.sum()
    if new.sum() == 0:
        return fails(f"24 new transitions never came in {counts.sum()} draws")
    if harness.adapter.distribution == "rank":
        # Ties may be ordered in any way: only the total share is determined.
        known = harness.priorities()
        sentence = f"24 new transitions get {share:.1%} of the draws"
        right = is_priority(harness, counts, known, known.max(), 24)
        return holds(f"{sentence}, as they should") if right else fails(sentence)
    worst = worst_misfit(np.append(new, rest), np.append(np.full(24, share / 24), 1 - share))
    if worst is None:
        return holds("24 new transitions are equally likely, whatever they replaced")
    return fails(
        f"of 24 new transitions, one that replaced δ = {mixed_error(worst):.2g} came {new[worst]} "
        f"times, the mean is {new.mean():.0f}"
    )


@question(
    "newcomers-last-update",
    "After a minibatch of small errors: is it still the largest of all, not that minibatch's?",
    section=SECTION,
    effect="If the largest priority is that of the last minibatch, chance decides where new "
    "experience goes: mostly, it waits.",
    needs=("newcomers-largest",),
    false_alarm=FALSE_ALARM,
)
def newcomers_last_update(context: TestContext) -> Finding:
    # Small minibatches: with stratified draws, the largest would be in every large one.
    harness = context.harness(CAPACITY - NEW, exact=True, batch_size=4)
    harness.set_errors(lambda serial: 20.0 if serial == 5 else 5.0)
    for _ in range(200):
        drawn, serials, _ = harness.sample()
        if 5 not in serials:
            break
    else:
        raise Inconclusive("the transition of the largest priority was in each of 200 minibatches")
    harness.update(drawn, np.ones(len(serials)))
    harness.errors.update(dict.fromkeys(serials.tolist(), 1.0))
    last = "the largest of the last minibatch"
    kinds, ratio = kinds_of_new(harness, {last: harness.priorities_of(np.ones(1))[0]})
    sentence = f"{ratio:.2f} times as likely as the largest, |δ| = 20, after updates by |δ| = 1"
    if last in kinds and "the largest" not in kinds:
        return fails(f"it gets {last}: {sentence}")
    return judge_new(kinds, sentence)


@question(
    "newcomers-memory",
    "Is it the largest priority ever, or of what is stored now? However many updates follow?",
    section=SECTION,
    effect="A choice. The paper's is the largest ever: after one outlier, new transitions stay on "
    "top for good. One that decays with the updates is neither: it depends on when a transition "
    "comes.",
    needs=("newcomers-largest",),
    false_alarm=2 * FALSE_ALARM,
)
def newcomers_memory(context: TestContext) -> Finding:
    if context.adapter.distribution != "proportional":
        return reported("of new transitions only the order counts here")
    fitting, ratios = {"ever", "stored now"}, []
    for updates in (0, UPDATES):
        harness = context.harness(CAPACITY - NEW, exact=True, alpha=1.0)
        harness.set_errors(lambda serial: 20.0).set_errors(lambda serial: 2.0)
        done = harness.keep_updating(np.full((1, harness.settings.batch_size), 2.0), updates)
        known = harness.priorities()
        counts = harness.add(NEW).counts(DRAWS)
        kinds = {"ever": harness.priorities_of(np.array([20.0]))[0], "stored now": known.max()}
        ratios.append(relative(harness, counts, known, known.max()))
        fitting &= {kind for kind, p in kinds.items() if is_priority(harness, counts, known, p)}
    first, last, ever = *ratios, kinds["ever"] / kinds["stored now"]
    sentence = (
        f"{first:.2f} times as likely as the largest stored now, {last:.2f} times after {done:,} "
        f"more updates ({ever:.2f}: ever)"
    )
    if fitting:
        return reported(f"{min(fitting)}: {sentence}")
    return fails(f"{'it decays' if last < first else 'neither'}: {sentence}")


def kinds_of_new(
    harness: BufferHarness, others: Mapping[str, float] | None = None
) -> tuple[set[str], float]:
    """Add transitions; return which priorities fit, and their likelihood relative to the largest.

    ``others`` names more priorities to try.
    """
    known, alpha = harness.priorities(), harness.settings.alpha
    kinds = {
        "the largest": known.max(),
        "the mean": known.mean(),
        "the mean of p^α": np.mean(known**alpha) ** (1 / alpha),
        **(others or {}),
    }
    counts = harness.add(NEW).counts(DRAWS)
    fitting = {kind for kind, p in kinds.items() if is_priority(harness, counts, known, p)}
    return fitting, relative(harness, counts, known, known.max())


def judge_new(fitting: set[str], sentence: str) -> Finding:
    """The paper asks for the largest; a mean is a choice, and anything else a mistake."""
    if "the largest" in fitting:
        return holds(sentence)
    if fitting:
        return reported(f"a choice, {min(fitting)} of what is stored: {sentence}")
    return fails(sentence)


def is_priority(
    harness: BufferHarness, counts: NDArray, known: Floats, priority: float, new: int = NEW
) -> bool:
    """Whether the newest transitions were drawn as often as this priority says, up to chance."""
    low, high = share_of_new(harness, known, priority, new)
    return not share_misfits(int(counts[-new:].sum()), int(counts.sum()), low, high)


def share_of_new(
    harness: BufferHarness, known: Floats, priority: float, new: int = NEW
) -> tuple[float, float]:
    """The smallest and the largest share of draws of new transitions with this priority.

    They differ if ranks count: ties may be ordered in any way.
    """
    first, last = (
        harness.probabilities(np.append(np.full(new, priority * factor), known))[:new].sum()
        for factor in (1 + 1e-9, 1 - 1e-9)
    )
    return float(last) * (1 - 1e-6), float(first) * (1 + 1e-6)


def alternating(largest: float, serial: int) -> float:
    """The TD error: ``largest`` for odd transitions, a third of it for even ones."""
    return largest if serial % 2 else largest / 3


def relative(harness: BufferHarness, counts: NDArray, known: Floats, priority: float) -> float:
    """How likely a new transition is, relative to one with this priority."""
    share = counts[-NEW:].sum() / counts.sum()
    wanted = float(np.mean(share_of_new(harness, known, priority)))
    odds = share / max(1 - share, 1e-9)
    return float(odds / (wanted / max(1 - wanted, 1e-9)))
