"""The checks that flashbax 0.1.3 fails, shown without the examination."""

import flashbax
import jax
import jax.numpy as jnp

step = {"obs": jnp.zeros(())}


def filled(count=8, capacity=8, alpha=0.6):
    buffer = flashbax.make_prioritised_trajectory_buffer(
        add_batch_size=1,
        sample_batch_size=1000,
        sample_sequence_length=1,
        period=1,
        min_length_time_axis=1,
        max_length_time_axis=capacity,
        priority_exponent=alpha,
    )
    state = buffer.init(step)
    for number in range(count):
        state = buffer.add(state, {"obs": jnp.full((1, 1), float(number))})
    return buffer, state


def leaves(state):
    return state.sum_tree_state.nodes[-8:]


# newcomers: the largest priority is 10^0.6 = 3.98, but a new transition gets 3, because
# `jnp.full_like` of an integer array rounds it down.
buffer, state = filled()
state = buffer.set_priorities(state, jnp.arange(8), jnp.full(8, 10.0))
state = buffer.add(state, {"obs": jnp.full((1, 1), 8.0)})
print("newcomer:", leaves(state))

# sums: leaves and sums are changed by differences, in float32. After an outlier, priorities that
# should be 0.004 and more are 0, the total is wrong, and all draws are number 7.
buffer, state = filled()
for priority in (1e10, 1e-4):
    for k in range(8):
        state = buffer.set_priorities(state, jnp.array([k]), jnp.array([priority * (1 + k)]))
print("total:", state.sum_tree_state.nodes[0], "leaves:", leaves(state).sum())
drawn = buffer.sample(state, jax.random.PRNGKey(0)).indices
print("draws:", jnp.bincount(drawn, length=8))

# sums, epsilon: if 60 priorities fall from 1 to 1e-6, the sums of both halves are wrong by more.
buffer, state = filled(60, 60, alpha=1.0)
for k in range(60):
    state = buffer.set_priorities(state, jnp.array([k]), jnp.array([1e-6]))
nodes = state.sum_tree_state.nodes
print("halves:", nodes[1:3], "leaves:", nodes[63:95].sum(), nodes[95:127].sum())

# late-updates: index 0 holds a new transition when the update arrives.
buffer, state = filled(16)
state = buffer.set_priorities(state, jnp.array([0]), jnp.array([1000.0]))
print("stale:", leaves(state))

# bad-errors: a single NaN makes all probabilities NaN.
state = buffer.set_priorities(state, jnp.array([0]), jnp.array([jnp.nan]))
print("NaN:", buffer.sample(state, jax.random.PRNGKey(0)).probabilities[:4])
