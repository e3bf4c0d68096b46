"""flashbax: pure functions in JAX."""

from functools import cache
from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Minibatch

# Our name of a field → the one of `step_of`
NAMES = {
    **{"observations": "observation", "actions": "action", "rewards": "reward"},
    **{"next_observations": "next_observation", "terminated": "terminated"},
}


class Flashbax(Adapter):
    """`make_prioritised_trajectory_buffer`, a step with its next observation a sequence.

    Its flat buffer makes pairs of neighbouring steps, and so pairs the last step of an episode with
    the first of the next one, for the user to mask: that form could not be asked the same
    questions. It hands out P(i) and leaves the weights to its users: (P(i) · N)^−β, divided by the
    largest, is ours.
    """

    name = "flashbax"
    packages = ("flashbax", "jax")
    epsilon = 1e-6

    def make(self, settings):
        """A buffer is its functions, its state and its random key."""
        jax = import_module("jax")
        parts = functions(settings.capacity, settings.batch_size, settings.alpha)
        return {**parts, "state": parts["empty"], "key": jax.random.PRNGKey(settings.seed)}

    def add(self, buffer, transition):
        buffer["state"] = buffer["add"](buffer["state"], step_of(*transition[:5]))

    def sample(self, buffer, batch_size, beta):
        """Draw sequences of one step."""
        buffer["key"], batch = buffer["sample"](buffer["state"], buffer["key"])
        fields = {ours: np.asarray(batch.experience[name])[:, 0] for ours, name in NAMES.items()}
        weights = np.asarray(batch.probabilities, dtype=np.float64) ** -beta
        return Minibatch(weights=weights / weights.max(), keys=batch.indices, **fields)

    def update(self, buffer, keys, td_errors):
        """It asks for priorities, "commonly |δ| + ε"."""
        priorities = (np.abs(td_errors) + self.epsilon).astype(np.float32)
        buffer["state"] = buffer["set_priorities"](buffer["state"], keys, priorities)


def step_of(observation, action, reward, after, over):
    """A transition as flashbax stores it, with the axes (add batch, time)."""
    return {
        "observation": np.asarray(observation, np.float32)[None, None],
        "action": np.full((1, 1), action, np.int32),
        "reward": np.full((1, 1), reward, np.float32),
        "next_observation": np.asarray(after, np.float32)[None, None],
        "terminated": np.full((1, 1), over, np.bool_),
    }


@cache
def functions(capacity, batch_size, alpha):
    """The compiled functions of one kind of buffer; compiling takes longer than a question."""
    jax, flashbax = import_module("jax"), import_module("flashbax")
    buffer = flashbax.make_prioritised_trajectory_buffer(
        add_batch_size=1,
        sample_batch_size=batch_size,
        sample_sequence_length=1,
        period=1,
        min_length_time_axis=1,
        max_length_time_axis=capacity,
        priority_exponent=alpha,
    )
    one = jax.tree.map(lambda value: value[0, 0], step_of(np.zeros(2), 0, 0.0, np.zeros(2), False))

    def sample(state, key):
        key, now = jax.random.split(key)
        return key, buffer.sample(state, now)

    return {
        "empty": buffer.init(one),
        "add": jax.jit(buffer.add),
        "sample": jax.jit(sample),
        "set_priorities": jax.jit(buffer.set_priorities),
    }
