"""Studies: a question, its metric stated beforehand, and many paired runs that answer it.

`declared` holds those of this series, `runner` trains one, and `results` reads what came out.
"""

import dataclasses
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import MEASURES

GRID_POINTS = 50  # steps at which a curve is kept
SCORE_WINDOW = 20  # episodes
EVALUATION_EPISODES = 20
# The paper runs PER at a quarter of the learning rate of uniform replay, because it replays large
# errors more often. To separate the two effects, all samplers get both rates here.
QUARTER = 0.25

# The numbers, one per run, that a study may declare as its metric.
METRICS = {
    "score over training": "mean of the score curve; the score is the mean return of the last "
    f"{SCORE_WINDOW} episodes",
    "final score": "the last score of the score curve",
    "greedy score": f"mean return of the final greedy policy over {EVALUATION_EPISODES} episodes",
}


@dataclass(frozen=True)
class Study:
    """What is compared with what, and how it is judged; declared before anything runs.

    Invalid fields raise ValueError or TypeError.

    Args:
        name: of the study and its files; like the names of arms, made of a–z, 0–9, "-" and ".".
        question: one sentence.
        arms: name → `DQNConfig`, all with the same number of steps.
        comparisons: pairs (arm, arm that it is compared with); together they are one family.
        metric: one of `METRICS`.
        failed_below: a run whose greedy score is lower counts as failed.
        seeds: at least two, the same for every arm, so that the runs are paired.
        at_once: runs of an arm that are trained side by side in one process.
        episodes: if not None, the score is also kept after every 20 episodes up to this many.
        curves: `MEASURES` of `History` that are kept over time beside the score.
        checkpoint_every: if not None, environment steps between `Checkpoints`. A killed study then
            resumes inside its parts too, and their agents are kept.
    """

    name: str
    question: str
    arms: Mapping[str, DQNConfig]
    comparisons: tuple[tuple[str, str], ...]
    metric: str
    failed_below: float
    seeds: range = range(30)
    at_once: int = 30
    episodes: int | None = None
    curves: tuple[str, ...] = ("q_value",)
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        one_of("metric", self.metric, METRICS)
        real_number("failed_below", self.failed_below)
        least = {"at_once": 1, "episodes": SCORE_WINDOW, "checkpoint_every": 1}
        for field, minimum in least.items():
            if getattr(self, field) is not None:
                whole_number(field, getattr(self, field), minimum)
        if len(self.seeds) < 2:
            raise ValueError(f"seeds: an interval needs at least two, got {self.seeds}")
        for name in (self.name, *self.arms):
            if not re.fullmatch(r"[a-z0-9.-]+", name):  # it becomes a file name
                raise ValueError(f"name, arms: must be of a–z, 0–9, '-' and '.', got {name!r}")
        steps = {config.steps for config in self.arms.values()}
        if len(steps) != 1:
            raise ValueError(f"arms: must all have the same number of steps, got {sorted(steps)}")
        for arm in itertools.chain.from_iterable(self.comparisons):
            one_of("comparisons", arm, self.arms)
        for curve in self.curves:
            one_of("curves", curve, MEASURES)

    def fast(self) -> "Study":
        """The same study at a size that runs in seconds, to test the whole path."""
        arms = {
            name: config.replace(
                # A multiple of the number of environments; each of them ends an episode.
                steps=max(300, 60 * config.environments),
                max_episode_steps=50,
                hidden=(16,),
                learning_starts=min(config.learning_starts, 100),
            )
            for name, config in self.arms.items()
        }
        return dataclasses.replace(
            self, name=f"{self.name}-fast", arms=arms, seeds=self.seeds[:3], at_once=2
        )

    def on(self, device: str) -> "Study":
        """The same study on another PyTorch device."""
        arms = {name: config.replace(device=device) for name, config in self.arms.items()}
        return dataclasses.replace(self, arms=arms)

    @property
    def parts(self) -> list[tuple[str, list[int]]]:
        """(arm, seeds) of every part that is trained at once, in the order of training."""
        starts = range(0, len(self.seeds), self.at_once)
        chunks = [list(self.seeds[k : k + self.at_once]) for k in starts]
        return [(arm, chunk) for arm in self.arms for chunk in chunks]
