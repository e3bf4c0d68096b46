"""What is drawn, how often and with which weight, against theory and against known bugs.

A function named `holds_…` states a property of the buffers that `make(capacity, **options)` makes.
Real buffers have it; those made from a sampler with the bug put in must fail it.
"""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from per_tutorial.replay import ProportionalSampler, Replay, TransitionStorage
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.samplers import proportional as samplers
from per_tutorial.replay.samplers.proportional import sample_relative, sample_stratified
from per_tutorial.replay.trees import find_leaves, set_minima, set_sums


def make_buffer(capacity, *, sampler=ProportionalSampler, seed=0, **options):
    """A buffer for one run; its transitions are plain numbers."""
    return Replay(TransitionStorage(capacity, ()), sampler(capacity, seeds_for(seed, 1), **options))


def add(buffer, count):
    for _ in range(count):
        number = int(buffer.storage.added[0])
        buffer.add(number, number, number, number + 0.5, number % 2 == 1)


def with_td_errors(make, capacity, td_errors, **options):
    """A buffer that stores as many transitions as there are TD errors, all of them
    replayed once.
    """
    buffer = make(capacity, **options)
    add(buffer, len(td_errors))
    stored = np.arange(len(td_errors))[-capacity:]
    buffer.update_priorities(stored, np.asarray(td_errors)[stored])
    return buffer


def expected_probabilities(td_errors, alpha=0.6, priority_epsilon=1e-6):
    scaled = (np.abs(td_errors) + priority_epsilon) ** alpha
    return scaled / scaled.sum()


def check(holds, bugged):
    """The property holds for the real sampler, and the test would notice the bug."""
    holds(make_buffer)
    with pytest.raises(AssertionError):
        holds(partial(make_buffer, sampler=bugged))


TD_ERRORS = np.array([0.5, -2.0, 0.0, 0.05, 7.0, -0.3, 1.0])


# ---------------------------------------------------------------- priorities


class SquaredErrors(ProportionalSampler):
    """The loss as the priority."""

    def update(self, slots, td_errors):
        super().update(slots, 0.5 * td_errors**2)


class HuberErrors(ProportionalSampler):
    """The Huber loss as the priority, right for large errors only."""

    def update(self, slots, td_errors):
        size = np.abs(td_errors)
        super().update(slots, np.where(size < 1, 0.5 * size**2, size - 0.5))


class SignedErrors(ProportionalSampler):
    """Negative errors cut off."""

    def update(self, slots, td_errors):
        super().update(slots, np.maximum(td_errors, 0))


def holds_priorities_are_absolute_td_errors(make):
    buffer = with_td_errors(make, 7, TD_ERRORS)
    expected = expected_probabilities(TD_ERRORS)
    np.testing.assert_allclose(buffer.probabilities, expected, rtol=1e-12)


@pytest.mark.parametrize("bugged", [SquaredErrors, HuberErrors, SignedErrors])
def test_priorities_are_absolute_td_errors(bugged):
    check(holds_priorities_are_absolute_td_errors, bugged)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("priority_epsilon", [1e-6, 0.1])
def test_alpha_and_epsilon(alpha, priority_epsilon):
    options = {"alpha": alpha, "priority_epsilon": priority_epsilon}
    buffer = with_td_errors(make_buffer, 7, TD_ERRORS, **options)
    expected = expected_probabilities(TD_ERRORS, **options)
    np.testing.assert_allclose(buffer.probabilities, expected, rtol=1e-12)


class AlphaTwice(ProportionalSampler):
    """New items get (largest^α)^α."""

    def add(self, slots):
        priorities = np.broadcast_to(self.largest_priority[:, None] ** self.alpha, slots.shape)
        self._write(slots, priorities)


def holds_new_transitions_are_as_likely_as_the_likeliest(make):
    buffer = with_td_errors(make, 5, [0.1, 4.0, 0.2])
    add(buffer, 1)
    new, largest = buffer.probabilities[[3, 1]]
    assert new == largest


def test_new_transitions_are_as_likely_as_the_likeliest():
    check(holds_new_transitions_are_as_likely_as_the_likeliest, AlphaTwice)


