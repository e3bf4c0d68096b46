"""The checks of the algorithm: what a prioritised replay buffer must do to be one.

A check is a function of a `Bench` that asserts, and returns what it measured. The order is that of
causes: a failure may explain a later one. `further_checks` has those that are not in the paper.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from per_tutorial.conformance.adapter import as_adapter
from per_tutorial.conformance.bench import (
    SIGMAS,
    Bench,
    Filled,
    Serials,
    Skipped,
    exponent_of,
    numbers,
    told,
)
from per_tutorial.replay.contracts import Floats

CAPACITY, BATCH = 60, 32  # of the examined buffers; mistakes in trees hide at powers of two
Kind = Literal["algorithm", "further"]


class Check(NamedTuple):
    """One check; call it with an adapter, and it raises AssertionError where the buffer fails.

    It raises `unittest.SkipTest`, which pytest knows, where it does not apply or cannot decide.

    Attributes:
        paper: the section or line of Schaul et al. (2016), or another source.
        effect: on an agent, if the buffer fails.
        kind: "algorithm", or "further" for what the paper does not promise.

    Example:
        >>> from per_tutorial.conformance import CHECKS, find_adapter
        >>> CHECKS["proportions"](find_adapter("proportional"))
        'in 4 cases'
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


# Contents -----------------------------------------------------------------------------------------


@check("Algorithm 1", "Nothing works; or weights (batch, 1) make the loss a table (batch, batch).")
def handling(bench: Bench) -> str:
    """Do add, sample and update work, and do observations and weights have the right shapes?"""
    filled = bench.fill()
    for _ in range(20):
        drawn, serials, _ = filled.sample()
        filled.update(drawn, serials, lambda k: (-1) ** k * 1.5)
        filled.add(3)
    missing = [name for name in drawn._fields if getattr(drawn, name) is None]
    absent = f"; absent, so not checked: {', '.join(missing)}" if missing else ""
    return f"it works{absent}"


