"""The checks that torchrl-nightly 2026.7.1 fails, shown without the examination."""

import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer

np.random.seed(0)
buffer = TensorDictPrioritizedReplayBuffer(
    alpha=0.6, beta=0.4, storage=LazyTensorStorage(8), batch_size=1000
)
buffer.extend(TensorDict({"obs": torch.arange(7)}, [7]))
buffer.update_priority(torch.arange(7), torch.full((7,), 10.0))

# newcomers, saving: the new transition should be as likely as the others, 1 / 8. Its
# leaf is p^(α · α): `default_priority` applies α, and then `update_priority` applies it again.
buffer.add(TensorDict({"obs": torch.tensor(7)}, []))
tree = buffer._sampler._sum_tree
print("leaves:", [round(tree[k], 3) for k in range(8)], "10^0.36 =", round(10**0.36, 3))
print("share of the newcomer:", (buffer.sample()["obs"] == 7).float().mean().item())

# late-updates: index 0 holds a new transition when the update arrives.
buffer.extend(TensorDict({"obs": torch.arange(8, 16)}, [8]))
buffer.update_priority(torch.tensor([0]), torch.tensor([1e6]))
print("stale:", buffer.sample()["obs"].unique(return_counts=True))

# bad-errors
buffer.update_priority(torch.tensor([0]), torch.tensor([torch.nan]))
try:
    print("NaN:", buffer.sample()["priority_weight"])
except (OverflowError, RuntimeError) as error:
    print("NaN: sampling ends in an error from now on:", error)
