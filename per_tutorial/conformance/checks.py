"""The checks of the algorithm: what a prioritised replay buffer must do to be one.

A check is a function of a `Bench` that asserts, and returns what it measured. The order is that of
causes: a failure may explain a later one. `further_checks` has those that are not in the paper.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.conformance.adapter import as_adapter
from per_tutorial.conformance.bench import (
    FALSE_ALARM,
    SIGMAS,
    Bench,
    Filled,
    Inconclusive,
    Serials,
    Skipped,
    fields_of,
    misfit,
    numbers,
    told,
)
from per_tutorial.replay.contracts import Floats

__tracebackhide__ = True
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
        'in 3 cases'
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
        bench = Bench(as_adapter(adapter), self.name, capacity, batch_size, seed)
        try:
            return self.function(bench)
        except AssertionError as fault:  # pytest shows the user's test, not the lines of the check
            raise fault.with_traceback(None) from fault.__cause__

    @property
    def question(self) -> str:
        """What it asks, where the paper says so, and the effect on an agent."""
        return f"{self.asks} Paper: {self.paper}. {self.effect}"


#: All checks by name, in the order of causes.
CHECKS: dict[str, Check] = {}


def register(kind: Kind, paper: str, effect: str) -> Callable:
    """Register a function as one of the `CHECKS`; its docstring is what it asks."""

    def take(function: Callable[[Bench], str]) -> Callable[[Bench], str]:
        name, asks = function.__name__.replace("_", "-"), " ".join(str(function.__doc__).split())
        CHECKS[name] = Check(name, asks, paper, effect, kind, function)
        return function

    return take


algorithm = partial(register, "algorithm")


def skip_uniform(bench: Bench) -> None:
    """Raise `Skipped` for a buffer that has no priorities."""
    if bench.adapter.distribution == "uniform":
        raise Skipped("its draws are uniform")


# Contents -----------------------------------------------------------------------------------------


@algorithm(
    "Algorithm 1", "Nothing works; or weights (batch, 1) make the loss a table (batch, batch)."
)
def handling(bench: Bench) -> str:
    """Do add, sample and update work, also without an update between two samples, and do the shapes
    of a minibatch's fields fit together?"""
    filled = bench.fill()
    for _ in range(20):
        drawn, serials, _ = filled.sample()
        filled.update(drawn, serials, lambda k: (-1) ** k * 1.5)
        filled.add(3)
    filled.sample()
    with told("drawn twice without an update between, which the adapter must allow"):
        filled.sample()
    given = fields_of(drawn)
    shapes = {n: given[n].shape for n in ("weights", "rewards", "terminated") if n in given}
    columns = [name for name, shape in shapes.items() if len(shape) == 2]
    said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    assert len(columns) in (0, len(shapes)), (
        f"some fields are columns and some are not, so that their product is a table: {said}"
    )
    if columns == ["weights"]:
        raise Inconclusive(f"weights are a column: {said}; hand out rewards to see whether all are")
    missing = [n for n, value in vars(drawn).items() if value is None and n != "keys"]
    absent = f"; not handed out, so not checked: {', '.join(missing)}" if missing else ""
    return f"it works{absent}"


