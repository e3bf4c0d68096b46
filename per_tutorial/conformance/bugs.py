"""Planted bugs: silent failures of prioritised replay, each as one change of `plain.Plain`.

A function here takes the place of a method of `Plain`; its docstring says what is wrong. No bug is
a buffer that anything else uses.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.conformance.plain import Plain
from per_tutorial.replay.contracts import Floats, Slots

#: All planted bugs by name: a subclass of `Plain` with `found_by` (a check) and `seen` (where, as
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


@planted("priority", "epsilon")
def no_epsilon(self: Plain, td_errors: Floats) -> Floats:
    """Without ε a transition whose error was once 0 is never replayed again."""
    return np.abs(td_errors)


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


@planted("remember", "newcomers")
def maximum_of_the_last_batch(self: Plain, priorities: Floats) -> None:
    """The largest priority is that of the last update, and not of all so far."""
    self.largest = max(priorities.tolist(), default=self.largest)


@planted("add", "newcomers")
def inherited_priority(self: Plain, *fields: Any) -> None:
    """A transition that overwrites another inherits its priority."""
    slot, full = self.next_slot(), len(self) == self.capacity
    before = self.priorities[slot]
    Plain.add(self, *fields)
    if full:
        self.priorities[slot] = before


@planted("weights", "weights")
def no_weights(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """The weights are left out, so that nothing corrects what replaying by priority distorts."""
    return np.ones_like(probabilities)


@planted("weights", "weights")
def inverted_weights(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """The sign of β is missing: what is replayed often counts more, not less."""
    return (probabilities / probabilities.max()) ** beta


@planted("weights", "weights-scale")
def weights_that_sum_to_one(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """Weights are divided by their sum and then averaged: the step shrinks by the batch size."""
    weights = probabilities**-beta
    return weights / weights.sum()


@planted("weights", "weights-scale", "MorvanZhou/Reinforcement-learning-with-tensorflow#183")
def zero_minimum(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """The minimum counts empty slots as 0, so every weight is 0 until the buffer is full."""
    smallest = self.probabilities.min()
    return (smallest / probabilities) ** beta


@planted("prefix_sums", "reach", "openai/baselines#76", "openai/baselines#170")
def off_by_one_total(self: Plain, batch_size: int, masses: Floats) -> Floats:
    """The sum ends before the newest slot, or, in a full ring, before the last one."""
    return Plain.prefix_sums(self, batch_size, masses[:-1] if len(masses) > 1 else masses)


@planted("slots_of", "proportions")
def shifted_after_wrapping(self: Plain, ids: NDArray) -> Slots:
    """In a ring that has wrapped around, a priority goes one slot too far."""
    slots = Plain.slots_of(self, ids)
    return np.where(slots < 0, -1, (slots + (self.added > self.capacity)) % self.capacity)


@planted("prefix_sums", "sums", "instadeepai/flashbax#52")
def drifting_sums(self: Any, batch_size: int, masses: Floats) -> Floats:
    """Each change is added to the total in float32, and the rounding errors stay."""
    now = np.append(masses, np.zeros(self.capacity - len(masses)))
    before, total = getattr(self, "drifting", (0 * now, np.float32(0)))
    for change in now - before:
        total += np.float32(change)
    self.drifting = now, total
    return Plain.prefix_sums(self, batch_size, masses) / masses.sum() * abs(float(total))


@planted("write", "updates")
def duplicates_count_twice(self: Plain, slots: Slots, priorities: Floats) -> None:
    """Changes are added: a transition that is in the minibatch twice is changed twice."""
    np.add.at(self.priorities, slots, priorities - self.priorities[slots])
    self.priorities[slots] = np.maximum(self.priorities[slots], self.epsilon)


@planted("slots_of", "late-updates", "vwxyzjn/cleanrl#511")
def stale_write_back(self: Plain, ids: NDArray) -> Slots:
    """A priority is written to a slot whose transition was replaced since it was drawn."""
    return ids % self.capacity


@planted("update_priorities", "bad-errors")
def not_a_number(self: Plain, indices: NDArray, td_errors: Floats) -> None:
    """A TD error that is NaN becomes a priority, and all sums above it are NaN."""
    self.write(self.slots_of(indices), self.priority(td_errors))
    self.remember(self.priority(td_errors))


@planted("add", "contents", "Curt-Park/rainbow-is-all-you-need#70", "hill-a/stable-baselines#863")
def truncation_as_terminal(self: Plain, *fields: Any) -> None:
    """A time limit counts as an end, so that the value of the last state is lost."""
    *rest, terminated, truncated = fields
    fields = (*rest, terminated or truncated, truncated)
    Plain.add(self, *fields)


@planted("gather", "contents")
def half_precision(self: Plain, field: str, slots: Slots) -> NDArray:
    """Observations and rewards are stored as float16, which holds no odd number above 2048."""
    values = self.rows[field][slots]
    return values.astype(np.float16) if values.dtype == np.float32 else values


@planted("weights", "handling", "Curt-Park/rainbow-is-all-you-need#79")
def column_of_weights(self: Plain, probabilities: Floats, beta: float) -> Floats:
    """Weights are a column (batch, 1): times losses (batch,), they make a table (batch, batch)."""
    return Plain.weights(self, probabilities, beta)[:, None]


@planted("ends", "n-step", "Curt-Park/rainbow-is-all-you-need#86", "tensorflow/agents#939")
def windows_cross_truncations(self: Plain, slots: Slots) -> NDArray[np.bool_]:
    """n-step returns run on over a time limit into the next episode."""
    return self.rows["terminated"][slots]


@planted("masses", "n-step")
def tail_never_flushed(self: Plain) -> Floats:
    """The last n − 1 steps of every episode are never the start of a window."""
    slots, masses = np.arange(len(self)), Plain.masses(self)
    for back in range(1, self.n_step):
        masses[self.ends((slots + back - 1) % self.capacity)[: len(self)]] = 0.0
    return masses


@planted("add", "arrays")
def kept_arrays(self: Any, *fields: Any) -> None:
    """Observations are stored without a copy; the environment writes over its own array."""
    self.kept = [*getattr(self, "kept", []), (self.next_slot(), fields[0], fields[3])]
    Plain.add(self, *fields)
    for slot, observation, following in self.kept[-self.capacity :]:
        self.rows["observation"][slot], self.rows["next_observation"][slot] = observation, following


@planted("gather", "arrays")
def one_array_for_all(self: Plain, field: str, slots: Slots) -> NDArray:
    """Each minibatch is written to the same arrays, so the next draw changes the one before."""
    values = Plain.gather(self, field, slots)
    array = self.__dict__.setdefault("arrays", {}).setdefault((field, len(slots)), values)
    array[:] = values
    return array


@planted("prefix_sums", "seeds")
def seed_ignored(self: Plain, batch_size: int, masses: Floats) -> Floats:
    """The buffer does not use the seed that it is given, and no run can be repeated."""
    return np.random.default_rng().random(batch_size) * masses.sum()


@planted("state", "saving")
def lossy_checkpoint(self: Plain) -> dict[str, Any]:
    """A file does not keep the largest priority: it is 1 again after loading."""
    return Plain.state(self) | {"largest": 1.0}
