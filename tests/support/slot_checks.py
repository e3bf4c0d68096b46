"""What every buffer must do that draws slots by priority, whatever library it belongs to."""

import numpy as np

EPSILON = 1e-6


def paper_probabilities(errors, alpha):
    """P(i) ∝ (|δ| + ε)^α."""
    powers = (np.abs(errors) + EPSILON) ** alpha
    return powers / powers.sum()


def assert_paper(slots, weights, stored, errors, alpha, beta):
    """A minibatch of many draws has the paper's frequencies and weights.

    Args:
        slots, weights: (batch,) of the minibatch.
        stored, errors: (n,) the slots that hold a transition, and their TD errors.
    """
    probabilities = paper_probabilities(errors, alpha)
    place_of = {slot: place for place, slot in enumerate(np.asarray(stored).tolist())}
    places = np.array([place_of[slot] for slot in np.asarray(slots).tolist()])
    counts = np.bincount(places, minlength=len(stored))
    # One draw in each of `batch` equal ranges: no count is off by two.
    assert np.abs(counts - len(places) * probabilities).max() < 2
    expected = (len(stored) * probabilities[places]) ** -beta
    np.testing.assert_allclose(weights, expected / expected.max(), rtol=1e-5)