class StarvedNewcomers(ProportionalSampler):
    """Before any update, the largest priority is ε."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.largest_priority[:] = self.priority_epsilon


def holds_newcomers_are_not_starved(make):
    buffer = make(5)
    add(buffer, 2)
    buffer.update_priorities([0], [0.0])
    replayed, never_replayed = buffer.probabilities[:2]
    assert never_replayed > 1000 * replayed


def test_newcomers_are_not_starved():
    check(holds_newcomers_are_not_starved, StarvedNewcomers)


def test_the_first_priority_is_one_and_the_largest_never_falls():  # Algorithm 1
    buffer = make_buffer(2, alpha=1.0, priority_epsilon=0.5)
    largest = buffer.sampler.largest_priority
    assert largest.tolist() == [1.0]
    add(buffer, 2)
    buffer.update_priorities([0, 1], [-7.5, 0.25])
    assert largest.tolist() == [8.0]
    add(buffer, 2)  # the transition that set the record is gone
    buffer.update_priorities([2, 3], [0.5, 0.5])
    assert largest.tolist() == [8.0]


def test_of_duplicates_the_last_td_error_counts():
    twice = with_td_errors(make_buffer, 3, [1.0, 1.0, 1.0])
    twice.update_priorities([1, 0, 1], [5.0, 2.0, 0.5])
    once = with_td_errors(make_buffer, 3, [2.0, 0.5, 1.0])
    np.testing.assert_array_equal(twice.probabilities, once.probabilities)


class Float32Priorities(ProportionalSampler):
    """Under NEP 50 a float32 TD error makes everything it touches float32."""

    def _write(self, slots, priorities):
        super()._write(slots, priorities.astype(np.float32))


def holds_float32_td_errors_give_float64_priorities(make):
    td_errors = np.array([0.1, 1e-7, 3.3], dtype=np.float32)
    buffer = with_td_errors(make, 3, td_errors)
    exact = (np.abs(td_errors.astype(np.float64)) + 1e-6) ** 0.6
    assert buffer.sampler.sums.nodes.dtype == np.float64
    np.testing.assert_allclose(buffer.sampler.sums.get([[0, 1, 2]])[0], exact, rtol=1e-15)


def test_float32_td_errors_give_float64_priorities():
    check(holds_float32_td_errors_give_float64_priorities, Float32Priorities)


# ---------------------------------------------------------------- what can be drawn


class NewestInvisible(ProportionalSampler):
    """The sum to draw from ends one leaf too early, sum(0, size − 1)."""

    def sample(self, batch_size, sizes, beta):
        last = sizes[:, None] - 1
        hidden = self.sums.get(last)
        self.sums.set(last, 0.0)
        slots, weights = super().sample(batch_size, sizes, beta)
        self.sums.set(last, hidden)
        return slots, weights


def holds_every_stored_transition_can_be_drawn(make):
    """With equal priorities and one draw in each of `size` equal ranges, each comes
    exactly once.
    """
    buffer = make(5)
    add(buffer, 1)
    for added in range(2, 15):
        add(buffer, 1)
        stored = range(max(0, added - 5), added)
        assert sorted(buffer.sample(len(buffer)).indices) == list(stored)


def test_every_stored_transition_can_be_drawn():
    """The newest one at once, and the last slot once the buffer is full."""
    check(holds_every_stored_transition_can_be_drawn, NewestInvisible)


@pytest.mark.parametrize("capacity", [1, 2, 9])
def test_a_single_transition_is_drawn_with_weight_one(capacity):
    buffer = make_buffer(capacity)
    add(buffer, 1)
    batch = buffer.sample(1, beta=1.0)
    assert (batch.indices.tolist(), batch.weights.tolist()) == ([0], [1.0])


@pytest.mark.parametrize("capacity", [1, 3, 8, 13])
def test_only_stored_transitions_are_drawn(capacity):
    buffer = make_buffer(capacity)
    rng = np.random.default_rng(0)
    for added in range(1, 2 * capacity + 3):
        add(buffer, 1)
        for _ in range(20):
            indices = buffer.sample(len(buffer)).indices
            assert indices.min() >= added - len(buffer) and indices.max() < added
            buffer.update_priorities(indices, 10.0 ** rng.uniform(-12, 12, size=len(indices)))


def unguarded_find_leaves(nodes, first_root, prefixes, indices):
    """It trusts that the prefix is smaller than the sum below the node."""
    for k, prefix in enumerate(prefixes[0]):
        node = 1
        while node < len(nodes) // 2:
            node *= 2
            if not prefix < nodes[node]:
                prefix -= nodes[node]
                node += 1
        indices[0, k] = node - len(nodes) // 2


def test_no_unfilled_slot_is_drawn_with_the_largest_random_number(monkeypatch):
    """Then (k + u) / batch · total rounds to the total itself, which is in no leaf's range."""
    for kernel in (sample_relative, sample_stratified):
        monkeypatch.setattr(samplers, kernel.__name__, kernel.py_func)
    monkeypatch.setattr(samplers, "next_uniform", lambda states, run: np.nextafter(1.0, 0.0))

    def holds_the_last_draw_is_stored(make):
        buffer = with_td_errors(make, 8, [0.1, 0.2, 0.3, 0.4, 0.5])
        batch = buffer.sample(3)
        assert batch.indices[-1] == 4

    holds_the_last_draw_is_stored(make_buffer)
    monkeypatch.setattr(samplers, "find_leaves", unguarded_find_leaves)
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        holds_the_last_draw_is_stored(make_buffer)


