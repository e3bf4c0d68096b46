"""The same worlds with a network: DQN on one-hot states, with a random policy. Declared before it
ran.

Three worlds, n = 4, noise 0, 0.25 and 1; uniform replay, PER and ReLo. One hidden layer of 32
units; a minibatch of 32 every second step, which makes 16 replays per step. Metric, gain, pairs and
decision are those of `maps`. The best of three learning rates of Adam, around the best of a pilot
with noise 0.25, is chosen on ten other seeds. Holm's correction covers all worlds and methods.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.training import train
from per_tutorial.experiments.when.features import features_of_agent
from per_tutorial.experiments.when.learning import METHODS, WARM, steps_of
from per_tutorial.experiments.when.maps import SEEDS, TUNING_SEEDS
from per_tutorial.experiments.when.worlds import Knobs, register

NETWORK_METHODS = ("uniform", "per", "relo")
RATES = (3e-3, 1e-2, 3e-2)  # of Adam


class Cell(NamedTuple):
    """A world to learn with a network."""

    knobs: Knobs

    @property
    def name(self) -> str:
        return f"network-n{self.knobs.n}-noise{self.knobs.noise}"


def the_cells() -> Iterator[Cell]:
    for noise in (0.0, 0.25, 1.0):
        yield Cell(Knobs(4, noise))


def config_of(knobs: Knobs, method: str, rate: float) -> DQNConfig:
    """DQN that acts at random in the world, and replays by a method of `METHODS`."""
    env = f"per_tutorial/KnobWalk-n{knobs.n}-noise{round(1000 * knobs.noise)}-v0"
    if env not in gym.registry:
        register(env, n=knobs.n, noise=knobs.noise)
    sampler, keywords, beta_start, beta_end = METHODS[method]
    steps = steps_of(knobs)
    return DQNConfig(
        env=env,
        vectorization="vector_entry_point",
        steps=steps,
        capacity=steps,
        learning_starts=max(int(WARM * steps), 32),
        update_every=2,
        hidden=(32,),
        discount=knobs.gamma,
        epsilon_start=1.0,
        epsilon_end=1.0,
        sampler=sampler,
        beta_start=beta_start,
        beta_end=beta_end,
        learning_rate=rate,
        learning_rate_end=rate,
        **keywords,  # type: ignore[arg-type]
    )


def areas(knobs: Knobs, method: str, rate: float, seeds: Sequence[int]) -> NDArray[np.float64]:
    """The area of each run: the RMS error of Q over the walk's pairs, averaged over log points."""
    states = np.tile(np.eye(2 * knobs.n, dtype=np.float32), (len(seeds), 1, 1))[:, : knobs.n]
    errors = []

    def callback(history: History) -> None:
        if history.agent is not None and history.agent.updates:
            wrong = history.agent.q_values(states) - knobs.true_values
            errors.append(np.sqrt((wrong**2).mean(axis=(1, 2))))

    train(config_of(knobs, method, rate), seeds, callbacks=[callback])
    return np.mean(errors, axis=0)


def run_cell(cell: Cell) -> dict[str, Any]:
    """As `maps.run_cell`, without "final" and "curve", but with "features" of uniform replay."""
    found: dict[str, Any] = {}
    for method in NETWORK_METHODS:
        means = [
            float(np.log2(areas(cell.knobs, method, rate, TUNING_SEEDS)).mean()) for rate in RATES
        ]
        rate = RATES[int(np.argmin(means))]
        found[method] = {
            "rate": rate,
            "tuning": [round(mean, 4) for mean in means],
            "area": [float(f"{area:.5g}") for area in areas(cell.knobs, method, rate, SEEDS)],
        }
    config = config_of(cell.knobs, "uniform", found["uniform"]["rate"])
    found["features"] = features_of_agent(config, SEEDS[:5])
    return found
