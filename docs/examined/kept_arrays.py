"""Arrays kept without a copy: PFRL 0.4.0, RLlib 2.60.0 (old API)."""

import numpy as np
from pfrl.replay_buffers import PrioritizedReplayBuffer as OfPFRL
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.replay_buffers import PrioritizedReplayBuffer as OfRLlib

pfrl, rllib = OfPFRL(8), OfRLlib(8)

# An environment that writes all observations into the same array.
observation = np.zeros(1)
for number in range(8):
    observation[:] = number
    pfrl.append(observation, 0, 0.0, observation)
    rllib.add(SampleBatch({"obs": observation[None]}))

# Eight different observations were stored, but all are the last one now.
print("PFRL:", [step[0]["state"].item() for step in pfrl.sample(4)])
print("RLlib:", rllib.sample(4, beta=0.4)["obs"].ravel())
