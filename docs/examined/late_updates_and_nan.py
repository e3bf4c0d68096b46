"""The checks that tianshou 2.0.1 and PFRL 0.4.0 fail, shown without the examination."""

import numpy as np
from pfrl.replay_buffers import PrioritizedReplayBuffer as OfPFRL
from tianshou.data import Batch
from tianshou.data import PrioritizedReplayBuffer as OfTianshou

np.random.seed(0)

# late-updates, tianshou: number 8 overwrites number 0, and gets its late update.
tianshou = OfTianshou(8, alpha=1.0, beta=0.4)
for number in range(9):
    one = Batch(obs=number, act=0, rew=0.0, terminated=False, truncated=False, obs_next=0)
    tianshou.add(one)
tianshou.update_weight(np.array([0]), np.array([1000.0]))
print("stale, tianshou:", np.mean(tianshou.sample(1000)[0].obs == 8))

# late-updates, PFRL: it counts from the oldest transition, so once it is full, each addition shifts
# a late update by one. What is drawn has the priority 0 until its update, and keeps it without one.
pfrl = OfPFRL(8, alpha=1.0, error_max=None)
for number in range(8):
    pfrl.append(number, 0, 0.0, 0)
drawn = [step[0]["state"] for step in pfrl.sample(4)]
pfrl.append(8, 0, 0.0, 0)
pfrl.update_errors([1000.0 + number for number in drawn])
priorities = [round(pfrl.memory.priority_sums._write(k, 0.0)) for k in range(8)]
print("stale, PFRL: drawn", drawn, "priorities", dict(zip(range(1, 9), priorities, strict=True)))

# bad-errors: NaN in tianshou, infinity in PFRL without its limit (`error_max`, by default 1).
tianshou.update_weight(np.array([0]), np.array([np.nan]))
try:
    print("NaN, tianshou:", tianshou.sample(4))
except AssertionError:
    print("NaN, tianshou: sampling ends in an AssertionError from now on")
pfrl = OfPFRL(8, error_max=None)
pfrl.append(0, 0, 0.0, 0)
for error in (np.nan, np.inf):
    pfrl.sample(1)
    pfrl.update_errors([error])
    print(f"{error}, PFRL: the sum of priorities is {pfrl.memory.priority_sums.sum():.3g}")
try:
    pfrl.sample(1)
except OverflowError as error:
    print("inf, PFRL: sampling ends in an error from now on:", error)
