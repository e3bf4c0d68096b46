"""The trees against a list that computes everything from scratch."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveTree

from per_tutorial import MinTree, SumTree
from per_tutorial.replay.trees import find_leaves

thorough = settings(deadline=None, derandomize=True, max_examples=150)

capacities = st.integers(1, 70)
dyadic = st.integers(0, 2**20).map(lambda n: n / 2**10)  # sums of these are exact in float64
extreme = st.one_of(st.just(0.0), st.floats(1e-300, 1e300), st.floats(0, 1), dyadic)


def updates(capacity, values):
    """Batches of (index, value) pairs, duplicates included."""
    pair = st.tuples(st.integers(0, capacity - 1), values)
    return st.lists(st.lists(pair, max_size=12), min_size=1, max_size=8)


def filled(tree_class, leaves):
    tree = tree_class(len(leaves))
    tree.set(np.arange(len(leaves)), leaves)
    return tree


# ---------------------------------------------------------------- set, get, total and min


@pytest.mark.slow
@thorough
@given(st.data(), capacities)
def test_a_tree_equals_its_naive_twin_after_every_operation(data, capacity):
    sums, minima = SumTree(capacity), MinTree(capacity)
    naive_sums, naive_minima = NaiveTree(capacity), NaiveTree(capacity, empty=math.inf)
    for batch in data.draw(updates(capacity, extreme)):
        indices, values = [i for i, _ in batch], [v for _, v in batch]
        for tree in (sums, minima, naive_sums, naive_minima):
            tree.set(indices, values)
        assert sums.get(range(capacity)).tolist() == naive_sums.leaves
        assert minima.get(range(capacity)).tolist() == naive_minima.leaves
        assert sums.total == pytest.approx(naive_sums.total, rel=1e-12, abs=0)
        assert minima.min == naive_minima.min


@pytest.mark.slow
@thorough
@given(st.data(), st.integers(1, 20), st.integers(1, 9))
def test_each_tree_of_a_forest_equals_a_tree_of_its_own(data, capacity, runs):
    forests = SumTree(capacity, runs), MinTree(capacity, runs)
    singles = [(SumTree(capacity), MinTree(capacity)) for _ in range(runs)]
    of_empty = forests[0].total
    batch_sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    for size in batch_sizes:
        rows = st.lists(
            st.lists(
                st.tuples(st.integers(0, capacity - 1), extreme), min_size=size, max_size=size
            ),
            min_size=runs,
            max_size=runs,
        )
        pairs = np.array(data.draw(rows), dtype=np.float64).reshape(runs, size, 2)
        indices, values = pairs[..., 0].astype(int), pairs[..., 1]
        for forest in forests:
            forest.set(indices, values)
        for run, trees in enumerate(singles):
            for tree in trees:
                tree.set(indices[run], values[run])
    every_leaf = np.tile(np.arange(capacity), (runs, 1))
    for forest, of_its_own in zip(forests, zip(*singles, strict=True), strict=True):
        np.testing.assert_array_equal(
            forest.get(every_leaf), [tree.get(range(capacity)) for tree in of_its_own]
        )
    np.testing.assert_array_equal(forests[0].total, [tree.total for tree, _ in singles])
    np.testing.assert_array_equal(forests[1].min, [tree.min for _, tree in singles])
    assert not of_empty.any()  # a copy


def test_of_duplicate_indices_the_last_one_wins():
    for tree in (SumTree(4), MinTree(4)):
        tree.set([2, 1, 2], [8.0, 1.0, 3.0])
        assert tree.get([1, 2]).tolist() == [1.0, 3.0]
    assert SumTree(1).total == 0.0


def test_scalars_and_arrays_of_any_shape_are_welcome():
    tree = filled(SumTree, [1.0, 2.0, 4.0])
    assert tree.get(1) == 2.0 and isinstance(tree.get(1), float)
    assert tree.find(3.0) == 2 and isinstance(tree.find(3.0), int)
    assert tree.get([[0, 1, 2]]).shape == tree.find([[0.0, 1.0, 2.0]]).shape == (1, 3)
    tree.set([0, 1], 5)  # one value for all
    assert tree.total == 14.0
    tree.set([], [])
    assert tree.get([]).shape == tree.find([]).shape == (0,)


def test_the_total_does_not_drift():
    """The case of flashbax #52: one tiny priority, and many others that come and go."""
    tree = SumTree(2)
    tree.set([0], [1e-15])
    tree.set(np.ones(20_000, dtype=int), np.tile([0.3, 0.0], 10_000))
    assert tree.total == 1e-15


# ---------------------------------------------------------------- find


def around(numbers):
    """The numbers and their neighbours in float64."""
    numbers = np.asarray(numbers, dtype=np.float64)
    return np.concatenate([np.nextafter(numbers, -np.inf), numbers, np.nextafter(numbers, np.inf)])


@thorough
@given(st.lists(extreme, min_size=1, max_size=70).filter(any), st.data())
@pytest.mark.slow
def test_find_is_right_up_to_rounding_and_never_returns_an_empty_leaf(leaves, data):
    tree, naive = filled(SumTree, leaves), NaiveTree(len(leaves))
    naive.set(range(len(leaves)), leaves)
    adversarial = around([0.0, tree.total, *map(float, naive.boundaries)])
    anywhere = data.draw(st.lists(st.floats(0, tree.total), max_size=10))
    prefixes = np.array([p for p in [*adversarial, *anywhere] if 0 <= p < tree.total])
    rounding = 1e-14 * tree.total
    for prefix, index in zip(prefixes.tolist(), tree.find(prefixes).tolist(), strict=True):
        assert leaves[index] > 0
        start, end = map(float, naive.boundaries[index : index + 2])
        assert start - rounding <= prefix < end + rounding


