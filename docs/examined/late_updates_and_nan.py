"""Late updates, and NaN as TD error: tianshou 2.0.1, AgileRL 2.56.1, RLlib 2.60.0 (old API)."""

import random

import numpy as np
import torch
from agilerl.components.replay_buffer import PrioritizedReplayBuffer as OfAgileRL
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.replay_buffers import PrioritizedReplayBuffer as OfRLlib
from tensordict import TensorDict
from tianshou.data import Batch
from tianshou.data import PrioritizedReplayBuffer as OfTianshou

np.random.seed(0), random.seed(0), torch.manual_seed(0)


def adds(number):
    """Store transition ``number`` in each: slot number % 8."""
    tianshou.add(Batch(obs=number, act=0, rew=0.0, terminated=False, truncated=False, obs_next=0))
    agilerl.add(TensorDict({"obs": torch.tensor([[float(number)]])}, [1]))
    rllib.add(SampleBatch({"obs": np.array([number])}))


tianshou = OfTianshou(8, alpha=1.0, beta=0.4)
agilerl = OfAgileRL(8, alpha=1.0)
rllib = OfRLlib(8, alpha=1.0)
for number in range(16):
    adds(number)

# Numbers 0 to 7 were overwritten. A late update of number 0 goes to number 8 in the same slot, and
# number 8 is then drawn nearly always.
tianshou.update_weight(np.array([0]), np.array([1000.0]))
agilerl.update_priorities(torch.tensor([0]), torch.tensor([1000.0]))
rllib.update_priorities([0], [1000.0])
print("stale, tianshou:", np.mean(tianshou.sample(1000)[0].obs == 8))
print("stale, AgileRL:", (agilerl.sample(1000)["obs"] == 8).float().mean())
print("stale, RLlib:", np.mean(rllib.sample(1000, beta=0.4)["obs"] == 8))

# RLlib's assertion (priority > 0) stops NaN, but not infinity.
rllib.update_priorities([0], [np.inf])
try:
    print("infinite, RLlib:", rllib.sample(4, beta=0.4)["weights"])
except ZeroDivisionError as error:
    print("infinite, RLlib: sampling ends in an error from now on:", error)
tianshou.update_weight(np.array([0]), np.array([np.nan]))
agilerl.update_priorities(torch.tensor([0]), torch.tensor([np.nan]))
print("NaN, AgileRL:", agilerl.sample(4)["weights"].ravel())
try:
    print("NaN, tianshou:", tianshou.sample(4))
except AssertionError:
    print("NaN, tianshou: sampling ends in an AssertionError from now on")
