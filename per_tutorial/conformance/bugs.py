"""The bugs of notebook 07: silent failures of prioritised replay, each one change of `plain.Plain`.

A function here takes the place of a method of `Plain`; its docstring says what is wrong. No bug is
a buffer that anything else uses. `tests/conformance/test_bugs.py` plants others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.conformance.plain import Plain
from per_tutorial.replay.contracts import Floats, Slots

#: The bugs by name: a subclass of `Plain` with `found_by` (a check) and `seen` (where, as
#: "owner/repository#number").
BUGS: dict[str, type[Plain]] = {}


def planted(method: str, found_by: str, *seen: str) -> Callable:
    """Register a function as a bug: it takes the place of this method of `Plain`."""

    def register(function: Callable) -> Callable:
        name = function.__name__.replace("_", "-")
        about = {"found_by": found_by, "seen": seen, "__doc__": function.__doc__}
        BUGS[name] = type(name.title().replace("-", ""), (Plain,), {method: function, **about})
        return function

    return register


@planted("priority", "exponent", "higgsfield/RL-Adventure#13", "Shmuma/ptan#36")
def squared_priority(self: Plain, td_errors: Floats) -> Floats:
    """The priority is δ² where |δ| was meant, which doubles α."""
    return td_errors**2 + self.epsilon


@planted("priority", "exponent")
def huber_priority(self: Plain, td_errors: Floats) -> Floats:
    """The priority is the Huber loss, which is ½δ² below 1: small errors get twice the α."""
    size = np.abs(td_errors)
    return np.where(size < 1, size**2 / 2, size - 0.5) + self.epsilon


@planted("priority", "exponent")
def signed_priority(self: Plain, td_errors: Floats) -> Floats:
    """The absolute value is missing: what was worse than expected counts as if it were known."""
    return np.maximum(td_errors, self.epsilon)


@planted("masses", "exponent", "iffi/machin (prioritized buffer)")
def alpha_twice(self: Plain) -> Floats:
    """α is applied to every priority twice, so the exponent is α²."""
    return Plain.masses(self) ** self.alpha


@planted("newcomer", "newcomers")
def starved_newcomers(self: Plain) -> float:
    """A new transition starts with ε, the smallest priority, and is hardly ever replayed."""
    return self.epsilon


@planted("newcomer", "newcomers", "ray-project/ray#2927", "astooke/rlpyt#102")
def newcomers_at_one(self: Plain) -> float:
    """A new transition gets priority 1, however large the priorities have become."""
    return 1.0


@planted("weights", "weights")
def no_weights(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """The weights are left out, so that nothing corrects what replaying by priority distorts."""
    return np.ones_like(probabilities)


@planted("weights", "weights-scale", "MorvanZhou/Reinforcement-learning-with-tensorflow#183")
def zero_minimum(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """The minimum counts empty slots as 0, so every weight is 0 until the buffer is full."""
    smallest = self.probabilities.min()
    return (smallest / probabilities) ** beta


@planted("prefix_sums", "reach", "openai/baselines#76", "openai/baselines#170")
def off_by_one_total(self: Plain, batch_size: int, masses: Floats) -> Floats:
    """The sum ends before the newest slot, or, in a full ring, before the last one."""
    return Plain.prefix_sums(self, batch_size, masses[:-1] if len(masses) > 1 else masses)


@planted("prefix_sums", "sums", "instadeepai/flashbax#52")
def drifting_sums(self: Any, batch_size: int, masses: Floats) -> Floats:
    """Each change is added to the total in float32, and the rounding errors stay."""
    now = np.append(masses, np.zeros(self.capacity - len(masses)))
    before, total = getattr(self, "drifting", (0 * now, np.float32(0)))
    for change in now - before:
        total += np.float32(change)
    self.drifting = now, total
    return Plain.prefix_sums(self, batch_size, masses) / masses.sum() * abs(float(total))


@planted("slots_of", "late-updates", "vwxyzjn/cleanrl#511")
def stale_write_back(self: Plain, ids: NDArray) -> Slots:
    """A priority is written to a slot whose transition was replaced since it was drawn."""
    return ids % self.capacity


@planted("add", "contents", "Curt-Park/rainbow-is-all-you-need#70", "hill-a/stable-baselines#863")
def truncation_as_terminal(self: Plain, *fields: Any) -> None:
    """A time limit counts as an end, so that the value of the last state is lost."""
    *rest, terminated, truncated = fields
    fields = (*rest, terminated or truncated, truncated)
    Plain.add(self, *fields)


@planted("weights", "handling", "Curt-Park/rainbow-is-all-you-need#79")
def column_of_weights(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """Weights are a column (batch, 1): times losses (batch,), they make a table (batch, batch)."""
    return Plain.weights(self, probabilities, beta)[:, None]