@thorough
@given(st.lists(extreme, min_size=1, max_size=70).filter(any))
def test_the_walk_ends_at_a_filled_leaf_even_for_the_total_itself(leaves):
    """`find` refuses the total, but rounding can hand it to the sampler's walk."""
    tree, found = filled(SumTree, leaves), np.zeros((1, 1), dtype=np.int64)
    find_leaves(tree.nodes, 1, np.array([[tree.total]]), found)
    assert leaves[found[0, 0]] > 0


def test_ranges_are_half_open():
    """Leaf i holds [boundary i, boundary i + 1): the left end is in, the right end is not."""
    tree = filled(SumTree, [0.0, 1.0, 0.0, 2.0])
    assert tree.find([0.0, 0.5, 1.0, 2.5]).tolist() == [1, 1, 3, 3]


@thorough
@given(st.data(), st.integers(1, 12), st.integers(1, 9))
@pytest.mark.slow
def test_find_in_a_forest_is_find_in_each_tree(data, capacity, runs):
    row = st.lists(dyadic, min_size=capacity, max_size=capacity).filter(any)
    leaves = np.array(data.draw(st.lists(row, min_size=runs, max_size=runs)))
    forest = SumTree(capacity, runs)
    forest.set(np.tile(np.arange(capacity), (runs, 1)), leaves)
    prefixes = np.linspace(0, 1, 7, endpoint=False) * forest.total[:, None]
    expected = [filled(SumTree, leaves[run]).find(prefixes[run]) for run in range(runs)]
    np.testing.assert_array_equal(forest.find(prefixes), expected)


# ---------------------------------------------------------------- bad input

BAD_CALLS = [
    (lambda tree: tree.set([0, 5], [1.0, 1.0]), IndexError, ["indices", "[0, 5)", "got 5"]),
    (lambda tree: tree.set([0, -1], [1.0, 1.0]), IndexError, ["indices", "[0, 5)", "got -1"]),
    (lambda tree: tree.get([5]), IndexError, ["indices", "[0, 5)", "got 5"]),
    (lambda tree: tree.set([0.0], [1.0]), TypeError, ["indices", "integers", "float64"]),
    (lambda tree: tree.set([0, 1], [1.0, math.nan]), ValueError, ["values", "finite", "got nan"]),
    (lambda tree: tree.set([0, 1], [1.0, -2.0]), ValueError, ["values", "at least 0", "got -2"]),
    (lambda tree: tree.set([0, 1], 1e308), ValueError, ["values", "at most 2.25e+307", "1e+308"]),
    (lambda tree: tree.set([0, 1], [1.0] * 3), ValueError, ["values", "(2,)", "got (3,)"]),
]
BAD_FINDS = [
    (lambda tree: tree.find([1.0, 15.0]), ValueError, ["prefix_sums", "[0, 15.0)", "got 15.0"]),
    (lambda tree: tree.find(-1e-300), ValueError, ["prefix_sums", "[0, 15.0)", "got -1e-300"]),
    (lambda tree: tree.find("1"), TypeError, ["prefix_sums", "numbers", "got <U1"]),
]


@pytest.mark.parametrize(
    ("tree_class", "call", "error", "said"),
    [(tree, *case) for tree in (SumTree, MinTree) for case in BAD_CALLS]
    + [(SumTree, *case) for case in BAD_FINDS],
)
def test_bad_input_is_named_and_changes_nothing(tree_class, call, error, said):
    tree = filled(tree_class, [1.0, 2.0, 3.0, 4.0, 5.0])
    before = tree.nodes.copy()
    with pytest.raises(error) as caught:
        call(tree)
    assert all(part in str(caught.value) for part in said), caught.value
    np.testing.assert_array_equal(tree.nodes, before)


@pytest.mark.parametrize("tree_class", [SumTree, MinTree])
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"capacity": 0}, ValueError, ["capacity", "at least 1", "got 0"]),
        ({"capacity": "8"}, TypeError, ["capacity", "integer", "got '8'"]),
        ({"capacity": 8, "runs": 0}, ValueError, ["runs", "at least 1", "got 0"]),
    ],
)
def test_a_tree_has_a_whole_number_of_leaves(tree_class, arguments, error, said):
    with pytest.raises(error) as caught:
        tree_class(**arguments)
    assert all(part in str(caught.value) for part in said), caught.value


@pytest.mark.parametrize("indices", [0, [0], [[0], [1]], [[[0]], [[0]], [[0]]]])
def test_a_forest_wants_one_row_for_each_run(indices):
    forest = SumTree(4, runs=3)
    for call in (forest.get, lambda rows: forest.set(rows, 1.0)):
        with pytest.raises(ValueError, match=r"indices: must have the shape \(3, batch\)"):
            call(indices)
    with pytest.raises(ValueError, match=r"prefix_sums: must have the shape \(3, batch\)"):
        forest.find(indices)
    assert not forest.nodes.any()
