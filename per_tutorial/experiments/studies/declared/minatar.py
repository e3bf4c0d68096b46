"""What came after PER on three games of MinAtar, the rung between CartPole and Atari.

The settings are those of Young & Tian (2019), whose curves are means of 30 runs: network, memory,
minibatches, exploration, target network, discount and Huber's loss. They differ in four ways:

- Adam with η = 0.001 in place of RMSprop with 0.00025: Adam as everywhere in this series.
- An update every fourth frame in place of every frame, as Obando-Ceron & Castro (2021) have it on
  these games. In the same time a run then sees almost three times as many frames. What that costs
  in score, `UPDATES_STUDY` asks.
- Networks that compute in bfloat16.
- Fewer frames of their 5 million: 200,000 for every method, and half a million for PER and uniform
  replay.

Actions are those that do something in the game. LAP and PAL come with their authors' settings for
Atari, since rewards are 0 or 1 here too.
"""

import dataclasses
import re

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.declared.after_per import (
    FOR_CLIPPED_REWARDS,
    comparisons_of,
    methods,
)
from per_tutorial.experiments.studies.study import QUARTER, Study

MINATAR_METHODS = methods(FOR_CLIPPED_REWARDS)

# Frames → DQN's score in the published curves (means of 30 runs), read off the picture
# (kenjyoung/MinAtar, img/learning_curves.gif), to about half the width of a line; where Freeway's
# is steep, to about 0.5. Every episode of Freeway has 2,500 frames, so a mean over the last 100 of
# them begins at 250,000 frames.
PUBLISHED_SCORES = {
    "MinAtar/Breakout-v1": {150_000: 5.3, 200_000: 6.1, 300_000: 7.3, 400_000: 8.2, 500_000: 8.3},
    "MinAtar/SpaceInvaders-v1": {
        150_000: 21.0,
        200_000: 21.0,
        300_000: 22.6,
        400_000: 26.3,
        500_000: 27.8,
    },
    "MinAtar/Asterix-v1": {200_000: 0.75, 300_000: 0.9, 400_000: 0.95, 500_000: 1.0},
    "MinAtar/Freeway-v1": {250_000: 5.5, 300_000: 11.0, 400_000: 23.5, 500_000: 34.6},
    "MinAtar/Seaquest-v1": {200_000: 0.7, 300_000: 0.75, 400_000: 0.8, 500_000: 0.85},
}


