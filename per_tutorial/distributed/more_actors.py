"""Do more actors learn better? The central claim of Horgan et al. (2018), tested in one process.

python -m per_tutorial.distributed.more_actors WORLD   (continues where it was interrupted)

N actors and the learner take turns, for the same number of updates in every arm. "Equal updates":
each actor makes as many steps as a single one, so the learner sees N times the frames (the paper's
way). "Equal frames": each actor makes an N-th of them. Two controls follow the paper's (its section
5 and appendix): N actors that share one ε, and one actor whose transitions are stored N times,
which makes the memory as fresh but not as diverse.

Declared before anything ran: the metric is the mean greedy score at ten moments, evenly spaced in
updates, so that no actor's ε counts. Ten runs per arm, with the same ten seeds. All comparisons are
exploratory.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.distributed.acting import Acting
from per_tutorial.distributed.apex_settings import ApexConfig
from per_tutorial.distributed.memory import Memory
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import evaluate
from per_tutorial.experiments.cells import run_cells

ACTORS = (1, 2, 4, 8)
SEEDS = range(10)
UPDATES = 10_000
TURN = 100  # steps of each actor between two updates of its parameters
MOMENTS, EPISODES = 10, 5  # of an evaluation
_APEX = DQNConfig(
    sampler="proportional", n_step=3, learning_starts=500, update_every=2, compiled=False
)
WORLDS = {
    "cartpole": _APEX.replace(max_episode_steps=500),
    "mountaincar": _APEX.replace(env="MountainCar-v0", max_episode_steps=1000, capacity=50_000),
}


@dataclass(frozen=True)
class Arm:
    """How many actors feed the learner, and with what.

    Args:
        world: a name in `WORLDS`.
        actors: N.
        kind: "ladder", each actor with its own ε; "one", all with the ladder's geometric mean;
            "copied", a single actor whose transitions are stored N times.
        equal: "updates" or "frames": what is the same for every N.
    """

    world: str
    actors: int
    kind: str = "ladder"
    equal: str = "updates"

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.actors}-equal-{self.equal}"

    @property
    def epsilons(self) -> NDArray[np.float64]:
        """(acting actors,) their shares of random actions."""
        if self.kind == "copied":
            return ApexConfig(actors=1).epsilons
        ladder = ApexConfig(actors=self.actors).epsilons
        if self.kind == "ladder":
            return ladder
        # The geometric mean of every ladder of two or more, used for one actor as well.
        shared = np.exp(np.log(ApexConfig(actors=2).epsilons).mean())
        return np.full(self.actors, shared)

    @property
    def updates_a_turn(self) -> int:
        """Updates of the learner after each turn of the actors."""
        frames = TURN * (len(self.epsilons) if self.equal == "frames" else 1)
        return frames // WORLDS[self.world].update_every


def the_arms(world: str) -> Iterator[Arm]:
    """All arms of a world. A single actor at equal frames is the same as at equal updates."""
    for actors in ACTORS:
        for kind in ("ladder", "one", "copied"):
            if actors > 1 or kind != "copied":
                yield Arm(world, actors, kind)
            if actors > 1 and kind != "copied":
                yield Arm(world, actors, kind, "frames")


def train(arm: Arm, seed: int, updates: int = UPDATES) -> dict[str, Any]:
    """One run: {"scores": of `MOMENTS` evaluations, "frames": made by all actors}."""
    config = WORLDS[arm.world].replace(steps=updates)  # η and β are scheduled by updates
    epsilons = arm.epsilons
    actors = Acting(config, epsilons, [1_000 * (seed + 1) + k for k in range(len(epsilons))])
    shape, actions = actors.environments.observation_shape, actors.environments.actions
    learner = DQNLearner(config, shape, actions, [seed])
    memory = Memory(config, config.capacity, shape, seed)
    copies = arm.actors if arm.kind == "copied" else 1
    stored = frames = 0
    scores: list[float] = []
    while learner.updates < updates:
        actors.use({name: tensor.numpy() for name, tensor in learner.online.state_dict().items()})
        version = learner.updates
        windows, _ = actors.act(TURN * len(epsilons))
        frames += TURN * len(epsilons)
        if windows is not None:
            for _ in range(copies):
                stored = memory.add(windows, version)
        if stored < config.learning_starts:
            continue
        for _ in range(min(arm.updates_a_turn, updates - learner.updates)):
            version = learner.updates
            drawn = memory.sample(config.batch_size, config.beta(version))
            assert drawn is not None, "learning_starts is no less than a minibatch"
            update = learner.update(drawn.batch, config.step_size(version))
            memory.update(drawn.batch.indices, update.td_errors, version)
            if learner.updates % (updates // MOMENTS) == 0:
                scores.append(float(evaluate(learner, EPISODES).mean()))
    actors.environments.close()
    return {"scores": scores, "frames": frames}


def run_arm(arm: Arm) -> dict[str, Any]:
    """All runs of an arm: {"scores": [run][moment], "frames": [run]}."""
    runs = [train(arm, seed) for seed in SEEDS]
    return {key: [run[key] for run in runs] for key in ("scores", "frames")}


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in WORLDS:
        sys.exit(f"world: must be one of {', '.join(WORLDS)}")
    world = sys.argv[1]
    packages = ("numpy", "numba", "torch", "gymnasium")
    print(run_cells(f"actors-{world}", the_arms(world), run_arm, Path("results"), packages))