@algorithm(
    "Algorithm 1, lines 6 and 9", "Some experience is never learned from, or was never made."
)
def reach(bench: Bench) -> str:
    """Can all that is stored be drawn, the newest and the oldest included, and nothing else?"""
    size, adapter = bench.capacity, bench.adapter
    for added in (max(2, size // 8), size // 2 + 1, size, size + size // 3, 2 * size + size // 3):
        filled = bench.fill(added + adapter.delay)  # all have the same priority
        with told(f"with {len(filled.log)} added to {size} slots"):
            serials = filled.many(bench.draws * len(filled.stored) // size)[0]
            counts, oldest, newest = filled.count(serials), serials.min(), serials.max()
            first, last = filled.stored[[0, -1]]
            assert oldest >= first, f"transition {oldest} came, which should have been overwritten"
            said = f"transition {newest} came, too new for the declared `delay` of {adapter.delay}"
            assert newest <= last, said
            # The last observation of an episode may need a slot, too, so that some are gone.
            gone = sum(one.terminated or one.truncated for one in filled.log[first:]) + 1
            allowed = filled.stored < min(oldest, first + gone * (added >= size))
            missing = filled.stored[(counts == 0) & ~allowed]
            said = f"{len(missing)} never came in {serials.size} draws, such as number"
            assert not missing.size, f"{said} {missing[0]}{missing_cause(serials, missing, last)}"
            if adapter.distribution != "rank" and adapter.newcomers == "largest":
                filled.assert_share(~allowed, counts)  # equal priorities have different ranks
    return f"all came, with {size // 8} to {size} of {size} slots filled and after two rounds"


def missing_cause(serials: Serials, missing: Serials, last: int) -> str:
    """Why transitions may be missing among these draws (minibatches, batch), or nothing."""
    if missing.tolist() == [0]:
        return "; likely: a new one's priority goes to the next slot, or slot 0 is dead"
    if (serials == serials[0]).all():
        if serials.max() < missing[0]:
            return "; likely: random numbers, or the strata of a minibatch, do not span the total"
        return "; likely: the random numbers are the same for every minibatch"
    if missing[0] + len(missing) == last + 1:
        return f"; if the newest wait on purpose, declare `delay = {len(missing)}`"
    return ""


@algorithm(
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
        with told("where observations are numbers above 4096"):  # a rounded one is a failure
            drawn, serials, _ = filled.sample()
        added = [filled.log[serial] for serial in serials.tolist()]
        offered = [name for name in fields if name in fields_of(drawn)]
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


@algorithm("Algorithm 1, line 12", "Some TD errors are lost, late, or go to another transition.")
def updates(bench: Bench) -> str:
    """Does every TD error of an update arrive at once, also where a transition is in a minibatch
    twice?"""
    skip_uniform(bench)
    error_of = bench.mixed_errors()
    for _ in range(4):
        filled = bench.fill(exact=True, alpha=1.0).set_errors(error_of)
        larger = bench.unit * bench.rng.permutation(np.linspace(6.0, 10.0, len(filled.log)))
        drawn, serials, _ = filled.sample()
        filled.update(drawn, serials, larger.tolist().__getitem__)
        with told(f"after one update of {len(serials)} transitions, some of them twice"):
            filled.assert_fits(bench.draws)
        if bench.adapter.distribution == "proportional":  # ranks may be sorted later on purpose
            assert_at_once(bench)
    return f"all of {len(serials)} positions arrive, also those of repeated transitions"


def assert_at_once(bench: Bench) -> None:
    """Assert that a transition that gets nearly all the probability is in the next minibatches."""
    small, large = 1e-4 * bench.unit, bench.adapter.clip or 1e4
    filled = bench.fill(exact=True, alpha=1.0).set_errors(lambda k: small)
    drawn, serials, _ = filled.sample()
    top, size = serials[0], len(serials)
    filled.update(drawn, serials, lambda k: large if k == top else small)
    share = filled.expected(filled.bases()).max()
    number = int(np.ceil(np.log(FALSE_ALARM) / np.log1p(-share) / size))
    if number <= 5:  # else chance could explain that it is missing
        assert top in filled.many(number * size)[0], (
            f"an update gave transition {top} {share:.1%} of the probability, but it is not in the "
            "next minibatch: are sums refreshed later?"
        )


@algorithm(
    "3.3, equation (1)", "Replay is greedier or flatter than was tuned, or blind to bad news."
)
def exponent(bench: Bench) -> str:
    """Do draws follow |δ|^α, for small errors, for large ones, for both signs, and for another
    α?"""
    adapter, uniform = bench.adapter, bench.adapter.distribution == "uniform"
    unit, repeated = adapter.clip or 1.0, not adapter.replacement
    found, off, cases = [], [], []
    small = 0.009 * unit, 0.9 * unit
    large = (4.0, 100.0) if adapter.clip is None else small
    for (low, high), alpha in ((small, 0.6), (large, 0.6), (small, 1.0)):
        sizes = bench.rng.permutation(np.geomspace(low, high, bench.capacity))
        # Neighbours have the same size, and different signs.
        signed = np.repeat(sizes[::2], 2)[: bench.capacity] * (-1.0) ** np.arange(bench.capacity)
        signed *= 1 + 1e-4 * bench.rng.random(bench.capacity)
        filled = bench.fill(exact=True, alpha=alpha)
        filled.set_errors(np.resize(signed, len(filled.log)).tolist().__getitem__)
        serials = np.sort(filled.many(bench.draws)[0])
        repeated |= bool((np.diff(serials) == 0).any())
        counts, p = filled.count(serials), filled.bases()
        one, deviation = filled.exponent(counts)
        came = counts[filled.known]
        negative = np.array([filled.errors[k] < 0 for k in filled.stored[filled.known].tolist()])
        share, fair = came[negative].sum() / came.sum(), filled.expected(p**one)[negative].sum()
        said = f"negative errors get {share:.0%} of the draws, {fair:.0%} expected"
        positive = (p**alpha)[~negative]  # if these are right among themselves, the sign matters
        if misfit(came[~negative], positive / positive.sum(), 0.03, filled.dispersion) is None:
            said += "; likely: the absolute value is missing"
        assert abs(share - fair) < 0.1, said
        off.append(abs(one - alpha * (not uniform)) > SIGMAS * deviation + bench.slack)
        found.append(one)
        cases.append((p, alpha, came, filled.dispersion))
    below, above, with_one = found
    sentence = f"exponent {below:.2f} where |δ| < {unit:g} and {above:.2f} above, with α = 0.6"
    sentence += f", and {with_one:.2f} with α = 1"
    cause = "" if uniform else likely_cause(found, cases)
    if not repeated:
        cause = "; likely: no minibatch holds one twice; if on purpose, declare `replacement`"
    assert not any(off), sentence + cause
    return sentence


#: What makes p^α other masses, with one number x.
OTHER_MASSES: dict[str, Callable[[Floats, float, float], Floats]] = {
    "about {:.2g} is added to |δ|, so declare `epsilon`": lambda p, alpha, x: (p + x) ** alpha,
    "about {:.2g} is added to |δ|^α, not to |δ|": lambda p, alpha, x: p**alpha + x,
    "about {:.0%} of the draws are uniform; if documented, declare `uniform_share`": (
        lambda p, alpha, x: (1 - x) * p**alpha + x * (p**alpha).mean()
    ),
}
#: What makes these exponents of small errors, of large ones, and of small ones with α = 1.
OTHER_EXPONENTS = {
    "α is applied twice": (0.36, 0.36, 1.0),
    "α is not applied": (1.0, 1.0, 1.0),
    "the priority is δ², not |δ|": (1.2, 1.2, 2.0),
    "the priority is the Huber loss, not |δ|": (1.2, 0.6, 2.0),
    "|δ| is clipped; if this is documented, declare `clip`": (0.6, 0.0, 1.0),
    "the priority is |δ| times the weight": (0.48, 0.48, 0.71),
    "the priority is δ² times the weight": (0.97, 0.97, 1.43),
}


def likely_cause(found: list[float], cases: list[tuple[Floats, float, NDArray, float]]) -> str:
    """What may make these exponents, in words, or nothing; cases: p, α, counts, dispersion."""
    if max(found) < -0.1:
        return "; likely: the order is reversed, so that the largest |δ| counts least"
    best, cause = -np.inf, ""
    for said, masses in OTHER_MASSES.items():
        for x in np.geomspace(1e-4, 0.5, 100):
            P = [(m := masses(p, alpha, x)) / m.sum() for p, alpha, _, _ in cases]
            made = [(counts, one, 0.03, d) for one, (_, _, counts, d) in zip(P, cases, strict=True)]
            if (likelihood := sum(counts @ np.log(one) for counts, one, _, _ in made)) > best:
                fits = all(misfit(*each) is None for each in made)
                best, cause = likelihood, said.format(x) * fits
    return f"; likely: {cause}" if cause else likely(found, OTHER_EXPONENTS, 0.07)


def likely(found: ArrayLike, guesses: Mapping[str, ArrayLike], within: float = 0.05) -> str:
    """The cause that makes these numbers, or nothing."""
    near = [said for said, made in guesses.items() if np.allclose(made, found, atol=within)]
    return f"; likely: {near[0]}" if near else ""


@algorithm("3.3, equation (1)", "The agent replays the wrong transitions.")
def proportions(bench: Bench) -> str:
    """Is each transition drawn as its priority says, with the same exponent in a full buffer, a
    part-full one and a wrapped one?"""
    size, error_of = bench.capacity, bench.mixed_errors()
    cases = {
        "in a full buffer": size + bench.adapter.delay,
        "in a part-full buffer": size // 2 + 1 + bench.adapter.delay,
        "after wrapping around": size + size // 3,
    }
    found: list[tuple[float, float]] = []  # exponents and their standard errors
    for case, added in cases.items():
        filled = bench.fill(added, exact=True).set_errors(error_of)
        with told(case):
            found.append(filled.assert_fits(bench.draws))
        (full, deviation), (other, its) = found[0], found[-1]
        assert abs(other - full) <= SIGMAS * np.hypot(deviation, its) + bench.slack, (
            f"the exponent is {full:.2f} in a full buffer, and {other:.2f} {case}"
        )
    return f"in {len(cases)} cases"


@algorithm("3.3, sum tree", "Draws go wrong for good, within one training or after one outlier.")
def sums(bench: Bench) -> str:
    """Are draws still right after many updates, and after errors over many orders of magnitude?"""
    error_of = bench.mixed_errors()
    filled = bench.fill(exact=True, alpha=1.0)

    def assert_right() -> None:
        filled.set_errors(lambda k: 1e-2 * error_of(k)).assert_fits(bench.draws)

    try:
        assert_right()
    except AssertionError as error:
        raise Inconclusive(f"draws follow no power of |δ| even before: {error}") from None
    for largest, rounds in ((1e3, 150), (1e10, 30)):
        for _ in range(rounds):
            sizes = np.exp(bench.rng.uniform(-7, np.log(largest), len(filled.log)))
            filled.update(*filled.sample()[:2], sizes.tolist().__getitem__)
        with told(f"after errors up to {largest:g} (do the sums keep rounding errors?)"):
            assert_right()
    return "after errors up to 1e3, and up to 1e10"


@algorithm(
    "3.3, p = |δ| + ε", "A transition whose error was once 0 never comes again, or too often."
)
def epsilon(bench: Bench) -> str:
    """Does a transition without error keep the small chance that ε gives it?"""
    eps = bench.adapter.epsilon
    if bench.adapter.distribution != "proportional":
        raise Skipped("its draws don't follow |δ| itself")
    if eps == 0:
        return assert_zeros_come(bench)
    sizes = np.minimum((0.0, 5 * eps, 50 * eps), bench.adapter.clip or np.inf).tolist()
    for alpha in (1.0, 0.6):
        filled = bench.fill(exact=True, alpha=alpha).set_errors(lambda k: sizes[k % 3])
        said = f"with a third of the errors 0, ε = {eps:g} declared, and α = {alpha:g}"
        with told(said + " (is ε added before the power?)" * (alpha < 1)):
            filled.assert_fits(bench.draws)
    return (
        f"beside others with |δ| = {sizes[1]:g} and {sizes[2]:g}, errors of 0 count as ε = {eps:g}"
    )


def assert_zeros_come(bench: Bench) -> str:
    """Assert that errors of 0 come again where no ε is declared; a small floor of p is enough."""
    filled, tiny = bench.fill(exact=True), 1e-5 * bench.unit
    filled.set_errors(lambda k: tiny * (k % 3 > 0))
    counts = filled.counts(bench.draws)
    zeros = [filled.errors.get(k) == 0 for k in filled.stored.tolist()]
    said = f"beside others with |δ| = {tiny:g}, errors of 0"
    assert np.median(counts[zeros]) > 0, (
        f"{said} hardly ever come again, or never: add ε to |δ|, in the buffer or in `update`"
    )
    return f"{said} come again, though no ε is declared"


#: What makes the probability of new ones, over that of the largest, this power of the largest |δ|.
OTHER_FIRSTS = {"it always gets 1": -0.6, "α is applied to it twice": 0.6**2 - 0.6}


@algorithm("Algorithm 1, lines 2 and 6", "New experience waits, or nothing else is replayed.")
def newcomers(bench: Bench) -> str:
    """Does a new transition get the largest priority, so far or of those stored: before the first
    update, and whatever came last?"""
    skip_uniform(bench)
    adapter, unit = bench.adapter, bench.unit
    if adapter.newcomers == "agent":
        raise Skipped("the agent gives the first priority")
    size = min(4, bench.batch_size) if adapter.replacement else 2
    new = bench.capacity // 8
    few = bench.fill(batch_size=size)
    for _ in range(max(1, bench.capacity // 16)):
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
    sizes = np.array([filled.errors.get(k, 0.0) for k in filled.stored.tolist()])
    for size in np.unique(sizes[filled.known]):
        with told(f"after new ones were added, among others with |δ| = {size:g}"):
            filled.assert_share((sizes == size) & filled.known & (counts > 0), counts)
    ratio = fresh.mean() / max(of_top.mean(), 0.5)
    deviation = np.sqrt(1 / max(fresh.sum(), 1) + 1 / max(of_top.sum(), 1))
    within = np.exp(SIGMAS * deviation + 0.1 * (not adapter.replacement))
    said = f"{ratio:.2f} times as likely as the largest, |δ| = {largest:g}"
    hint = likely(ratio, {what: largest**power for what, power in OTHER_FIRSTS.items()})
    assert 1 / within < ratio < within, f"after updates, a new transition is {said}{hint}"
    return f"{sentence}; after updates, {said}"


# Weights ------------------------------------------------------------------------------------------


#: What makes weights P^−x where β is given, and whether they vary: (β, x, 0 or 1).
OTHER_BETAS = {
    "the weights are left out": (1.0, 0.0, 0),
    "they are in another order than the transitions": (1.0, 0.0, 1),
    "the minus sign of β is missing, or P has no power": (1.0, -1.0, 1),
    "they are of p, not of p^α": (1.0, 1 / 0.6, 1),
    "β is ignored": (0.4, 1.0, 1),
}


@algorithm("3.4", "The bias of prioritised draws is not corrected, or another one is added.")
def weights(bench: Bench) -> str:
    """Do weights correct for what is really drawn, as (N · P)^−β?"""
    error_of = bench.mixed_errors()
    for beta in (1.0, 0.4):
        filled = bench.fill(exact=True, beta=beta).set_errors(error_of)
        serials, values = filled.weighted(bench.draws)
        if bench.adapter.distribution == "uniform":
            assert np.ptp(values) < 0.01, "draws are uniform, and weights are not all equal"
            return "all are equal, like the draws"
        power, deviation = filled.exponent(filled.count(serials))
        betas, off = betas_of(filled, serials, values)
        within = 0.01 + bench.slack + SIGMAS * deviation / max(abs(power), 0.01)
        said = (
            f"weights are P^{-betas[0]:.2f} at first and P^{-betas[-1]:.2f} at last, P as measured"
        )
        if bench.adapter.anneals_beta:
            assert betas.min() > -within and betas.max() < 1 + within, said
            assert np.diff(betas).min() > -0.02, f"β falls: {said}"
            if betas[-1] < 1 - within and betas[-1] - betas[-3] < 0.005:
                raise Inconclusive(f"{said}: does β stop there?")
            return said
        if np.ptp(betas) > 0.05:
            said += "; if the buffer anneals β by itself, declare `anneals_beta`"
        varying = float(np.ptp(values) > 0.01)
        said += likely((beta, float(betas.mean()), varying), OTHER_BETAS, 0.07)
        assert np.abs(betas - beta).max() < within * beta, f"with β = {beta:g}, {said}"
        assert off < 0.25, f"with β = {beta:g}, weights are no power of the measured P"
    return "they stand for the measured P, with β = 1 and β = 0.4"


def betas_of(filled: Filled, serials: Serials, values: Floats) -> tuple[Floats, float]:
    """β in each tenth of the minibatches, and how far weights are from (N · P)^−β (one sigma).

    P is how often a transition came. A minibatch's weights may have any divisor. The priorities
    only say where P is large, so that its chance does not flatten β (an instrumental variable).
    """
    declared = np.zeros(len(filled.log))
    declared[filled.stored[filled.known]] = np.log(filled.bases())
    measured = np.log(np.bincount(serials.ravel()) + 0.5)
    each = declared[serials], measured[serials], -np.log(values)
    z, x, y = (one - one.mean(axis=1, keepdims=True) for one in each)
    parts = np.array_split(np.arange(len(x)), 10)
    betas = np.array([(z * y)[part].sum() / (z * x)[part].sum() for part in parts])
    return betas, float(np.std(y - betas.mean() * x))


@algorithm(
    "3.4", "Weights are part of the step: it is smaller or larger than was set, or 0 at first."
)
def weights_scale(bench: Bench) -> str:
    """If all errors are equal, is every weight 1, whatever the batch size, however full the buffer,
    and whatever the errors were before?"""
    size, alpha = bench.capacity, 0.0 if bench.adapter.distribution == "rank" else 0.6
    few, mixed = max(2, bench.batch_size // 8), bench.mixed_errors()
    for batch, added in ((bench.batch_size, size), (few, size), (few, size // 2 + 1)):
        filled = bench.fill(added + bench.adapter.delay, batch_size=batch, alpha=alpha)
        filled.weighted(1)  # skips a buffer without weights, and finds zeros before any update
        for before in ("", ", and were mixed before") if batch > few else ("",):
            filled.set_errors(mixed if before else lambda k: bench.unit)
            values = filled.set_errors(lambda k: bench.unit).weighted(640)[1]
            assert np.allclose(values, 1.0, rtol=0.002), (
                f"all errors are equal{before}, but in minibatches of {batch}, with {added} of "
                f"{size} stored, weights are {values.min():.3g} to {values.max():.3g}"
            )
    return "1 where all errors are equal"
