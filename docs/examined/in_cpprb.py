"""The checks that cpprb 11.0.0 fails, shown without the examination."""

import cpprb
import numpy as np

FIELDS = {"obs": {}, "rew": {}, "next_obs": {}, "done": {}}

# n-step: the window that starts in state 2 ends with the terminal step 4, but `done` is 0.
# n-step: the last windows of an episode have the next observation 1.0, which nobody
# stored.
several = {"size": 3, "gamma": 0.5, "rew": "rew", "next": "next_obs"}
buffer = cpprb.ReplayBuffer(8, FIELDS, Nstep=several)
for step in range(5):
    buffer.add(obs=step, rew=1, next_obs=step + 1, done=step == 4)
buffer.on_episode_end()
print({name: column.ravel().tolist() for name, column in buffer.get_all_transitions().items()})

# late-updates: slot 0 holds a new transition when the update arrives. With check_for_update=True,
# which is off by default, the update is ignored.
for late in (False, True):
    buffer = cpprb.PrioritizedReplayBuffer(8, FIELDS, alpha=1, check_for_update=late)
    for step in range(8):
        buffer.add(obs=step, rew=0, next_obs=0, done=0)
    drawn = buffer.sample(4)
    for step in range(8, 16):
        buffer.add(obs=step, rew=0, next_obs=0, done=0)
    buffer.update_priorities(drawn["indexes"], np.full(4, 1000.0))
    print(
        "stale, check_for_update", late, np.unique(buffer.sample(1000)["obs"], return_counts=True)
    )

# bad-errors: a single NaN makes all weights NaN.
buffer.update_priorities([0], [np.nan])
print("NaN:", buffer.sample(4)["weights"])
