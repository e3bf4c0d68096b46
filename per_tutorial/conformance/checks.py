"""The checks of the algorithm: what a prioritised replay buffer must do to be one.

A check is a function of a `Bench` that asserts, and returns what it measured. The order is that of
causes: a failure may explain a later one. `further_checks` has those that are not in the paper.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.conformance.adapter import as_adapter
from per_tutorial.conformance.bench import (
    SIGMAS,
    Bench,
    Filled,
    Inconclusive,
    Raised,
    Skipped,
    exponent_of,
    misfit,
    numbers,
)
from per_tutorial.replay.contracts import Floats

CAPACITY, BATCH = 64, 32  # of the examined buffers, unless the user wants others
Kind = Literal["algorithm", "further"]


class Check(NamedTuple):
    """One check; call it with an adapter, and it raises AssertionError where the buffer fails.

    It raises `unittest.SkipTest`, which pytest knows, where it does not apply or cannot decide.

    Attributes:
        name: in kebab case.
        asks: what it asks of a buffer.
        paper: the section or line of Schaul et al. (2016), or another source.
        effect: on an agent, if the buffer fails.
        kind: "algorithm", or "further" for what the paper does not promise.
        function: of a `Bench`.

    Example:
        >>> from per_tutorial.conformance import CHECKS, find_adapter
        >>> CHECKS["sign"](find_adapter("proportional"))
        'negative errors get 50 % of the draws'
    """

    name: str
    asks: str
    paper: str
    effect: str
    kind: Kind
    function: Callable[[Bench], str]

    def __call__(
        self, adapter: Any, *, capacity: int = CAPACITY, batch_size: int = BATCH, seed: int = 0
    ) -> str:
        """Check a buffer; returns what was measured."""
        capacity = whole_number("capacity", capacity, minimum=16)
        batch_size = whole_number("batch_size", batch_size, minimum=2, maximum=capacity)
        seed = whole_number("seed", seed, minimum=0)
        return self.function(Bench(as_adapter(adapter), self.name, capacity, batch_size, seed))


#: All checks by name, in the order of causes.
CHECKS: dict[str, Check] = {}


def check(paper: str, effect: str, kind: Kind = "algorithm") -> Callable:
    """Register a function as one of the `CHECKS`; its docstring is what it asks."""

    def register(function: Callable[[Bench], str]) -> Callable[[Bench], str]:
        name, asks = function.__name__.replace("_", "-"), " ".join(str(function.__doc__).split())
        CHECKS[name] = Check(name, asks, paper, effect, kind, function)
        return function

    return register


def skip_uniform(bench: Bench) -> None:
    """Raise `Skipped` for a buffer that has no priorities."""
    if bench.adapter.distribution == "uniform":
        raise Skipped("its draws are uniform")


def refuses(raised: Raised) -> bool:
    """Whether a buffer refused a setting, as opposed to breaking down."""
    return isinstance(raised.__cause__, ValueError | AssertionError)


# Contents -----------------------------------------------------------------------------------------


@check("Algorithm 1", "Nothing works; or weights (batch, 1) make the loss a table (batch, batch).")
def handling(bench: Bench) -> str:
    """Do add, sample and update work, and do observations and weights have the right shapes?"""
    filled = bench.fill()
    for _ in range(20):
        drawn, serials, _ = filled.sample()
        filled.update(drawn, np.linspace(-2, 2, len(serials)))
        filled.add(3)
    missing = [name for name in drawn._fields if getattr(drawn, name) is None]
    missing += [name for name in ("save", "find") if not hasattr(bench.adapter, name)]
    absent = f"; absent, so not checked: {', '.join(missing)}" if missing else ""
    return f"20 minibatches of {len(serials)} were drawn and updated{absent}"


@check("Algorithm 1, lines 6 and 9", "Some experience is never learned from, or was never made.")
def reach(bench: Bench) -> str:
    """Can all that is stored be drawn, the newest and the oldest included, and nothing else?"""
    size = bench.capacity
    for added in (size // 8, size // 2 + 1, size, size + size // 3):
        filled = bench.fill(added + bench.adapter.delay)  # all have the same priority
        stored = len(filled.stored)
        counts = filled.counts(int(stored * np.log(stored * 1e7)))
        missing = filled.stored[counts == 0]
        if len(missing) == 0:
            continue
        share, likely = counts[-1] / counts.sum(), ""
        if share > 10 / stored:
            likely = f"; the newest gets {share:.0%} of the draws: its priority is far too large"
        elif counts[-1] == 0:
            likely = ", and the newest is among them: the sum may end before the last slot"
        elif counts[0] == 0:
            likely = ", and the oldest is among them: it may be overwritten too early"
        raise AssertionError(
            f"{len(missing)} of {stored} stored transitions never came in {counts.sum()} draws, "
            f"such as number {missing[0]}, with {len(filled.log)} added to {size} slots{likely}"
        )
    return f"all came, with {size // 8} to {size} of {size} slots filled and after wrapping around"


@check(
    "Algorithm 1, line 6; Pardo et al. 2018",
    "The agent learns from steps that nobody took, or takes the value at a time limit for 0.",
)
def contents(bench: Bench) -> str:
    """Do the fields of a transition come back together, in full precision, and is a time limit
    told from a terminal state?"""
    # float16 rounds odd numbers above 2048.
    filled = bench.fill(bench.capacity + bench.capacity // 3, first_state=4097, discount=1.0)
    for _ in range(1 + 40 * bench.capacity // filled.settings.batch_size // 2):
        drawn, serials, _ = filled.sample()
        added = [filled.log[serial] for serial in serials.tolist()]
        compared = {
            "actions": [one.action for one in added],
            "rewards": [one.reward for one in added],
            "next_observations": [one.next_observation for one in added],
            "terminated": [one.terminated for one in added],
        }
        offered = {n: v for n, v in compared.items() if getattr(drawn, n) is not None}
        for name, values in offered.items():
            wanted = np.array(values, np.float64)
            got = numbers(name, getattr(drawn, name), wanted.shape)
            wrong = (np.abs(got - wanted) > 1e-6 * np.abs(wanted)).reshape(len(serials), -1).any(1)
            if name == "next_observations" and not bench.adapter.terminal_next_observation:
                wrong &= ~np.array(compared["terminated"])
            for k in np.flatnonzero(wrong)[:1]:
                cut = ", which a time limit cut off" * bool(added[k].truncated)
                raise AssertionError(
                    f"of transition {serials[k]}{cut}, {name} is {got[k].tolist()}, "
                    f"not {wanted[k].tolist()}"
                )
    if not offered:
        raise Skipped("the adapter hands out nothing but observations")
    return f"{', '.join(offered)} are as they were added"


# Updates ------------------------------------------------------------------------------------------


@check("Algorithm 1, line 12", "Some TD errors are lost, or go to another transition.")
def updates(bench: Bench) -> str:
    """Does every TD error of an update arrive, also where a transition is in a minibatch twice?"""
    skip_uniform(bench)
    size = min(8, bench.batch_size)
    for position in (0, size // 2, size - 1):
        filled = bench.fill(alpha=1.0, batch_size=size).set_errors(lambda k: 0.5, distinct=True)
        for _ in range(200):
            drawn, serials, _ = filled.sample()
            if len(set(serials.tolist())) == size:
                break
        else:
            raise Inconclusive("all of 200 minibatches held a transition twice")
        filled.update(drawn, [0.005 if k == position else 0.5 for k in range(size)])
        counts = filled.counts(bench.draws // 2)
        mine = counts[serials[position] - filled.stored[0]]
        # It has a hundredth of the others' |δ|, or ranks last. If nothing arrived, it is as likely.
        assert mine < 0.7 * counts.mean(), (
            f"the TD error at position {position + 1} of {size} does not arrive: with a hundredth "
            f"of the others' |δ|, it still comes {mine / counts.mean():.1f} times as often"
        )
    if not bench.adapter.replacement:
        return f"all of {size} positions arrive"
    few = bench.fill(8, batch_size=8)  # so that most minibatches hold a transition twice
    few.set_errors(lambda serial: 1.0 + serial)
    for _ in range(20):  # each time with other errors, the same for a transition that comes twice
        drawn, serials, _ = few.sample()
        errors = bench.rng.uniform(1.0, 8.0, len(few.log))
        few.update(drawn, errors[serials])
        few.errors.update((k, float(errors[k])) for k in serials.tolist())
    counts = few.counts(bench.draws // 2)
    try:
        few.assert_fits(counts, few.probabilities(exponent_of(few.bases(), counts[few.known])[0]))
    except AssertionError as error:
        raise AssertionError(
            f"after minibatches that held a transition twice, each time with the same TD error, "
            f"{error}: its TD error went elsewhere, or counted twice in the sums"
        ) from None
    return f"all of {size} positions arrive, and those of repeated transitions"


@check("Algorithm 1, lines 2 and 6", "New experience waits behind what has been learned already.")
def newcomers_at_first(bench: Bench) -> str:
    """Before the first large error: do transitions that were never replayed come first?"""
    skip_uniform(bench)
    if bench.adapter.newcomers == "agent":
        raise Skipped("the agent gives the first priority")
    filled = bench.fill(batch_size=4 if bench.adapter.replacement else 2)
    for _ in range(4):
        drawn, serials, _ = filled.sample()
        filled.update(drawn, np.full(len(serials), 0.01))
        filled.errors.update(dict.fromkeys(serials.tolist(), 0.01))
    counts = filled.counts(bench.draws // 2)
    fresh, replayed = counts[~filled.known].mean(), counts[filled.known].mean()
    sentence = (
        f"they come {fresh / max(replayed, 1e-9):.3g} times as often as those with |δ| = 0.01"
    )
    assert fresh > 0.8 * replayed, f"{sentence}: a new one has a tiny priority, or none"
    return sentence


# Draws --------------------------------------------------------------------------------------------


def measured_exponent(bench: Bench, low: float, high: float, alpha: float) -> tuple[float, float]:
    """The exponent of draws where |δ| is between these, and the tolerance for a correct one."""
    errors = bench.rng.permutation(np.geomspace(low, high, bench.capacity))
    filled = bench.fill(exact=True, alpha=alpha)
    filled.set_errors(lambda serial: float(errors[serial % len(errors)]))
    counts = filled.counts(bench.draws)
    found, deviation = exponent_of(filled.bases(), counts[filled.known])
    return found, SIGMAS * deviation + (0.002 if bench.adapter.replacement else 0.03)


@check("3.3, equation (1)", "Replay is greedier or flatter than was tuned, everywhere or below 1.")
def exponent(bench: Bench) -> str:
    """Do draws follow p^α, for small errors, for large ones, and for another α?"""
    adapter, unit = bench.adapter, bench.adapter.clip or 1.0
    alpha = 0.0 if adapter.distribution == "uniform" else 0.6
    small, within = measured_exponent(bench, 0.009 * unit, 0.9 * unit, 0.6)
    large = small if adapter.clip else measured_exponent(bench, 4.0, 100.0, 0.6)[0]
    full, within_full = measured_exponent(bench, 0.009 * unit, 0.9 * unit, 1.0)
    sentence = f"exponent {small:.2f} where |δ| < {unit:g} and {large:.2f} above, with α = 0.6"
    off = [abs(found - alpha) > within for found in (small, large)]
    guesses = {  # exponents of small and of large errors → what makes them
        (0.36, 0.36): "α is applied twice",
        (1.0, 1.0): "α is not applied",
        (1.2, 1.2): "the priority is δ², not |δ|",
        (1.2, 0.6): "the priority is the Huber loss, not |δ|",
        (0.6, 0.0): "|δ| is clipped; if this is documented, declare `clip`",
        (0.0, 0.0): "the TD errors do not arrive",
        (0.3, 0.3): "the priority is the square root of |δ|",
    }
    near = [
        guess for pair, guess in guesses.items() if np.allclose(pair, (small, large), atol=0.06)
    ]
    assert not any(off), f"{sentence}{'; likely: ' * bool(near)}{''.join(near)}"
    wanted = alpha and 1.0
    assert abs(full - wanted) < within_full, f"exponent {full:.2f} with α = 1, though {sentence}"
    return f"{sentence}, {full:.2f} with α = {wanted:g}"


def assert_proportions(filled: Filled, draws: int, exponent: float | None = None) -> float:
    """Assert that draws follow a power of the priorities, by default any: `exponent` judges which.

    Returns the exponent.
    """
    counts = filled.counts(draws)[filled.known]
    if exponent is None:
        exponent = exponent_of(filled.bases(), counts)[0]
    filled.assert_fits(counts, filled.probabilities(exponent))
    return exponent


@check("3.3, equation (1)", "The agent replays the wrong transitions.")
def proportions(bench: Bench) -> str:
    """Is each transition drawn as its priority says: in a full, a part-full and a wrapped buffer,
    with an odd capacity, with equal priorities, and with α = 0?"""
    size, error_of = bench.capacity, bench.mixed_errors()
    unit = min(1.0, (bench.adapter.clip or 4.0) / 4)

    def two_sizes(serial: int) -> float:
        return unit * (0.5 if serial % 4 else 4.0)

    rank = bench.adapter.distribution == "rank"
    cases: dict[str, dict[str, Any]] = {
        "with equal priorities": {"alpha": 0.0 if rank else 0.6},  # equal errors have many ranks
        "in a full buffer": {},
        "in a part-full buffer": {"added": size // 2 + 1 + bench.adapter.delay},
        "after wrapping around": {"added": size + size // 3},
        "with an odd capacity": {"capacity": 2 * size // 3 | 1, "added": size},
        "with α = 0": {"alpha": 0.0},
    }
    for case, settings in cases.items():
        try:
            filled = bench.fill(exact=True, **settings)
            filled.sample()
        except Raised as raised:
            if case in ("with an odd capacity", "with α = 0") and refuses(raised):
                continue
            raise
        filled.set_errors(two_sizes if "equal" in case else error_of)
        try:
            assert_proportions(filled, bench.draws)
        except AssertionError as error:
            raise AssertionError(f"{case}, {error}") from None
    return f"in {len(cases)} cases"


@check("3.3, p = |δ| + ε", "What turned out worse than expected is never replayed.")
def sign(bench: Bench) -> str:
    """Do −δ and +δ count the same?"""
    skip_uniform(bench)
    sizes = bench.mixed_errors()
    filled = bench.fill(exact=True)
    # Neighbours have nearly the same size, and the larger one is positive and negative in turn.
    filled.set_errors(lambda k: (-1) ** k * sizes(k // 2) * (1 + 1e-3 * (k % 2 == k // 2 % 2)))
    counts = filled.counts(bench.draws)
    negative = np.array([filled.errors.get(k, 0.0) < 0 for k in filled.stored.tolist()])
    share = counts[negative].sum() / counts.sum()
    sentence = f"negative errors get {share:.0%} of the draws".replace("%", " %")
    assert 0.45 < share < 0.55, f"{sentence}; likely: the absolute value is missing"
    return sentence


@check("3.3, p = |δ| + ε", "A transition whose error was once 0 never comes again, or too often.")
def epsilon(bench: Bench) -> str:
    """Does a transition without error keep the small chance that ε gives it?"""
    eps = bench.adapter.epsilon
    if bench.adapter.distribution != "proportional" or eps == 0:
        raise Skipped("the adapter names no ε")
    small = 100 * eps if 100 * eps < min(1.0, bench.adapter.clip or 1.0) else eps
    filled = bench.fill(exact=True, alpha=1.0).set_errors(lambda k: 0.0 if k % 2 else small)
    counts = filled.counts(bench.draws)[filled.known]
    zero = np.array([filled.errors[k] == 0 for k in filled.stored[filled.known].tolist()])
    wanted, draws = filled.probabilities()[zero].sum(), counts.sum()
    share = counts[zero].sum() / draws
    sentence = f"half of all, without error, get {share:.2%} of the draws, {wanted:.2%} expected"
    off = abs(share - wanted) / np.sqrt(wanted / draws)
    assert off < SIGMAS + 1 + 0.1 * wanted * np.sqrt(draws) * (not bench.adapter.replacement), (
        f"{sentence}, beside others with |δ| = {small:g}; ε = {eps:g} is declared"
    )
    return sentence


# New transitions ----------------------------------------------------------------------------------


@check("Algorithm 1, line 6", "New experience waits, or nothing else is replayed.")
def newcomers(bench: Bench) -> str:
    """Does a new transition get the largest priority so far, whatever it replaces and whatever came
    last?"""
    skip_uniform(bench)
    if bench.adapter.newcomers == "agent":
        raise Skipped("the agent gives the first priority")
    if bench.adapter.clip is not None and bench.adapter.clip < 1:
        raise Skipped("the initial priority of 1 stays the largest, beyond the clip")
    new, unit, sentences = bench.capacity // 8, (bench.adapter.clip or 20.0) / 20, []
    for largest in (10.0, 1.5) if bench.adapter.clip is None else (bench.adapter.clip,):
        filled = bench.fill(exact=True)
        filled.set_errors(lambda k, top=largest: top if k % 2 else top / 3)
        sentences.append(judge_newcomers(filled, new, largest, bench.draws))
    # Now the largest is of one transition that is not replayed while all others become small.
    filled = bench.fill(batch_size=4 if bench.adapter.replacement else 2)
    outlier = int(filled.stored[bench.capacity // 2])
    filled.set_errors(lambda k: 20.0 * unit if k == outlier else 5.0 * unit)
    updated = 0
    for _ in range(4000):
        drawn, serials, _ = filled.sample()
        if outlier not in serials:
            filled.update(drawn, np.full(len(serials), unit))
            filled.errors.update(dict.fromkeys(serials.tolist(), unit))
            updated += 1
            if updated == 400:
                break
    said = judge_newcomers(filled, new, 20.0 * unit, 2 * bench.draws)
    return f"{'; '.join(sentences)}; {said}, after {updated} updates with |δ| = {unit:g}"


def judge_newcomers(filled: Filled, new: int, largest: float, draws: int) -> str:
    """Add transitions, and assert that they are as likely as those that have the largest |δ|."""
    alpha, adapter = filled.settings.alpha, filled.adapter
    stored_errors = np.array([filled.errors[k] for k in filled.stored[filled.known].tolist()])
    counts = filled.add(new + adapter.delay).counts(draws)
    fresh = counts[-new:]
    is_top = np.array([filled.errors.get(k) == largest for k in filled.stored.tolist()])
    if not is_top.any():
        raise Inconclusive("no transition could be given the largest |δ|")
    if adapter.distribution == "rank":
        rest = counts[:-new]
        assert np.median(fresh) > np.median(rest), "new transitions do not rank among the first"
        return "new ones rank among the first"
    assert misfit(fresh, np.full(new, 1 / new), 0.02) is None, (
        f"new transitions differ, from {fresh.min()} to {fresh.max()} of {counts.sum()} draws; "
        "likely: they inherit the priority of what they replace"
    )
    ratio = fresh.mean() / max(counts[is_top].mean(), 0.5)
    deviation = np.sqrt(1 / max(fresh.sum(), 1) + 1 / max(counts[is_top].sum(), 1))
    within = np.exp(SIGMAS * deviation + 0.1 * (not adapter.replacement))
    p = adapter.priorities(stored_errors) / adapter.priorities(np.array([largest]))
    means = (p.mean() ** alpha, (p**alpha).mean())
    sentence = f"{ratio:.2f} times as likely as the largest, |δ| = {largest:g}"
    is_mean = any(0.9 / within < ratio / mean < 1.1 * within for mean in means)
    if adapter.newcomers == "mean":
        assert is_mean, f"a new transition is {sentence}; declared is the mean, {means[0]:.2f}"
        return sentence
    hint = "; if it is the mean, as documented, declare `newcomers`" * is_mean
    assert 1 / within < ratio < within, f"a new transition is {sentence}{hint}"
    return sentence


# Weights ------------------------------------------------------------------------------------------


@check("3.4", "The bias of prioritised draws is not corrected, or another one is added.")
def weights(bench: Bench) -> str:
    """Do weights correct for what is really drawn, as (N · P)^−β?"""
    error_of = bench.mixed_errors()
    if bench.adapter.anneals_beta:
        return annealed_weights(bench.fill().set_errors(error_of), bench.draws)
    levels = {}
    for beta in (1.0, 0.4, 0.0):
        try:
            filled = bench.fill(exact=beta == 1, beta=beta)
            filled.sample()
        except Raised as raised:
            if beta == 0 and refuses(raised):
                continue
            raise
        filled.set_errors(error_of)
        serials, values = filled.weighted(bench.draws if beta == 1 else bench.draws // 4)
        levels[beta] = levels_of(filled, serials, values, beta)
        if beta == 1:
            counts, seen = filled.count(serials), np.isfinite(levels[beta])
            implied = np.exp(-levels[beta][seen])
            shares, spread = counts[seen] / counts.sum(), np.ptp(levels[beta][seen])
            implied /= implied.sum()
            worst = misfit(counts[seen], implied, 0.0 if bench.adapter.replacement else 0.08)
    slope = {}
    for beta in (b for b in levels if b < 1):
        both = np.isfinite(levels[beta]) & np.isfinite(levels[1.0])
        x, y = (levels[b][both] - levels[b][both].mean() for b in (1.0, beta))
        slope[beta] = x @ y / (x @ x) if spread > 1e-6 else beta
        assert abs(slope[beta] - beta) < 0.005 and np.abs(y - slope[beta] * x).max() < 0.005, (
            f"with β = {beta:g}, weights are those of β = {slope[beta]:.3f}"
        )
    inverted = spread > 1e-6 and np.corrcoef(implied, shares)[0, 1] < -0.2
    assert worst is None, (
        f"with β = 1, weights differ by a factor of {np.exp(spread):.3g} where draws differ by "
        f"{shares.max() / max(shares.min(), 1e-9):.3g}: the weight of transition "
        f"{filled.stored[seen][worst]} stands for {implied[worst]:.2%} of the draws, and it came "
        f"in {shares[worst]:.2%}" + "; likely: the sign of β is wrong" * bool(inverted)
    )
    return (
        f"they stand for the draws with β = 1, and follow β = {', '.join(f'{b:g}' for b in slope)}"
    )


def levels_of(filled: Filled, serials: NDArray, values: Floats, beta: float) -> Floats:
    """log w of each of the `stored`, up to a constant, NaN if it never came; minibatches may have
    any divisor."""
    items, logs = serials - filled.stored[0], np.log(values)
    seen, levels = filled.count(serials), np.zeros(len(filled.stored))
    for _ in range(100):  # alternate: the divisor of each minibatch, the level of each transition
        divisors = (logs - levels[items]).mean(axis=1, keepdims=True)
        sums = np.bincount(items.ravel(), (logs - divisors).ravel(), minlength=len(seen))
        levels, last = sums / np.maximum(seen, 1), levels
        if np.abs(levels - last).max() < 1e-10:
            break
    off = np.abs(logs - divisors - levels[items]).max()
    assert off < 0.01, (
        f"with β = {beta:g}, two minibatches weigh the same transition differently, by "
        f"{np.expm1(off):.1%}; if the buffer anneals β by itself, declare `anneals_beta`"
    )
    return np.where(seen > 0, levels, np.nan)


def annealed_weights(filled: Filled, draws: int) -> str:
    """`weights` for a buffer that changes β by itself: it rises, and each minibatch has one."""
    serials, values = filled.weighted(draws // 4)
    expected = np.full(len(filled.stored), np.nan)
    expected[filled.known] = filled.probabilities()
    x, y = np.log(expected[serials - filled.stored[0]]), np.log(values)
    x, y = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    betas = -(x * y).sum(axis=1) / (x * x).sum(axis=1)
    assert np.abs(y + betas[:, None] * x).max() < 0.01, "weights are not a power of N · P"
    assert betas.min() > -0.002 and betas.max() < 1.002, f"β is {betas.min():.2f}–{betas.max():.2f}"
    assert np.diff(betas).min() > -0.005, f"β falls, from {betas.max():.2f} to {betas[-1]:.2f}"
    return f"β rises from {betas[0]:.3f} to {betas[-1]:.3f} in {len(betas)} minibatches"


@check("3.4", "Weights are part of the step: it is smaller or larger than was set, or 0 at first.")
def weights_scale(bench: Bench) -> str:
    """If all are equally likely, is every weight 1, whatever the batch size and however full the
    buffer? Otherwise, are weights divided by the largest or the mean, or not at all?"""
    size, alpha = bench.capacity, 0.0 if bench.adapter.distribution == "rank" else 0.6
    batches = (bench.batch_size, max(2, bench.batch_size // 8))
    for batch, added in ((batches[0], size), (batches[1], size), (batches[0], size // 2 + 1)):
        filled = bench.fill(added + bench.adapter.delay, batch_size=min(batch, added), alpha=alpha)
        weights = filled.weighted(640)[1]
        assert np.allclose(weights, 1.0, rtol=0.002), (
            f"all are equally likely, but in minibatches of {filled.settings.batch_size}, with "
            f"{added} of {size} stored, weights are {weights.min():.3g} to {weights.max():.3g}"
        )
    if bench.adapter.anneals_beta or bench.adapter.distribution == "uniform":
        return "1"
    beta = 0.4
    filled = bench.fill(beta=beta).set_errors(bench.mixed_errors())
    serials, weights = filled.weighted(bench.draws // 4)
    levels = levels_of(filled, serials, weights, beta)
    implied = np.exp(-levels / beta)
    every = (len(levels) * implied / np.nansum(implied)) ** -beta
    raw = every[serials - filled.stored[0]]
    factors = np.median(weights / raw, axis=1)  # of each minibatch
    kinds = {
        "the largest of the minibatch": 1 / raw.max(axis=1),
        "the largest of the buffer": 1 / np.nanmax(every),
        "nothing": 1.0,
        "the mean of the minibatch": 1 / raw.mean(axis=1),
    }
    fitting = [kind for kind, usual in kinds.items() if np.allclose(factors, usual, rtol=0.02)]
    assert fitting, (
        "weights are divided by none of the usual: the largest possible one would be "
        f"{(factors * np.nanmax(every)).min():.3g} to {(factors * np.nanmax(every)).max():.3g}"
    )
    return f"1 where all are equally likely; else divided by {fitting[0]}"


# Sums ---------------------------------------------------------------------------------------------


@check("3.3, sum tree", "Draws go wrong for good, within one training or after one outlier.")
def sums(bench: Bench) -> str:
    """Are draws still right after many updates, and after errors over many orders of magnitude?"""
    error_of = bench.mixed_errors()
    filled = bench.fill(exact=True).set_errors(error_of)
    for what, largest, rounds in (("usual", 1e3, 150), ("huge", 1e10, 30)):
        for _ in range(rounds):
            drawn, serials, _ = filled.sample()
            filled.update(drawn, np.exp(bench.rng.uniform(-7, np.log(largest), len(serials))))
        try:
            filled.set_errors(lambda serial: 1e-2 * error_of(serial))
            assert_proportions(filled, bench.draws)
        except (AssertionError, Inconclusive) as error:
            raise AssertionError(
                f"after {what} errors, up to {largest:g}, {error}; likely: sums are changed by "
                "differences and keep their rounding errors"
            ) from None
    return "after errors up to 1e3, and up to 1e10"
