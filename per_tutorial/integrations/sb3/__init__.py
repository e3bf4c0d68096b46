"""Prioritised replay in Stable-Baselines3's agents: `pip install "per_tutorial[sb3]"`.

    from per_tutorial.integrations.sb3 import PrioritizedDQN

    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", alpha=0.6)
    model.learn(50_000)

New transitions get the largest priority so far when SB3 adds them (`buffers.py`). In each
algorithm, `train` multiplies the loss by the weights and writes the raw TD errors back
(`algorithms.py`, `actor_critic.py`, `quantiles.py`). `frames.py` and `frame_store.py` store each
frame of stacked pictures once.
"""

from per_tutorial.common.lazy import lazy_names

try:
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise ImportError(
        "per_tutorial.integrations.sb3 needs Stable-Baselines3, which is not installed: "
        'pip install "per_tutorial[sb3]"'
    ) from error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from per_tutorial.integrations.sb3.actor_critic import PrioritizedSAC as PrioritizedSAC
    from per_tutorial.integrations.sb3.actor_critic import PrioritizedTD3 as PrioritizedTD3
    from per_tutorial.integrations.sb3.algorithms import PrioritizedDQN as PrioritizedDQN
    from per_tutorial.integrations.sb3.buffers import (
        PrioritizedReplayBuffer as PrioritizedReplayBuffer,
    )
    from per_tutorial.integrations.sb3.dict_buffers import (
        PrioritizedDictReplayBuffer as PrioritizedDictReplayBuffer,
    )
    from per_tutorial.integrations.sb3.frames import FrameReplayBuffer as FrameReplayBuffer
    from per_tutorial.integrations.sb3.quantiles import PrioritizedQRDQN as PrioritizedQRDQN

_HOMES = {
    "buffers": ("PrioritizedReplayBuffer",),
    "dict_buffers": ("PrioritizedDictReplayBuffer",),
    "frames": ("FrameReplayBuffer",),
    "algorithms": ("PrioritizedDQN",),
    "actor_critic": ("PrioritizedSAC", "PrioritizedTD3"),
    "quantiles": ("PrioritizedQRDQN",),  # the only one that needs sb3-contrib
}

__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
