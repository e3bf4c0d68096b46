"""The studies of Stable-Baselines3's agents, declared: worlds, arms, comparisons and the metric.

Sizes were chosen with a few runs of SB3's own agent, seeds from 1000 on, so that it has learned
something, but not everything, well before the end. Runs with PER were examined only afterwards.
"""

from typing import Any

from per_tutorial.experiments.studies.sb3.settings import SB3Config
from per_tutorial.experiments.studies.study import QUARTER, SCORE_WINDOW, Study


def _dqn(name: str, question: str, failed_below: float, **settings: Any) -> Study:
    """SB3's DQN, and ours with uniform replay and with PER, at two learning rates each."""
    theirs = SB3Config(**settings)
    uniform = theirs.replace(replay="uniform")
    per = theirs.replace(replay="proportional")
    slow = {"learning_rate": theirs.learning_rate * QUARTER}
    return Study(
        name=name,
        question=question,
        arms={
            "sb3": theirs,
            "uniform": uniform,
            "per": per,
            "uniform-quarter": uniform.replace(**slow),
            "per-quarter": per.replace(**slow),
        },
        comparisons=(
            ("uniform", "sb3"),  # nothing should differ but chance
            ("per", "uniform"),
            ("per-quarter", "uniform-quarter"),
            ("per-quarter", "uniform"),
        ),
        metric="score over training",
        failed_below=failed_below,
        stack=1,  # so that a stopped study resumes after its last run
        curves=(),
    )


def _continuous(agent: str, **settings: Any) -> Study:
    """SAC or TD3 on Pendulum: SB3's own against ours with PER, each at two learning rates.

    The arm "uniform" was declared when the results of the others were known. It separates the
    effect of PER from that of the rest of our integration.
    """
    theirs = SB3Config(
        agent=agent,
        env="Pendulum-v1",
        steps=6_000,
        options={"buffer_size": 10_000, "batch_size": 64},
        **settings,
    )
    per = theirs.replace(replay="proportional")
    slow = {"learning_rate": theirs.learning_rate * QUARTER}
    return Study(
        name=f"sb3-pendulum-{agent.lower()}",
        question=f"Does PER help {agent} of Stable-Baselines3 to swing up the pendulum?",
        arms={
            "sb3": theirs,
            "uniform": theirs.replace(replay="uniform"),
            "per": per,
            "sb3-quarter": theirs.replace(**slow),
            "per-quarter": per.replace(**slow),
        },
        comparisons=(
            ("uniform", "sb3"),  # nothing should differ but chance
            ("per", "uniform"),
            ("per", "sb3"),
            ("per-quarter", "sb3-quarter"),
            ("per-quarter", "sb3"),
        ),
        metric="score over training",
        failed_below=-300,
        seeds=range(10),
        stack=1,
        curves=(),
        # There are thirty episodes in all, of 200 steps each.
        score_window=SCORE_WINDOW // 4,
    )


def _options(**others: Any) -> dict[str, Any]:
    """The options of SB3 that all DQN studies share, and those given."""
    return {
        "buffer_size": 10_000,
        "batch_size": 32,
        "train_freq": 2,
        "target_update_interval": 100,
        "exploration_final_eps": 0.05,
        **others,
    }


SB3_CARTPOLE = _dqn(
    "sb3-cartpole",
    "Does PER help DQN of Stable-Baselines3 to balance the pole?",
    failed_below=195,
    steps=8_000,
    options=_options(exploration_fraction=0.2),
)
SB3_CLIFFWALK = _dqn(
    "sb3-cliffwalk",
    "Does PER help DQN of Stable-Baselines3 along the Blind Cliffwalk of ten states?",
    failed_below=1,
    env="per_tutorial/BlindCliffwalk-v0",
    env_options={"n": 10},
    steps=2_500,
    # γ = 1 − 1/n, as in the paper.
    options=_options(train_freq=1, exploration_fraction=0.6, gamma=0.9),
)
SB3_SPARSE = _dqn(
    "sb3-sparse",
    "Does PER help DQN of Stable-Baselines3 where only the goal is rewarded (FrozenLake)?",
    failed_below=1,
    env="FrozenLake-v1",
    env_options={"is_slippery": False},  # so that one success shows the way
    steps=4_000,
    options=_options(exploration_fraction=0.6),
)
SB3_STUDIES = (
    SB3_CARTPOLE,
    SB3_CLIFFWALK,
    _continuous("SAC"),
    _continuous("TD3", action_noise=0.1),
    SB3_SPARSE,
)