def test_the_smallest_random_number_draws_the_first_slot_with_a_priority(monkeypatch):
    for kernel in (sample_relative, sample_stratified):
        monkeypatch.setattr(samplers, kernel.__name__, kernel.py_func)
    monkeypatch.setattr(samplers, "next_uniform", lambda states, run: 0.0)
    monkeypatch.setattr(samplers, "find_leaves", find_leaves.py_func)
    buffer = make_buffer(4)
    add(buffer, 4)
    assert buffer.sample(4).indices.tolist() == [0, 1, 2, 3]  # each range starts at a boundary
    buffer.sampler.sums.set([[0]], 0.0)
    assert buffer.sample(1).indices.tolist() == [1]


# ---------------------------------------------------------------- how often


class TiesAtRandom(ProportionalSampler):
    """Where both children are equal, a random one is taken, the prefix left as it is."""

    def sample(self, batch_size, sizes, beta):
        sums, coin = self.sums, self.streams.uniform
        slots = np.empty((1, batch_size), dtype=np.int64)
        for k, prefix in enumerate(self.streams.uniform(batch_size)[0] * sums.total[0]):
            node = 1
            while node < sums.leaves:
                node *= 2
                if sums.nodes[node] == sums.nodes[node + 1]:
                    node += int(coin(1)[0, 0] < 0.5)
                elif prefix >= sums.nodes[node]:
                    prefix -= sums.nodes[node]
                    node += 1
            slots[0, k] = node - sums.leaves
        return slots, np.ones(slots.shape)


def holds_frequencies_follow_the_priorities(make, capacity=4, td_errors=(1.0, 3.0, 1.0, 3.0)):
    """Single draws are independent, so that the counts are those of a chi-square test."""
    buffer = with_td_errors(make, capacity, td_errors, alpha=1.0)
    drawn = np.concatenate([buffer.sample(1).indices for _ in range(4000)])
    expected = 4000 * expected_probabilities(td_errors, alpha=1.0)
    observed = np.bincount(drawn, minlength=len(td_errors))
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_frequencies_follow_the_priorities():
    check(holds_frequencies_follow_the_priorities, TiesAtRandom)


@pytest.mark.parametrize("filled", [3, 11, 16, 40])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_frequencies_in_buffers_that_are_partly_filled_or_full(filled, alpha):
    td_errors = np.random.default_rng(filled).exponential(size=filled)
    buffer = with_td_errors(make_buffer, 16, td_errors, alpha=alpha)
    drawn = np.concatenate([buffer.sample(1).indices for _ in range(4000)])
    numbers = np.arange(max(0, filled - 16), filled)
    observed = [(drawn == number).sum() for number in numbers]
    assert sum(observed) == 4000
    expected = 4000 * expected_probabilities(td_errors[numbers], alpha)
    assert stats.chisquare(observed, expected).pvalue > 1e-3


