"""The settings of Ape-X (Horgan et al. 2018) that a single process does not need."""

import dataclasses
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number


@dataclass(frozen=True)
class ApexConfig:
    """How a training is spread over a cluster. Invalid settings raise ValueError or TypeError.

    Args:
        actors: processes that act, one CPU each.
        shards: memories that share the transitions, one CPU each. Minibatches come from them in
            turn, so a transition's probability is P(i) in its shard over the number of shards.
        environments_each: environments in which each actor acts side by side.
        base, steepness: ε_i = base^(1 + i / (N − 1) · steepness) for the i-th of all N environments
            (section 4.1), constant over the training.
        fetch_every: environment steps after which an actor fetches the newest parameters and sends
            its transitions.
        prefetch: minibatches that the learner requests ahead of their use.
        lead: environment steps that all actors together may be ahead of the learner, beyond those
            that `DQNConfig.update_every` grants; one message more is possible. The learner is never
            ahead of the actors.
        checkpoint_every: environment steps between two checkpoints.

    Example:
        >>> from per_tutorial.distributed import ApexConfig
        >>> ApexConfig(actors=4).epsilons.round(4).tolist()
        [0.4, 0.0472, 0.0056, 0.0007]
    """

    actors: int = 4
    shards: int = 1
    environments_each: int = 1
    base: float = 0.4
    steepness: float = 7.0
    fetch_every: int = 100
    prefetch: int = 4
    lead: int = 1000
    checkpoint_every: int = 10_000

    def __post_init__(self) -> None:
        for name in ("actors", "shards", "environments_each", "fetch_every", "prefetch"):
            whole_number(name, getattr(self, name))
        whole_number("checkpoint_every", self.checkpoint_every)
        whole_number("lead", self.lead, minimum=0)
        real_number("base", self.base, 0, 1)
        real_number("steepness", self.steepness, 0)
        if self.actors < self.shards:  # an actor sends to one shard
            raise ValueError(f"shards: must be at most actors ({self.actors}), got {self.shards}")
        if self.fetch_every % self.environments_each:
            raise ValueError(
                f"fetch_every: must be a multiple of environments_each ({self.environments_each}), "
                f"got {self.fetch_every}"
            )

    def replace(self, **changes: int | float) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    @property
    def epsilons(self) -> NDArray[np.float64]:
        """(actors · environments,) the ladder of ε, starting with the first actor's."""
        count = self.actors * self.environments_each
        return self.base ** (1 + np.linspace(0, 1, count) * self.steepness)
