"""Arrays that PFRL 0.4.0 keeps without a copy."""

import numpy as np
from pfrl.replay_buffers import PrioritizedReplayBuffer

# An environment that writes all observations into the same array.
buffer, observation = PrioritizedReplayBuffer(8), np.zeros(1)
for number in range(8):
    observation[:] = number
    buffer.append(observation, 0, 0.0, observation)

# Eight different observations were stored, but all are the last one now.
print([step[0]["state"].item() for step in buffer.sample(4)])
