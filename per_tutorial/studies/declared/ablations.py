"""Which of double, dueling and PER does the work, on three worlds of classic control?"""

from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.study import QUARTER, Study

NETWORKS: dict[str, dict[str, Any]] = {
    "dqn": {},
    "double": {"double": True},
    "dueling": {"dueling": True},
    "d3qn": {"double": True, "dueling": True},
}


def _ablation(
    name: str,
    question: str,
    failed_below: float,
    samplers: tuple[str, ...],
    at_quarter: tuple[str, ...] = tuple(NETWORKS),
    **settings: Any,
) -> Study:
    """{uniform, PER} × {η, η/4} × the four networks, or only some of them at η/4."""
    base = DQNConfig(alpha=0.6, **settings)
    slow = {"learning_rate": base.learning_rate * QUARTER}
    arms, comparisons = {}, []
    for rate, change in {"": {}, "-quarter": slow}.items():
        for network in at_quarter if rate else NETWORKS:
            for sampler in samplers if network == "dqn" else samplers[:2]:
                label = "per" if sampler == "proportional" else sampler
                arms[f"{network}-{label}{rate}"] = base.replace(
                    sampler=sampler, **NETWORKS[network], **change
                )
                if sampler != "uniform":
                    comparisons.append((f"{network}-{label}{rate}", f"{network}-uniform{rate}"))
    comparisons += [(f"{network}-per-quarter", f"{network}-uniform") for network in at_quarter]
    return Study(
        name=name,
        question=question,
        arms=arms,
        comparisons=tuple(comparisons),
        metric="score over training",
        failed_below=failed_below,
    )


ABLATION_CARTPOLE = _ablation(
    "ablation-cartpole",
    "Does PER help DQN, double, dueling and D3QN to balance the pole for 500 steps?",
    failed_below=475,  # the environment's own threshold for "solved"
    samplers=("uniform", "proportional", "rank"),
)
ABLATION_ACROBOT = _ablation(
    "ablation-acrobot",
    "Does PER help where the reward says nothing until the goal is reached (Acrobot)?",
    failed_below=-100,  # the environment's own threshold
    samplers=("uniform", "proportional"),
    env="Acrobot-v1",
)
ABLATION_MOUNTAINCAR = _ablation(
    "ablation-mountaincar",
    "Does PER help where the goal is hardly ever reached by chance (MountainCar)?",
    failed_below=-200,
    samplers=("uniform", "proportional"),
    at_quarter=("dqn", "d3qn"),
    env="MountainCar-v0",
    # Random actions never reach the goal within the usual 200 steps: nothing is worth replaying.
    max_episode_steps=1000,
    steps=50_000,
    epsilon_steps=10_000,
    capacity=50_000,
)
STUDIES = (ABLATION_CARTPOLE, ABLATION_ACROBOT, ABLATION_MOUNTAINCAR)
