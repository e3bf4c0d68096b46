"""What xuance 1.4.4 fails, without the examination."""

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


# reach: the sum of priorities leaves the last one out, so number 7 never comes.
buffer = filled(8)
print("numbers that come:", np.unique(buffer.sample(0.4)["obs"]))

# weights-exponent: `p * N ** -beta` is (p · N^−β), not (p · N)^−β. So what is likely weighs more, β
# is without effect, and all is divided by the smallest weight.
slots = np.arange(1000)[None] % 8  # it takes no fewer than a minibatch
buffer.update_priorities(slots, slots + 1.0)
for beta in (0.4, 1.0):
    batch = buffer.sample(beta)
    weight_of = dict(
        zip(batch["obs"].ravel().tolist(), batch["weights"].ravel().tolist(), strict=True)
    )
    print(
        "priority → weight at β =", beta, {k + 1: round(weight_of[k], 2) for k in sorted(weight_of)}
    )

# stale-updates: slot 0 holds a newcomer by the time that the update comes.
for number in range(8, 16):
    one = np.array([number])
    buffer.store(one[None], one, one, one, one[None])
buffer.update_priorities(np.zeros((1, 1000), int), np.full((1, 1000), 1000.0))
print("stale:", np.mean(buffer.sample(0.4)["obs"] == 8))

# one-transition, weights-part-full: with one stored, the sum is over nothing.
try:
    filled(1, batch_size=1).sample(0.4)
except RecursionError as error:
    print("one transition:", error)