class IndependentDraws(ProportionalSampler):
    """No stratification: each draw is anywhere in [0, total)."""

    def sample(self, batch_size, sizes, beta):
        draws = [super(IndependentDraws, self).sample(1, sizes, beta) for _ in range(batch_size)]
        return tuple(np.concatenate(parts, axis=1) for parts in zip(*draws, strict=True))


def holds_one_draw_in_each_range(make):
    """The k-th draw is a transition whose share of [0, 1) meets [k / batch, (k + 1) / batch)."""
    td_errors = np.random.default_rng(5).exponential(size=30)
    buffer = with_td_errors(make, 32, td_errors)
    ends = np.cumsum(expected_probabilities(td_errors))
    starts = np.concatenate([[0.0], ends[:-1]])
    for batch_size in (1, 3, 16, 30):
        k = np.arange(batch_size)
        for _ in range(20):
            drawn = buffer.sample(batch_size).indices
            assert (starts[drawn] < (k + 1) / batch_size + 1e-12).all()
            assert (ends[drawn] > k / batch_size - 1e-12).all()


def test_each_of_the_equal_ranges_gets_one_draw():  # appendix B.2.1
    check(holds_one_draw_in_each_range, IndependentDraws)


# ---------------------------------------------------------------- weights


class NoCorrection(ProportionalSampler):
    """All weights 1: the bias that importance sampling is there to remove."""

    def sample(self, batch_size, sizes, beta):
        return super().sample(batch_size, sizes, beta=0.0)


class CapacityForSize(ProportionalSampler):
    """N in the weights is the capacity, not the number of stored transitions."""

    def sample(self, batch_size, sizes, beta):
        return super().sample(batch_size, np.full_like(sizes, self.sums.capacity), beta)


def holds_weights_remove_the_bias(make):
    """At β = 1 and before normalising, E[w · f] is the plain mean of f (section 3.4)."""
    td_errors = np.random.default_rng(6).exponential(size=50)
    buffer = with_td_errors(make, 64, td_errors, normalize="none")
    f = td_errors**2  # correlated with the priorities, so that the bias is large
    means = []
    for _ in range(2000):
        batch = buffer.sample(32, beta=1.0)
        means.append((batch.weights * f[batch.indices]).mean())
    error = np.std(means) / np.sqrt(len(means))
    assert np.mean(means) == pytest.approx(f.mean(), abs=4 * error)


@pytest.mark.parametrize("bugged", [NoCorrection, CapacityForSize])
def test_weights_remove_the_bias(bugged):
    check(holds_weights_remove_the_bias, bugged)


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("filled", [3, 7])
def test_the_weights_are_those_of_the_paper(beta, filled):
    """w_i = (N · P(i))^−β, divided by nothing, by the batch's or by the buffer's largest."""
    td_errors = TD_ERRORS[:filled]
    exact = (filled * expected_probabilities(td_errors)) ** -beta
    for normalize in ("none", "batch", "buffer"):
        buffer = with_td_errors(make_buffer, 7, td_errors, normalize=normalize)
        for _ in range(10):
            batch = buffer.sample(3, beta)
            drawn = exact[batch.indices]
            largest = {"none": 1.0, "batch": drawn.max(), "buffer": exact.max()}[normalize]
            np.testing.assert_allclose(batch.weights, drawn / largest, rtol=1e-12)


class EmptyLeavesCount(ProportionalSampler):
    """The minimum over the whole buffer includes its empty slots, as zeros."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.minima.nodes[:] = 0.0


class MinimumWithoutAlpha(ProportionalSampler):
    """Leaves hold p^α, the minimum is kept of p."""

    def _write(self, slots, priorities):
        set_sums(self.sums.nodes, self.sums.first_root, slots, priorities**self.alpha)
        set_minima(self.minima.nodes, self.minima.first_root, slots, priorities)


@np.errstate(divide="ignore")
def holds_the_rarest_transition_has_weight_one(make):
    buffer = with_td_errors(make, 8, [0.5, 2.0, 0.125], normalize="buffer")
    batch = buffer.sample(3, beta=1.0)
    expected = (np.array([0.5, 2.0, 0.125]) / 0.125) ** -0.6
    np.testing.assert_allclose(batch.weights, expected[batch.indices], rtol=1e-4)


@pytest.mark.parametrize("bugged", [EmptyLeavesCount, MinimumWithoutAlpha])
def test_the_rarest_transition_has_weight_one(bugged):
    check(holds_the_rarest_transition_has_weight_one, bugged)


@pytest.mark.parametrize(("beta", "shrunk_to"), [(0.4, 0.036), (1.0, 2.5e-4)])
def test_one_tiny_priority_shrinks_all_weights_of_the_buffer(beta, shrunk_to):
    """Why the batch's largest weight is the default: (ε / 1)^(α β) is all that is left of w = 1."""
    td_errors = np.append(np.ones(99), 0.0)
    for normalize, weight in {"batch": 1.0, "buffer": shrunk_to}.items():
        buffer = with_td_errors(make_buffer, 100, td_errors, normalize=normalize)
        batch = buffer.sample(8, beta)
        assert 99 not in batch.indices
        assert batch.weights == pytest.approx(weight, rel=0.02)