@check("Algorithm 1, lines 6 and 9", "Some experience is never learned from, or was never made.")
def reach(bench: Bench) -> str:
    """Can all that is stored be drawn, the newest and the oldest included, and nothing else?"""
    size = bench.capacity
    for added in (size // 8, size // 2 + 1, size, size + size // 3):
        filled = bench.fill(added + bench.adapter.delay)  # all have the same priority
        stored = len(filled.stored)
        counts = filled.counts(int(stored * np.log(stored * 1e7)))
        missing = filled.stored[counts == 0]
        assert len(missing) == 0, (
            f"{len(missing)} of {stored} stored transitions never came in {counts.sum()} draws, "
            f"such as number {missing[0]} of {len(filled.log)} added; the newest came in "
            f"{counts[-1] / counts.sum():.0%}"
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
    filled = bench.fill(bench.capacity + bench.capacity // 3, first_state=4097)
    fields = ("actions", "rewards", "next_observations", "terminated")
    for _ in range(1 + 20 * bench.capacity // filled.settings.batch_size):
        drawn, serials, _ = filled.sample()
        added = [filled.log[serial] for serial in serials.tolist()]
        offered = [name for name in fields if getattr(drawn, name) is not None]
        for name in offered:
            wanted = np.array([getattr(one, name.removesuffix("s")) for one in added], float)
            got = numbers(name, getattr(drawn, name), wanted.shape)
            wrong = (np.abs(got - wanted) > 1e-6 * np.abs(wanted)).reshape(len(serials), -1).any(1)
            if name == "next_observations" and not bench.adapter.terminal_next_observation:
                wrong &= [not one.terminated for one in added]
            k = int(np.argmax(wrong))
            which = f"transition {serials[k]}" + " at a time limit" * bool(added[k].truncated)
            assert not wrong.any(), (
                f"of {which}, {name} is {got[k].tolist()}, not {wanted[k].tolist()}"
            )
    if not offered:
        raise Skipped("the adapter hands out nothing but observations")
    return f"{', '.join(offered)} are as they were added"


# Priorities ---------------------------------------------------------------------------------------


@check("Algorithm 1, line 12", "Some TD errors are lost, or go to another transition.")
def updates(bench: Bench) -> str:
    """Does every TD error of an update arrive, also where a transition is in a minibatch twice?"""
    skip_uniform(bench)
    error_of = bench.mixed_errors()
    for _ in range(4):
        filled = bench.fill(exact=True, alpha=1.0).set_errors(error_of)
        larger = bench.unit * bench.rng.permutation(np.linspace(6.0, 10.0, len(filled.log)))
        drawn, serials, _ = filled.sample()
        filled.update(drawn, serials, larger.tolist().__getitem__)
        with told(f"after one update of {len(serials)} transitions, some of them twice"):
            filled.assert_fits(bench.draws)
    return f"all of {len(serials)} positions arrive, also those of repeated transitions"


@check("3.3, equation (1)", "Replay is greedier or flatter than was tuned, or blind to bad news.")
def exponent(bench: Bench) -> str:
    """Do draws follow |δ|^α, for small errors, for large ones, for both signs, and for another
    α?"""
    unit, slack = bench.adapter.clip or 1.0, 0.002 if bench.adapter.replacement else 0.03
    small = 0.009 * unit, 0.9 * unit
    large = (4.0, 100.0) if bench.adapter.clip is None else small
    found, off = [], []
    for (low, high), alpha in ((small, 0.6), (large, 0.6), (small, 1.0)):
        sizes = bench.rng.permutation(np.geomspace(low, high, bench.capacity))
        # Neighbours have the same size, and different signs.
        signed = np.repeat(sizes[::2], 2)[: bench.capacity] * (-1.0) ** np.arange(bench.capacity)
        signed *= 1 + 1e-4 * bench.rng.random(bench.capacity)
        filled = bench.fill(exact=True, alpha=alpha)
        filled.set_errors(np.resize(signed, len(filled.log)).tolist().__getitem__)
        counts = filled.counts(bench.draws)
        if bench.adapter.distribution == "uniform":
            alpha = 0.0
        else:
            negative = [filled.errors.get(k, 0.0) < 0 for k in filled.stored]
            share = counts[negative].sum() / counts.sum()
            said = f"negative errors get {share:.0%} of the draws"
            assert 0.4 < share < 0.6, f"{said}; likely: the absolute value is missing"
        one, deviation = exponent_of(filled.bases(), counts[filled.known])
        off.append(abs(one - alpha) > SIGMAS * deviation + slack)
        found.append(one)
    guesses = {  # exponents of small and of large errors → what makes them
        (0.36, 0.36): "α is applied twice",
        (1.0, 1.0): "α is not applied",
        (1.2, 1.2): "the priority is δ², not |δ|",
        (1.2, 0.6): "the priority is the Huber loss, not |δ|",
        (0.6, 0.0): "|δ| is clipped; if this is documented, declare `clip`",
        (0.0, 0.0): "the TD errors do not arrive",
    }
    near = [said for pair, said in guesses.items() if np.allclose(pair, found[:2], atol=0.06)]
    if bench.adapter.epsilon == 0 and not off[1] and found[0] < 0.58 and found[2] < 0.98:
        near = ["an ε is added to |δ|; declare `epsilon`"]  # it counts only beside small errors
    sentence = (
        f"exponent {found[0]:.2f} where |δ| < {unit:g} and {found[1]:.2f} above, with α = 0.6, "
        f"and {found[2]:.2f} with α = 1"
    )
    assert not any(off), f"{sentence}{'; likely: ' * bool(near)}{''.join(near)}"
    return sentence


@check("3.3, equation (1)", "The agent replays the wrong transitions.")
def proportions(bench: Bench) -> str:
    """Is each transition drawn as its priority says: in a full, a part-full and a wrapped one, and
    with equal priorities?"""
    size, error_of, unit = bench.capacity, bench.mixed_errors(), bench.unit
    rank = bench.adapter.distribution == "rank"
    cases: dict[str, dict[str, Any]] = {
        "with equal priorities": {"alpha": 0.0 if rank else 0.6},  # equal errors have many ranks
        "in a full buffer": {},
        "in a part-full buffer": {"added": size // 2 + 1 + bench.adapter.delay},
        "after wrapping around": {"added": size + size // 3},
    }
    for case, settings in cases.items():
        two_sizes = "equal" in case
        filled = bench.fill(exact=True, **settings)
        filled.set_errors((lambda k: unit * (4.0 if k % 4 else 0.5)) if two_sizes else error_of)
        with told(case):
            filled.assert_fits(bench.draws)
    return f"in {len(cases)} cases"


@check("3.3, p = |δ| + ε", "A transition whose error was once 0 never comes again, or too often.")
def epsilon(bench: Bench) -> str:
    """Does a transition without error keep the small chance that ε gives it?"""
    eps = bench.adapter.epsilon
    if bench.adapter.distribution != "proportional" or eps == 0:
        raise Skipped("the adapter names no ε")
    small = min(20 * eps, bench.adapter.clip or 1.0)
    filled = bench.fill(exact=True, alpha=1.0).set_errors(lambda k: 0.0 if k % 2 else small)
    with told(f"with half of the errors 0, and ε = {eps:g} declared"):
        filled.assert_fits(bench.draws, 1.0)
    return f"beside others with |δ| = {small:g}, errors of 0 count as ε = {eps:g}"


@check("Algorithm 1, lines 2 and 6", "New experience waits, or nothing else is replayed.")
def newcomers(bench: Bench) -> str:
    """Does a new transition get the largest priority so far: before the first update, whatever it
    replaces, and whatever came last?"""
    skip_uniform(bench)
    adapter, unit = bench.adapter, bench.unit
    if adapter.newcomers == "agent":
        raise Skipped("the agent gives the first priority")
    size = min(4, bench.batch_size) if adapter.replacement else 2
    new = bench.capacity // 8
    few = bench.fill(batch_size=size)
    for _ in range(bench.capacity // 16):
        few.update(*few.sample()[:2], lambda k: 0.01)
    counts = few.counts(bench.draws // 8)
    ratio = counts[~few.known].mean() / max(counts[few.known].mean(), 1e-9)
    sentence = f"at first, they are {ratio:.3g} times as likely as those with |δ| = 0.01"
    assert ratio > 0.8, f"{sentence}: a new one has a tiny priority, or none"
    if adapter.clip is not None and adapter.clip < 1:
        return sentence  # the initial priority of 1 stays the largest, beyond the clip
    # The largest is of one transition, which is not replayed while all others become small.
    filled, largest = bench.fill(batch_size=size), 10.0 * unit
    top = int(filled.stored[bench.capacity // 2])
    filled.set_errors(lambda k: largest if k == top else 5.0 * unit)
    for _ in range(300):
        drawn, serials, _ = filled.sample()
        if top not in serials:
            filled.update(drawn, serials, lambda k: unit * (1 + 2 * (k % 3)))
    counts = filled.add(new + adapter.delay).counts(4 * bench.draws)
    fresh, of_top = counts[-new:], counts[filled.stored == top]
    if adapter.distribution == "rank":
        assert fresh.min() > np.median(counts), "new transitions do not rank among the first"
        return f"{sentence}; after updates, they rank among the first"
    ratio = fresh.mean() / max(of_top.mean(), 0.5)
    deviation = np.sqrt(1 / max(fresh.sum(), 1) + 1 / max(of_top.sum(), 1))
    within = np.exp(SIGMAS * deviation + 0.1 * (not adapter.replacement))
    said = f"{ratio:.2f} times as likely as the largest, |δ| = {largest:g}"
    assert 1 / within < ratio < within, f"after updates, a new transition is {said}"
    return f"{sentence}; after updates, {said}"


# Weights ------------------------------------------------------------------------------------------


@check("3.4", "The bias of prioritised draws is not corrected, or another one is added.")
def weights(bench: Bench) -> str:
    """Do weights correct for what is really drawn, as (N · P)^−β?"""
    adapter, error_of, found = bench.adapter, bench.mixed_errors(), []
    for beta in (1.0, 0.4):
        filled = bench.fill(exact=True, beta=beta).set_errors(error_of)
        serials, values = filled.weighted(bench.draws)
        betas = betas_of(filled, serials, values)
        range_of = f"β is {betas[0]:.3f} to {betas[-1]:.3f} in {len(betas)} minibatches"
        if adapter.anneals_beta:
            assert betas.min() > -0.002 and betas.max() < 1.002, range_of
            assert np.diff(betas).min() > -0.005, f"β falls: {range_of}"
            return range_of
        hint = "if the buffer anneals it by itself, declare `anneals_beta`"
        assert np.ptp(betas) < 0.01, f"with β = {beta:g}, {range_of}; {hint}"
        found.append(betas.mean())
    drawn, deviation = exponent_of(filled.bases(), filled.count(serials)[filled.known])
    slack, implied = 0.002 if adapter.replacement else 0.03, filled.settings.alpha * found[0]
    assert abs(implied - drawn) < SIGMAS * deviation + slack, (
        f"with β = 1, weights correct for draws with the exponent {implied:.2f}, and it is "
        f"{drawn:.2f}"
    )
    off = abs(found[1] - 0.4 * found[0])
    assert off < 0.01, f"weights with β = 0.4 differ from β = 1 by another power, by {off:.1%}"
    return "they stand for the draws with β = 1, and follow β = 0.4"


def betas_of(filled: Filled, serials: Serials, values: Floats) -> Floats:
    """β of each minibatch, whose weights are a power of P, and may have any divisor."""
    masses = np.full(len(filled.stored), np.nan)
    masses[filled.known] = filled.settings.alpha * np.log(filled.bases())
    x, y = masses[serials - filled.stored[0]], np.log(values)
    x, y = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    squares = (x * x).sum(axis=1)
    usable = squares > 1e-4  # not one transition several times, and all with known errors
    betas = -(x * y).sum(axis=1)[usable] / squares[usable]
    off = np.abs(y[usable] + betas[:, None] * x[usable]).max()
    assert off < 0.01, f"weights are no power of the declared P(i), by {np.expm1(off):.1%}"
    return betas


@check("3.4", "Weights are part of the step: it is smaller or larger than was set, or 0 at first.")
def weights_scale(bench: Bench) -> str:
    """If all are equally likely, is every weight 1, whatever the batch size and however full the
    buffer?"""
    size, alpha = bench.capacity, 0.0 if bench.adapter.distribution == "rank" else 0.6
    few = max(2, bench.batch_size // 8)
    for batch, added in ((bench.batch_size, size), (few, size), (few, size // 2 + 1)):
        filled = bench.fill(added + bench.adapter.delay, batch_size=batch, alpha=alpha)
        values = filled.weighted(640)[1]
        assert np.allclose(values, 1.0, rtol=0.002), (
            f"all are equally likely, but in minibatches of {batch}, with {added} of {size} "
            f"stored, weights are {values.min():.3g} to {values.max():.3g}"
        )
    return "1 where all are equally likely"


# Sums ---------------------------------------------------------------------------------------------


@check("3.3, sum tree", "Draws go wrong for good, within one training or after one outlier.")
def sums(bench: Bench) -> str:
    """Are draws still right after many updates, and after errors over many orders of magnitude?"""
    error_of = bench.mixed_errors()
    filled = bench.fill(exact=True, alpha=1.0).set_errors(error_of)
    for largest, rounds in ((1e3, 150), (1e10, 30)):
        for _ in range(rounds):
            sizes = np.exp(bench.rng.uniform(-7, np.log(largest), len(filled.log)))
            filled.update(*filled.sample()[:2], sizes.tolist().__getitem__)
        with told(f"after errors up to {largest:g} (do the sums keep rounding errors?)"):
            filled.set_errors(lambda serial: 1e-2 * error_of(serial)).assert_fits(bench.draws)
    return "after errors up to 1e3, and up to 1e10"
