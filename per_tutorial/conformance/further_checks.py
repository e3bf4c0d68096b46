"""Checks of what the paper does not promise: n-step returns, files, seeds, and robustness.

A buffer that follows the paper line by line may fail some of them, and trains well as long as
nothing of the kind happens. `examine(adapter, everything=True)` asks them.
"""

import os
import tempfile
from functools import partial

import numpy as np

from per_tutorial.conformance.bench import Bench, Raised, Skipped, fields_of, numbers, told
from per_tutorial.conformance.checks import register, skip_uniform

further = partial(register, "further")


@further("Hessel et al. 2018", "The agent learns wrong targets, or never from the steps at an end.")
def n_step(bench: Bench) -> str:
    """Is the return of three steps right: inside an episode, at both kinds of end, at the newest?
    And do windows begin in the last steps of an episode as well?"""
    if not bench.adapter.n_step:
        raise Skipped("it makes no n-step returns")
    n, discount, length = 3, 0.5, 7
    added = (bench.capacity + bench.capacity // 3) // length * length + 3  # amid an episode
    filled = bench.fill(added, n_step=n, discount=discount, episode=length)
    newest, seen = added - 1, set()
    for _ in range(2 * int(bench.capacity * np.log(bench.capacity * 1e7)) // bench.batch_size):
        drawn, serials, _ = filled.sample()
        given, size = fields_of(drawn), (len(serials),)
        if not given.keys() >= {"rewards", "next_observations", "terminated"}:
            raise Skipped("the adapter hands out no rewards, next observations or terminated")
        seen |= set(serials.tolist())
        rewards, over = (numbers(n, given[n], size) for n in ("rewards", "terminated"))
        rows = zip(serials.tolist(), rewards, given["next_observations"], over, strict=True)
        for serial, reward, after, over in rows:
            last = min(serial + n - 1, serial - serial % length + length - 1, newest)
            steps = filled.log[serial : last + 1]
            end, total = steps[-1], sum(discount**j * s.reward for j, s in enumerate(steps))
            state = end.next_observation[0] if end.terminated else after[0]  # nobody needs it there
            wanted = total, float(end.next_observation[0]), end.terminated
            where = " before a terminal" * end.terminated + " before a time limit" * end.truncated
            assert np.allclose((reward, state, over), wanted, rtol=1e-4, atol=0), (
                f"from transition {serial}, {len(steps)} steps{where}: (return, next state, "
                f"terminated) is ({reward:.5g}, {after[0]:g}, {over}), not {wanted}"
            )
    stored = filled.stored[n - 1 :].tolist()
    missing = [s for s in stored if s not in seen and s < newest - length]
    assert not missing, f"{len(missing)} steps near an end never come, such as number {missing[0]}"
    return f"all windows of {n} steps are right, and all come"


@further("not in the paper", "A run cannot be repeated; or thirty seeds are one.")
def seeds(bench: Bench) -> str:
    """Does the seed decide what is drawn?"""
    if not bench.adapter.seeded:
        raise Skipped("it takes no seed")

    def run(seed: int) -> list:
        # A few: a whole buffer without replacement is the same for every seed.
        filled = bench.fill(seed=seed, batch_size=max(2, bench.batch_size // 4))
        drawn, serials, _ = filled.sample()
        filled.update(drawn, serials, lambda k: 0.1 + k % 7)
        return [serials.tolist(), filled.many(200)[0].tolist()]

    first, again, other = (run(seed) for seed in (7, 7, 8))
    assert first == again, "the same seed twice draws different transitions"
    assert first != other, "two seeds draw the same transitions"
    return "equal seeds draw the same, two seeds differ"


@further("not in the paper", "After resuming, replay is uniform, or new experience waits.")
def saving(bench: Bench) -> str:
    """Does a loaded buffer hold the same, write on in the right place, and keep priorities and the
    largest one?"""
    if not (hasattr(bench.adapter, "save") and hasattr(bench.adapter, "load")):
        raise Skipped("the adapter has no `save` and `load`")
    filled = bench.fill(bench.capacity + bench.capacity // 3, exact=True)
    error_of, newest = bench.mixed_errors(), len(filled.log) - 1
    largest = min(20.0 * bench.unit, bench.adapter.clip or np.inf)
    filled.set_errors(lambda k: largest if k == newest else error_of(k))
    exponent, _ = filled.assert_fits(bench.draws)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "buffer")
        filled.call("save", filled.buffer, path)
        fresh = filled.call("make", filled.settings)
        returned = filled.call("load", fresh, path)
        filled.buffer = fresh if returned is None else returned
        with told("after loading"):
            filled.assert_fits(bench.draws, exponent)
            counts = filled.add(4).counts(bench.draws)  # asserts that the oldest were overwritten
    missing, added = filled.stored[counts == 0], counts[len(counts) - 4 :]
    assert added.all(), f"after loading, number {missing[-1]} was added and never comes"
    if bench.adapter.distribution == "proportional" and bench.adapter.newcomers == "largest":
        ratio = added.mean() / counts[newest - filled.stored[0]]
        assert ratio > 0.7, (
            f"after loading, new ones are {ratio:.2f} times as likely as the largest"
        )
    return "transitions, priorities and the largest priority are kept"


# Robustness ---------------------------------------------------------------------------------------


@further("Algorithm 1, line 12", "With several actors, new experience gets others' priorities.")
def late_updates(bench: Bench) -> str:
    """Does a late update, large or tiny, leave the new owners of the slots alone?"""
    skip_uniform(bench)
    for error in (1000.0, 1e-4):
        filled = bench.fill(exact=True)
        filled.update(*filled.sample()[:2], lambda k: 1.0)  # in time, so that it must work
        drawn, serials, _ = filled.sample()
        filled.add(bench.capacity)
        try:
            filled.update(drawn, serials, dict.fromkeys(serials.tolist(), error).__getitem__)
        except Raised:
            continue  # to refuse is right
        counts = filled.counts(bench.draws // 2)
        owners = np.isin(filled.stored - bench.capacity, serials)
        share, fair = counts[owners].sum() / counts.sum(), owners[counts > 0].mean()
        wrong = abs(share - fair) > 6 * np.sqrt(fair * (1 - fair) / counts.sum())
        if bench.adapter.distribution == "rank":  # ties may be ordered in any way
            order, number = np.argsort(counts), owners.sum()
            wrong = owners[order[:number]].all() or owners[order[-number:]].all()
        assert not wrong, (
            f"after an update with |δ| = {error:g}, the new owners get {share:.0%} of the draws, "
            f"and are {fair:.0%} of the buffer"
        )
    return "late updates with |δ| = 1000 and 0.0001 change nothing"


@further("not in the paper", "One NaN makes every later draw the same slot, in silence.")
def bad_errors(bench: Bench) -> str:
    """Are TD errors that are NaN or infinite kept out of the priorities?"""
    error_of = bench.mixed_errors()
    for bad in (np.nan, np.inf):
        filled = bench.fill(exact=True).set_errors(error_of)
        exponent, _ = filled.assert_fits(bench.draws)
        drawn, serials, _ = filled.sample()
        errors = filled.errors | {int(serials[-1]): bad}
        try:
            filled.update(drawn, serials, errors.__getitem__)
        except Raised:
            pass  # to refuse is right, if nothing was written
        with told(f"after a TD error of {bad}"):
            weights = filled.sample()[2]
            assert weights is None or np.isfinite(weights).all(), "weights are not finite"
            filled.set_errors(error_of).assert_fits(bench.draws, exponent)
    return "draws are right after NaN and after infinity"


@further("not in the paper", "If somebody reuses an array, the agent learns from other numbers.")
def arrays(bench: Bench) -> str:
    """Does what is stored, a minibatch, and the caller's TD errors stay as they are, whoever writes
    over the arrays afterwards?"""
    filled = bench.fill(0, batch_size=bench.batch_size)
    filled.add(bench.capacity + bench.adapter.delay, spoil=bench.adapter.copies_added)
    with told(
        "once the arrays that were added are written over, as if it kept them without a copy"
    ):
        first = filled.sample()[0]
    before = fields_of(first)
    for event in ("the next one was drawn", "its transitions were replaced"):
        _ = filled.add(bench.capacity) if "replaced" in event else filled.sample()
        changed = [n for n, v in fields_of(first).items() if not np.array_equal(v, before[n])]
        assert not changed, f"{' and '.join(changed)} of a minibatch changed when {event}"
    states = before.get("next_observations", np.ones((1, 2)))
    assert states[:, 0].all(), "it keeps the arrays that are added: next observations changed"
    for field in vars(filled.sample()[0]).values():
        if isinstance(field, np.ndarray) and field.dtype.kind == "f" and field.flags.writeable:
            field[...] = 0
    for _ in range(20):
        with told("after arrays that were added or drawn were written over"):
            drawn, serials, _ = filled.sample()
        given = filled.update(drawn, serials, lambda k: (-1) ** k * 1.5)
        wanted = 1.5 * (-1.0) ** serials
        assert (given == wanted).all(), f"`update` changed TD errors: {wanted[:3]} to {given[:3]}"
    return "they stay as they are"
