"""PER and LAP on MinAtar's breakout, the rung between CartPole and Atari.

The settings are those of Young & Tian (2019), whose curves are means of 30 runs: network, memory,
minibatches, exploration, target network, discount and Huber's loss. They differ in four ways:

- Adam with η = 0.001 in place of RMSprop with 0.00025: Adam as everywhere in this series.
- An update every fourth frame in place of every frame, as Obando-Ceron & Castro (2021) have it on
  these games. In the same time a run then sees almost three times as many frames.
- Networks that compute in bfloat16.
- 200,000 frames of their 5 million.

Actions are those that do something in the game. LAP comes with its authors' settings for Atari,
since rewards are 0 or 1 here too, and with Huber's loss; so uniform replay is also tried with that
loss alone. The recorded study has three more methods, those of `per_tutorial.after_per`.
"""

from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.study import Study

METHODS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "huber": {"kappa": 0.01},
    "per": {"sampler": "proportional", "alpha": 0.6, "beta_start": 0.4},
    "rank": {"sampler": "rank", "alpha": 0.7, "beta_start": 0.5},
    "lap": {"sampler": "lap", "alpha": 0.6, "kappa": 0.01},
}


def _breakout() -> Study:
    """Every method at the same learning rate, against uniform replay and against PER."""
    base = DQNConfig(
        env="MinAtar/Breakout-v1",
        max_episode_steps=10_000,  # a policy that never fails would otherwise play for ever
        steps=200_000,
        hidden=(128,),  # after 16 filters of 3×3 cells
        loss="huber",
        discount=0.99,
        learning_rate=1e-3,
        learning_rate_end=1e-3,
        batch_size=32,
        learning_starts=5_000,
        update_every=4,
        target_update_every=1_000,
        tau=1.0,
        capacity=100_000,
        epsilon_start=1.0,
        epsilon_end=0.1,
        epsilon_steps=100_000,
        precision="bfloat16",
    )
    return Study(
        name="minatar-breakout",
        question="Does what came after PER help DQN to break bricks (MinAtar's breakout)?",
        arms={method: base.replace(**change) for method, change in METHODS.items()},
        comparisons=(
            *((method, "uniform") for method in METHODS if method != "uniform"),
            *(("rank", "per"), ("lap", "per"), ("lap", "huber")),
        ),
        metric="score over training",
        failed_below=0.8,  # twice what random actions score
        seeds=range(10),
        at_once=10,
        checkpoint_every=50_000,
        score_window=100,  # episodes, as in the published curves
    )


STUDIES = (_breakout(),)
