"""The record of a training, which can be written to a file."""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import plain_array
from per_tutorial.common.files import AnyArray, PathLike, part_of, write_table
from per_tutorial.common.provenance import full_name
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.replay.contracts import Batch, State, Storage

if TYPE_CHECKING:
    from per_tutorial.dqn.learner import DQNLearner, Update

LOG_POINTS = 200
BATCH_MEASURES = ("td_error", "q_value", "weight", "age", "effective_sample_size")
# What every training measures; samplers add measures of their own priorities.
MEASURES = ("epsilon", "beta", "loss", *BATCH_MEASURES, "held_out_q")
HELD_OUT = 128  # states
LAST = ("weights", "indices", "td_errors", "q_values")  # of a minibatch, kept for the next row

Episode = tuple[int, int, float, int]  # run, step at its end, return, length in steps


class History:
    """Episodes and measurements of every run of a `train` call.

    Args:
        config: the `DQNConfig` of the runs.
        seeds: one int per run.
        replay_settings: those of the replay memory, {} if it is one of your own without settings.

    Attributes:
        step: environment steps done so far by each run.
        episodes: list of (run, step at its end, return, length in steps).
        log_steps: steps at which measurements were written, about 200 over a training.
        measures: name → list of (runs,) arrays, one for each log step (NaN where there is nothing
            to measure yet): `epsilon`; `beta`; `loss`, the mean since the last log step; `td_error`
            (|δ|), `q_value`, `weight` and `age` (steps since the transition was stored), means over
            the last minibatch; `effective_sample_size`, its (Σw)² / Σw² as a share of the batch;
            what the sampler measures of its priorities; and `held_out_q`, the mean of max_a Q over
            fixed states that were stored when learning began (Mnih et al. 2015, figure 2). A memory
            of your own has no `age` (NaN), and its fixed states are those of the first minibatch.
        agent: the trained `DQNLearner`, of a history that `train` returned.

    Example:
        >>> from per_tutorial import DQNConfig, train
        >>> history = train(DQNConfig(steps=600, learning_starts=100, hidden=(16,)), seeds=[0, 1])
        >>> history.measure("q_value").shape == (len(history.log_steps), 2)  # a column for each run
        True
        >>> history.learning_curve([200, 400, 600]).shape
        (3, 2)
    """

    agent: DQNLearner

    def __init__(
        self,
        config: DQNConfig,
        seeds: Iterable[int],
        replay_settings: Mapping[str, Any],
    ) -> None:
        self.config = config
        self.seeds = list(seeds)
        self.replay_settings = dict(replay_settings)
        self.step = 0
        self.episodes: list[Episode] = []
        self.log_steps: list[int] = []
        self.measures: dict[str, list[NDArray[np.float64]]] = {}
        self._losses: list[NDArray] = []
        self._last: dict[str, NDArray] = {}  # of the last minibatch, by the names in `LAST`
        self._held_out: NDArray = np.empty((len(self.seeds), 0))  # states: (runs, HELD_OUT, *shape)
        self._first_observations: Any = None  # of the first minibatch
        # A multiple of the steps made at once, so that no log point is skipped
        together = config.environments
        self._log_every = max(1, config.steps // LOG_POINTS // together) * together

    def record_step(self, finished: Iterable[tuple[int, float, int]]) -> None:
        """Count a step of every environment, and the episodes that it ended (`Environments`)."""
        self.step += self.config.environments
        for environment, value, length in finished:
            run = environment // self.config.environments
            self.episodes.append((run, self.step, value, length))

    def record_update(self, batch: Batch, update: Update) -> None:
        """Record the losses of an `Update`, and its minibatch for the next row of measures."""
        self._losses.append(update.losses)
        values = (batch.weights, batch.indices, update.td_errors, update.q_values)
        self._last = dict(zip(LAST, values, strict=True))
        if self._first_observations is None:
            self._first_observations = batch.observations

    @property
    def sampler(self) -> str | None:
        """The name of the sampler that was used; None if the memory names none."""
        return self.replay_settings.get("sampler")

    @property
    def log_is_due(self) -> bool:
        """Whether it is time to write a row of measurements."""
        return self.step % self._log_every == 0 or self.step == self.config.steps

    def log(self, replay: Sized) -> None:
        """Write a row of measurements; of a memory that is no `Replay`, less is known."""
        storage: Any = getattr(replay, "storage", None)
        if not hasattr(storage, "n_step_transitions"):  # not a `Replay`
            storage = None
        sampler: Any = getattr(replay, "sampler", None)
        runs = len(self.seeds)
        nothing = np.full(runs, np.nan)
        row = {
            "epsilon": np.full(runs, self.config.epsilon(self.step - self.config.environments)),
            "beta": np.full(runs, self.config.beta(self.step - 1)),
            "loss": np.mean(self._losses, axis=0) if self._losses else nothing,
            **dict.fromkeys(BATCH_MEASURES, nothing),
            **(batch_measures(storage, **self._last) if self._last else {}),
            **(sampler.metrics(storage.sizes) if storage and hasattr(sampler, "metrics") else {}),
            "held_out_q": self._held_out_q(replay, storage, nothing),
        }
        self._losses = []
        for name, values in row.items():
            self.measures.setdefault(name, []).append(np.asarray(values, dtype=np.float64))
        self.log_steps.append(self.step)  # last: now the row is complete

    def drop_unfinished_row(self) -> None:
        """Remove what an interrupted `log` has left."""
        for rows in self.measures.values():
            del rows[len(self.log_steps) :]

    @property
    def state(self) -> State:
        """What a checkpoint holds, a dict of arrays."""
        return {
            "step": np.array(self.step),
            "episodes": np.array(self.episodes, dtype=np.float64).reshape(-1, 4),
            "losses": np.array(self._losses),
            "held_out": self._held_out,
            "log_steps": np.array(self.log_steps, dtype=np.int64),
            **{f"last.{name}": array for name, array in self._last.items()},
            **{f"measure.{name}": self.measure(name) for name in self.measures},
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from the `state` of a history with the same settings and seeds."""
        arrays: dict[str, NDArray] = {name: np.array(array) for name, array in state.items()}
        self.step = int(arrays["step"])
        self.episodes = [
            (int(run), int(step), value, int(length))
            for run, step, value, length in arrays["episodes"].tolist()
        ]
        self._losses = list(arrays["losses"])
        self._held_out = arrays["held_out"]
        self.log_steps = arrays["log_steps"].tolist()
        self._last = part_of(arrays, "last")
        self.measures = {name: list(rows) for name, rows in part_of(arrays, "measure").items()}

    def _held_out_q(self, replay: Sized, storage: Storage | None, nothing: NDArray) -> NDArray:
        if self._held_out.size == 0:
            if storage is None and self._first_observations is not None:
                self._held_out = plain_array("observations", self._first_observations).copy()
            elif storage is not None and len(replay) >= self.config.learning_starts:
                slots = np.linspace(0, len(replay) - 1, HELD_OUT).astype(np.int64)
                rows, _ = storage.n_step_transitions(np.tile(slots, (len(self.seeds), 1)))
                self._held_out = rows["observation"]
            else:
                return nothing
        return self.agent.q_values(self._held_out).max(axis=-1).mean(axis=1)

    def measure(self, name: str) -> NDArray[np.float64]:
        """One measurement over time, (log steps, runs)."""
        return np.array(self.measures[name])

    def returns(self, run: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The steps at which episodes of a run ended, and their returns, in order."""
        mine = [(step, value) for one, step, value, _ in self.episodes if one == run]
        return np.array([s for s, _ in mine], dtype=np.int64), np.array([v for _, v in mine])

    def learning_curve(self, grid: ArrayLike, window: int = 20) -> NDArray[np.float64]:
        """Mean return of the last ``window`` finished episodes, (len(grid), runs).

        Args:
            grid: environment steps. NaN where a run has finished no episode yet.
        """
        curve = np.full((np.size(grid), len(self.seeds)), np.nan)
        for run in range(len(self.seeds)):
            steps, values = self.returns(run)
            for row, done in enumerate(np.searchsorted(steps, np.ravel(grid), side="right")):
                if done:
                    curve[row, run] = values[max(0, done - window) : done].mean()
        return curve

    def save(self, path: PathLike) -> None:
        """Write a tidy CSV file, one value per line: seed, step, measure, value.

        The first line, a comment, holds the settings: "config", "replay" (of the memory that was
        used, whatever ``config`` says) and "learner"; `pandas.read_csv(path, comment="#")` reads
        the rest. Atomic.
        """
        heading = {
            "config": dataclasses.asdict(self.config),
            "replay": self.replay_settings,
            "learner": full_name(type(self.agent)),
            "seeds": self.seeds,
            "step": self.step,
        }
        write_table(path, heading, ("seed", "step", "measure", "value"), self._rows())

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for run, step, episode_return, length in self.episodes:
            yield self.seeds[run], step, "episode_return", repr(episode_return)
            yield self.seeds[run], step, "episode_length", length
        for name, rows in self.measures.items():
            for step, values in zip(self.log_steps, rows, strict=True):
                for seed, value in zip(self.seeds, values.tolist(), strict=True):
                    yield seed, step, name, repr(value)


def batch_measures(
    storage: Storage | None,
    weights: NDArray,
    indices: NDArray,
    td_errors: NDArray,
    q_values: NDArray,
) -> dict[str, NDArray]:
    """`BATCH_MEASURES` (runs,) of a minibatch (runs, batch); ``storage`` None: no age is known."""
    nothing = np.full(len(td_errors), np.nan)
    share = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1) / weights.shape[1]
    values = (
        np.abs(td_errors).mean(axis=1),
        q_values.mean(axis=1),
        weights.mean(axis=1),
        nothing if storage is None else (storage.added[:, None] - indices).mean(axis=1),
        share,
    )
    return dict(zip(BATCH_MEASURES, values, strict=True))
