"""The checks that xuance 1.4.4 fails, shown without the examination."""

import numpy as np
from gymnasium.spaces import Box, Discrete
from xuance.common.memory_tools import PerOffPolicyBuffer


def filled(count, batch_size=1000):
    space = Box(-1, 1, (1,), np.float32)
    buffer = PerOffPolicyBuffer(space, Discrete(2), None, 1, 8, batch_size, alpha=1.0)
    for number in range(count):
        one = np.array([number])
        buffer.store(one[None], one, one, one, one[None])
    return buffer


# reach: the sum of priorities leaves out the last slot, so number 7 is never drawn.
buffer = filled(8)
print("numbers that come:", np.unique(buffer.sample(0.4)["obs"]))

# weights: `p * N ** -beta` is (p · N^−β), not (p · N)^−β. So likely transitions get larger
# weights, and β has no effect. All weights are divided by the smallest one.
slots = np.arange(1000)[None] % 8  # it needs at least one minibatch
buffer.update_priorities(slots, slots + 1.0)
for beta in (0.4, 1.0):
    batch = buffer.sample(beta)
    weight_of = dict(
        zip(batch["obs"].ravel().tolist(), batch["weights"].ravel().tolist(), strict=True)
    )
    print(
        "priority → weight at β =", beta, {k + 1: round(weight_of[k], 2) for k in sorted(weight_of)}
    )

# late-updates: slot 0 holds a new transition when the update arrives.
for number in range(8, 16):
    one = np.array([number])
    buffer.store(one[None], one, one, one, one[None])
buffer.update_priorities(np.zeros((1, 1000), int), np.full((1, 1000), 1000.0))
print("stale:", np.mean(buffer.sample(0.4)["obs"] == 8))

# bad-errors: a single NaN makes the sum of priorities NaN.
buffer.update_priorities(slots, np.full(slots.shape, np.nan))
try:
    print("NaN:", buffer.sample(0.4)["weights"])
except AssertionError:
    print("NaN: sampling ends in an AssertionError from now on")

# reach: with one transition stored, the sum is over nothing.
try:
    filled(1, batch_size=1).sample(0.4)
except RecursionError as error:
    print("one transition:", error)
