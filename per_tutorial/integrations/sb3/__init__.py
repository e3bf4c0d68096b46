"""Prioritised replay in Stable-Baselines3's agents; the extra `sb3` installs what it needs.

    from per_tutorial.integrations.sb3 import PrioritizedDQN

    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", alpha=0.6)
    model.learn(50_000)

New transitions get the largest priority so far when SB3 adds them (`buffers.py`). In each
algorithm, `train` multiplies the loss by the weights and writes the raw TD errors back
(`algorithms.py`, `actor_critic.py`). `frames.py` stores each frame of stacked pictures once.
"""

from per_tutorial.common.lazy import missing_extra

try:
    import sb3_contrib  # noqa: F401
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise missing_extra(error, __name__) from error

from per_tutorial.integrations.sb3.actor_critic import PrioritizedSAC, PrioritizedTD3
from per_tutorial.integrations.sb3.algorithms import PrioritizedDQN, PrioritizedQRDQN
from per_tutorial.integrations.sb3.buffers import PrioritizedReplayBuffer
from per_tutorial.integrations.sb3.frames import FrameReplayBuffer

__all__ = [
    "FrameReplayBuffer",
    "PrioritizedDQN",
    "PrioritizedQRDQN",
    "PrioritizedReplayBuffer",
    "PrioritizedSAC",
    "PrioritizedTD3",
]