def _minatar(name: str, game: str, question: str) -> Study:
    """Every method at the same learning rate, against uniform replay and against PER."""
    base = DQNConfig(
        env=f"MinAtar/{game}-v1",
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
    arms = {method: base.replace(**change) for method, change in MINATAR_METHODS.items()}
    return Study(
        name=f"minatar-{name}",
        question=question,
        arms=arms,
        comparisons=tuple(comparisons_of(arms)),
        metric="score over training",
        failed_below=FAILED_BELOW[game],
        seeds=range(10),
        stack=10,
        checkpoint_every=50_000,
        score_window=100,  # episodes, as in the published curves
    )


# A run has failed if it does not score twice what random actions score.
FAILED_BELOW = {
    "Breakout": 0.8,
    "SpaceInvaders": 7.5,
    "Asterix": 1.0,
    "Freeway": 0.5,
    "Seaquest": 0.3,
}

MINATAR_STUDIES = (
    _minatar(
        "breakout",
        "Breakout",
        "Does what came after PER help DQN to break bricks (MinAtar's breakout)?",
    ),
    _minatar(
        "space-invaders",
        "SpaceInvaders",
        "Does what came after PER help DQN to shoot aliens (MinAtar's space invaders)?",
    ),
    _minatar(
        "asterix",
        "Asterix",
        "Does what came after PER help DQN to pick up treasure (MinAtar's asterix)?",
    ),
)


def _long(study: Study) -> Study:
    """PER and uniform replay alone, for half a million frames."""
    return dataclasses.replace(
        study,
        name=study.name.replace("minatar", "long"),
        question=study.question.replace("what came after PER", "PER"),
        arms={name: study.arms[name].replace(steps=500_000) for name in ("uniform", "per")},
        comparisons=(("per", "uniform"),),
    )


LONG_MINATAR_STUDIES = tuple(_long(study) for study in MINATAR_STUDIES)

BREAKOUT = MINATAR_STUDIES[0]
UPDATES_STUDY = dataclasses.replace(
    BREAKOUT,
    name="updates-breakout",
    question="Does an update at every frame bring DQN to the published curve of MinAtar's "
    "breakout?",
    arms={
        "every-frame": BREAKOUT.arms["uniform"].replace(update_every=1),
        "every-fourth": BREAKOUT.arms["uniform"],
    },
    comparisons=(("every-frame", "every-fourth"),),
)


def _published(study: Study, game: str) -> Study:
    """DQN with the settings of the authors' examples/dqn.py, where those above depart from it.

    All six actions, no time limit, an update at every frame, float32, and ε falls from 1 to 0.1 in
    the 100,000 frames after the 5,000 random ones. RMSprop has no momentum: the authors' constant
    of 0.95 was never handed to the optimiser, and is gone from their code since. The first update
    is at frame 5,001, counted from 0. One difference is left: ours draws with replacement.

    What is asked: is the mean of five runs after 150,000 frames, over the last 100 episodes of the
    ε-greedy policy, the number of the published curve, within its interval? The curve goes on to 5
    million frames; these are what an hour of half a processor allows.
    """
    published = study.arms["uniform"].replace(
        steps=150_000,
        env=f"MinAtar/{game}-v0",
        max_episode_steps=None,
        optimizer="rmsprop",
        learning_rate=2.5e-4,
        learning_rate_end=2.5e-4,
        learning_starts=5_002,
        update_every=1,
        epsilon_delay=5_000,
        precision="float32",
        compiled=True,
    )
    name = study.name.removeprefix("minatar-")
    return dataclasses.replace(
        study,
        name=f"published-{name}",
        question="Does DQN with the published settings follow the published curve of MinAtar's "
        f"{name.replace('-', ' ')}?",
        arms={"published": published},
        comparisons=(),
        metric="final score",
        seeds=range(5),
        stack=5,
        checkpoint_every=25_000,
    )


PUBLISHED_STUDIES = (
    _published(MINATAR_STUDIES[0], "Breakout"),
    _published(MINATAR_STUDIES[1], "SpaceInvaders"),
)

# The authors swept the step size, and their figure of that (img/sensitivity_curves.gif) says more
# than their code, which has 0.00025, about 2⁻¹². In each game the published curve ends where the
# sweep has its best: at 10 on breakout, where 2⁻¹² has 8.9; at 17 on asterix (2⁻¹²: 12); at 20 on
# seaquest (2⁻¹²: 16). So the curves seem to be those of these rates.
BEST_RATES = {
    "Breakout": 2**-9,
    "SpaceInvaders": 2**-12,
    "Freeway": 2**-11,
    "Asterix": 2**-13,
    "Seaquest": 2**-13,
}


def _best_rate(game: str, rate: float) -> Study:
    """Ten runs of half a million frames. What is asked: does the published curve, a mean of 30
    runs, lie within the range of these, after 200,000 frames (on Freeway after 250,000, where its
    curve begins) and in the end?
    """
    published = PUBLISHED_STUDIES[0].arms["published"]
    name = re.sub("(?<=[a-z])(?=[A-Z])", "-", game).lower()
    return dataclasses.replace(
        PUBLISHED_STUDIES[0],
        name=f"rate-{name}",
        question="Does DQN with the published settings, and the step size that was best in the "
        f"published sweep, follow the published curve of MinAtar's {name.replace('-', ' ')}?",
        arms={
            "best-rate": published.replace(
                env=f"MinAtar/{game}-v0",
                steps=500_000,
                learning_rate=rate,
                learning_rate_end=rate,
            )
        },
        failed_below=FAILED_BELOW[game],
        seeds=range(10),
    )


RATE_STUDIES = tuple(_best_rate(game, rate) for game, rate in BEST_RATES.items())


def _on_published_base(study: Study) -> Study:
    """PER on the base that follows the published curve: 200,000 frames, as in `MINATAR_STUDIES`.

    The base has the step size that is best for uniform replay in the authors' sweep. PER gets that
    and, as in its own paper, a quarter of it.
    """
    base = study.arms["best-rate"].replace(steps=200_000)
    quarter = base.learning_rate * QUARTER
    slow = base.replace(learning_rate=quarter, learning_rate_end=quarter)
    per, rank = MINATAR_METHODS["per"], MINATAR_METHODS["rank"]
    arms = {
        "uniform": base,
        "per-quarter": slow.replace(**per),
        "per": base.replace(**per),
        "rank": base.replace(**rank),
    }
    name = study.name.removeprefix("rate-")
    return dataclasses.replace(
        study,
        name=f"base-{name}",
        question="Does PER help DQN with the published settings on MinAtar's "
        f"{name.replace('-', ' ')}?",
        arms=arms,
        comparisons=tuple((arm, "uniform") for arm in arms if arm != "uniform"),
        metric="score over training",
    )


PUBLISHED_BASE_STUDIES = tuple(map(_on_published_base, RATE_STUDIES[:2]))


def _half_a_million(base: Study, uniform: Study) -> Study:
    """PER beside one of `RATE_STUDIES`, whose runs are uniform replay with the same seeds."""
    (published,) = uniform.arms.values()
    name = uniform.name.removeprefix("rate-")
    return dataclasses.replace(
        base,
        name=f"per-{name}",
        question="Does PER still help DQN with the published settings over half a million frames "
        f"of MinAtar's {name.replace('-', ' ')}?",
        arms={"per": base.arms["per"].replace(steps=published.steps)},
        comparisons=(),
    )


PER_ON_PUBLISHED = _half_a_million(PUBLISHED_BASE_STUDIES[1], RATE_STUDIES[1])