# ---------------------------------------------------------------- seeds


class OwnSeed(ProportionalSampler):
    """The sampler ignores the seed that it is given."""

    def __init__(self, capacity, seeds, **options):
        super().__init__(capacity, seeds_for(None, len(seeds)), **options)


class SameSeed(ProportionalSampler):
    """Every buffer is seeded alike."""

    def __init__(self, capacity, seeds, **options):
        super().__init__(capacity, [0] * len(seeds), **options)


def holds_the_seed_decides_what_is_drawn(make):
    def drawn(seed):
        buffer = with_td_errors(make, 20, np.linspace(0, 1, 20), seed=seed)
        return np.concatenate([buffer.sample(10).indices for _ in range(5)]).tolist()

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


@pytest.mark.parametrize("bugged", [OwnSeed, SameSeed])
def test_the_seed_decides_what_is_drawn(bugged):
    check(holds_the_seed_decides_what_is_drawn, bugged)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"alpha": -0.1}, ValueError, ["alpha", "[0, 1]", "got -0.1"]),
        ({"alpha": 1.1}, ValueError, ["alpha", "[0, 1]", "got 1.1"]),
        ({"alpha": np.nan}, ValueError, ["alpha", "[0, 1]", "got nan"]),
        ({"alpha": "0.6"}, TypeError, ["alpha", "number", "got '0.6'"]),
        ({"alpha": True}, TypeError, ["alpha", "number", "got True"]),
        ({"priority_epsilon": 0.0}, ValueError, ["priority_epsilon", "than 0", "got 0.0"]),
        ({"priority_epsilon": -1e-6}, ValueError, ["priority_epsilon", "than 0", "got -1e-06"]),
        ({"priority_epsilon": 9e-21}, ValueError, ["priority_epsilon", "[1e-20", "got 9e-21"]),
        ({"priority_epsilon": 2e20}, ValueError, ["priority_epsilon", "1e+20]", "got 2e+20"]),
        ({"priority_epsilon": np.inf}, ValueError, ["priority_epsilon", "1e+20]", "got inf"]),
        ({"priority_epsilon": None}, TypeError, ["priority_epsilon", "number", "got None"]),
        ({"normalize": "max"}, ValueError, ["normalize", "'batch', 'buffer', 'none'", "'max'"]),
        ({"normalize": None}, ValueError, ["normalize", "'batch', 'buffer', 'none'", "None"]),
    ],
)
def test_bad_settings_are_named(options, error, said):
    with pytest.raises(error) as caught:
        ProportionalSampler(4, [0], **options)
    assert all(part in str(caught.value) for part in said), caught.value


@pytest.mark.parametrize("normalize", ["batch", "buffer", "none"])
@pytest.mark.parametrize("epsilon", [1e-20, 1e20])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_weights_stay_numbers_at_both_ends_of_what_is_allowed(normalize, epsilon, alpha):
    options = {"alpha": alpha, "priority_epsilon": epsilon, "normalize": normalize}
    for td_errors in ([0.0] * 5, [1e100] * 5, [0.0, 1e100, 0.0, 1e-100, 1.0]):
        buffer = with_td_errors(make_buffer, 8, td_errors, **options)
        for beta in (0.0, 0.4, 1.0):
            for _ in range(20):
                weights = buffer.sample(5, beta).weights
                assert (np.isfinite(weights) & (weights > 0)).all()


# ---------------------------------------------------------------- states
