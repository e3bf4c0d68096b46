"""A known bug, and the buffer or the agent that has it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.replay.buffers import make_parts
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.storages.rows import TransitionStorage


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug of prioritised replay, with the classes and settings that reproduce it.

    Attributes:
        name: of a–z, 0–9 and "-".
        mistake: what is wrong, in one sentence.
        wrong: the line with the mistake, as it runs here.
        right: the correct line of this package.
        seen: where it was found, as "owner/repository#number"; empty if no public case is cited.
        lived: how long it existed, as far as known.
        found_by: the question of `per_tutorial.conformance` that finds it, or another way to find
            it if no examination of a buffer can.
        sampler, storage, replay, learner: classes that replace the real ones.
        buffer_settings: settings that expose the bug, such as `n_step` above 1.
        training: changes of a `DQNConfig`, if the mistake is one of settings.
        choice: whether it is a trade-off rather than a mistake.
    """

    name: str
    mistake: str
    wrong: str
    right: str
    seen: tuple[str, ...] = ()
    lived: str = "not known"
    found_by: str
    sampler: type[ProportionalSampler] = ProportionalSampler
    storage: type[TransitionStorage] = TransitionStorage
    replay: type[Replay] = Replay
    learner: type[DQNLearner] = DQNLearner
    buffer_settings: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    choice: bool = False

    @property
    def in_buffer(self) -> bool:
        """Whether the bug is in the buffer, where an examination can find it."""
        parts = (self.sampler, self.storage, self.replay)
        real = (ProportionalSampler, TransitionStorage, Replay)
        return parts != real or bool(self.buffer_settings)

    def buffer(
        self,
        capacity: int,
        observation_shape: int | tuple[int, ...],
        *,
        runs: int | None = None,
        seed: int | Sequence[int] | None = None,
        **settings: Any,
    ) -> Replay:
        """A proportional buffer with the bug.

        Args:
            capacity: transitions of each run.
            observation_shape: shape of one observation.
            runs: None, or the number of runs in a stack.
            seed: None, an int, or one int per run.
            settings: of `PrioritizedReplayBuffer`; they override `buffer_settings`.
        """
        settings = self.buffer_settings | settings
        parts = (self.storage, self.sampler, capacity, observation_shape, runs, seed, settings)
        return self.replay(*make_parts(*parts), runs)

    def train(self, config: DQNConfig, seeds: Iterable[int], **options: Any) -> History:
        """`per_tutorial.train` with the bug; ``options`` are its other arguments."""
        import gymnasium as gym

        from per_tutorial.dqn.training import train

        config, seeds, replay = config.replace(**self.training), list(seeds), None
        if self.in_buffer:
            with gym.make(config.env) as environment:
                shape = environment.observation_space.shape
            assert shape is not None, "observations are arrays"
            names = ("alpha", "priority_epsilon", "normalize", "n_step", "discount")
            settings = {name: getattr(config, name) for name in names} | self.buffer_settings
            replay = self.buffer(config.capacity, shape, runs=len(seeds), seed=seeds, **settings)
        return train(config, seeds, replay=replay, learner=self.learner, **options)
