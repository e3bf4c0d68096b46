"""The studies of notebooks 03 to 05: does PER help, and with which settings?"""

from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.study import QUARTER, Study

NETWORKS: dict[str, dict[str, Any]] = {
    "dqn": {},
    "double": {"double": True},
    "dueling": {"dueling": True},
    "d3qn": {"double": True, "dueling": True},
}

KINDS = ("uniform", "per")


def _ablation(
    name: str,
    question: str,
    failed_below: float,
    samplers: tuple[str, ...],
    at_quarter: tuple[str, ...] = tuple(NETWORKS),
    **settings: Any,
) -> Study:
    """{uniform, PER} × {η, η/4} × the four networks, or only some of them at η/4."""
    base = DQNConfig(**settings)
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


def _alpha_beta() -> Study:
    base = DQNConfig(steps=10_000, sampler="proportional")
    betas = {
        "0": {"beta_start": 0.0, "beta_end": 0.0},
        "0.5": {"beta_start": 0.5, "beta_end": 0.5},
        "0.4-to-1": {"beta_start": 0.4, "beta_end": 1.0},
        "1": {"beta_start": 1.0, "beta_end": 1.0},
    }
    arms = {"uniform": base.replace(sampler="uniform")}
    for alpha in (0.2, 0.4, 0.6, 0.8, 1.0):
        for label, change in betas.items():
            arms[f"alpha-{alpha}-beta-{label}"] = base.replace(alpha=alpha, **change)
    return Study(
        name="alpha-beta",
        question="Which α and β serve PER best on CartPole, within 10,000 steps?",
        arms=arms,
        comparisons=tuple((arm, "uniform") for arm in arms if arm != "uniform"),
        metric="score over training",
        failed_below=475,
    )


def _hundred_runs() -> Study:
    # At most 200 steps per episode, so that 80,000 steps hold 400 episodes of every run.
    base = DQNConfig(max_episode_steps=200, steps=80_000)
    return Study(
        name="hundred-runs",
        question="How do 100 runs of CartPole stand after 100 and after 400 episodes?",
        arms={"uniform": base, "per": base.replace(sampler="proportional")},
        comparisons=(("per", "uniform"),),
        metric="score over training",
        failed_below=195,
        seeds=range(100),
        stack=50,
        episodes=400,
    )


def _tutorial(steps: int) -> dict[str, DQNConfig]:
    """D3QN on CartPole of up to 4,000 steps, as in a well-known tutorial: fair and as published."""
    base = DQNConfig(
        max_episode_steps=4_000,
        terminal_reward=-100.0,
        steps=steps,
        hidden=(512, 256, 64),
        double=True,
        dueling=True,
        discount=0.95,
        learning_rate=2.5e-4,
        learning_rate_end=2.5e-4,
        capacity=10_000,
        priority_epsilon=0.01,
        epsilon_end=0.01,
        epsilon_decay=5e-4,
    )
    hard = {"epsilon_schedule": "geometric", "tau": 1.0, "target_update_every": 500}
    soft = {"epsilon_schedule": "exponential", "tau": 0.1, "target_update_every": 50}
    variants = {
        # The series' own settings for the same steps: a smaller network, no penalty for falling.
        "ours": DQNConfig(max_episode_steps=4_000, steps=steps, double=True, dueling=True),
        "hard": base.replace(**hard),
        "soft": base.replace(**soft),
        "published": base.replace(**hard),
    }
    arms = {}
    for variant, config in variants.items():
        arms[f"uniform-{variant}"] = config
        arms[f"per-{variant}"] = config.replace(sampler="proportional")
    # The published comparison: PER with 10,000 transitions and no weights, uniform replay with
    # 2,000. (Its optimiser was RMSprop, and its target network moved once per episode.)
    arms["uniform-published"] = arms["uniform-published"].replace(capacity=2_000)
    arms["per-published"] = arms["per-published"].replace(beta_start=0.0, beta_end=0.0)
    return arms


def _long_cartpole() -> Study:
    return Study(
        name="long-cartpole",
        question="Does PER help D3QN to balance the pole for up to 4,000 steps?",
        arms=_tutorial(40_000),
        comparisons=tuple(
            (f"per-{variant}", f"uniform-{variant}")
            for variant in ("ours", "hard", "soft", "published")
        ),
        metric="score over training",
        failed_below=1_000,
        seeds=range(10),
        stack=10,
    )


def _thousand_episodes() -> Study:
    """The same tutorial, which trained for 1,000 episodes and showed the mean of the last 50."""
    arms = _tutorial(400_000)  # an episode took about 200 steps in the first 40,000
    variants = ("hard", "published")
    return Study(
        name="thousand-episodes",
        question="How does a well-known comparison on CartPole end when its 1,000 episodes are "
        "run?",
        arms={f"{kind}-{each}": arms[f"{kind}-{each}"] for each in variants for kind in KINDS},
        comparisons=tuple((f"per-{variant}", f"uniform-{variant}") for variant in variants),
        metric="score over training",
        failed_below=1_000,
        seeds=range(5),
        stack=5,
        episodes=1_000,
        score_window=50,
        checkpoint_every=20_000,
    )


def _pong() -> Study:
    """D3QN on Pong, from pixels."""
    uniform = DQNConfig(
        env="ALE/Pong-v5",
        environments=8,
        # The paper's 84×84 pixels take more than twice as long, and this already takes hours.
        frame_size=42,
        precision="bfloat16",
        hidden=(512,),
        dueling=True,
        double=True,
        n_step=3,
        alpha=0.5,
        beta_start=0.4,
        steps=480_000,
        learning_rate=1.5e-4,
        learning_rate_end=5e-5,
        loss="huber",
        update_every=2,
        target_update_every=1000,
        tau=1.0,
        capacity=100_000,
        learning_starts=4000,
        epsilon_end=0.02,
        epsilon_steps=50_000,
        max_grad_norm=10.0,
    )
    return Study(
        name="pong",
        question="Does D3QN learn Pong from pixels, with uniform replay and with PER?",
        arms={"uniform": uniform, "per": uniform.replace(sampler="proportional")},
        comparisons=(("per", "uniform"),),
        metric="score over training",
        failed_below=18,  # a game ends at 21 points, minus those of the opponent
        seeds=range(3),  # enough to show whether it learns, not which arm is better
        stack=1,
        curves=("q_value", "loss", "held_out_q"),
        checkpoint_every=40_000,
    )


SERIES_STUDIES = (
    ABLATION_CARTPOLE,
    ABLATION_ACROBOT,
    ABLATION_MOUNTAINCAR,
    _alpha_beta(),
    _hundred_runs(),
    _long_cartpole(),
    _thousand_episodes(),
    _pong(),
)
