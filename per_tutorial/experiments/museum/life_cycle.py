"""What goes wrong between the step that is stored and the step that is replayed."""

import inspect
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.states import State
from per_tutorial.experiments.museum.exhibit import Exhibit
from per_tutorial.replay.contracts import Batch, Slots, Transition, Write
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.storages.ring import sum_windows
from per_tutorial.replay.storages.transitions import RowWrite, TransitionStorage


class StaleWriteBack(TransitionStorage):
    """A priority goes to the slot, whoever lies there by now."""

    def current_slots(self, ids: NDArray[np.int64]) -> Slots:
        return ids % self.capacity


class TruncationAsTerminal(TransitionStorage):
    """A time limit is stored as an end."""

    def _prepare(
        self, transition: Transition, valid: ArrayLike | None, n: int, **counts: int
    ) -> RowWrite:
        over = np.logical_or(transition.terminated, transition.truncated)
        return super()._prepare(transition._replace(terminated=over), valid, n, **counts)


class WindowsCrossTruncations(TransitionStorage):
    """n-step windows end where an episode terminates, and nowhere else."""

    def _walk(self, slots: Slots) -> tuple[NDArray[np.float64], Slots, NDArray[np.int64]]:
        returns = np.empty(slots.shape)
        last_slots, steps = np.empty_like(slots), np.empty_like(slots)
        terminated = self.rows["terminated"]
        nowhere = np.zeros_like(terminated)
        sum_windows(
            *(self.rows["reward"], terminated, nowhere),
            *(self.added, self.environments, slots, self.n_step, self.discount),
            *(returns, last_slots, steps),
        )
        return returns, last_slots, steps


class NextSlotsObservation(TransitionStorage):
    """The next observation is read from the next slot, to save memory."""

    def windows(self, slots: Slots) -> tuple[NDArray, NDArray[np.int64]]:
        rows, steps = super().windows(slots)
        runs = np.arange(self.runs)[:, None]
        rows["next_observation"] = self.rows["observation"][runs, (slots + 1) % self.capacity]
        return rows, steps


class TailNeverFlushed(Replay):
    """The last n − 1 steps of an episode wait for a window that is never complete."""

    def _write(self, write: Write, transition: Transition) -> None:
        super()._write(write, transition)
        ends = self._ends(write.slots, transition)
        lengths = self.storage.episode_lengths(ends)
        for back in range(self.storage.n_step - 1):
            tail = np.where(back < lengths, (ends - back) % self.capacity, -1)
            self.sampler._write(tail, np.zeros(tail.shape))  # type: ignore[attr-defined]


class RejectedDraws(Replay):
    """Draws that end at a time limit are thrown away, and never get another priority."""

    def _batch(self, slots: Slots, weights: NDArray) -> Batch:
        truncated = self.storage.rows["truncated"]  # type: ignore[attr-defined]
        rejected = np.take_along_axis(truncated, slots, axis=1)
        accepted = np.where(rejected, rejected.argmin(axis=1)[:, None], np.arange(slots.shape[1]))
        slots, weights = (np.take_along_axis(each, accepted, axis=1) for each in (slots, weights))
        return super()._batch(slots, weights)


class NotANumber(Replay):
    """Any TD error is taken, NaN as well."""

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        shape = (self.storage.runs, -1)
        errors = np.asarray(td_errors, dtype=np.float64).reshape(shape)
        self.sampler.update(self.storage.current_slots(np.reshape(indices, shape)), errors)


class SinglePrecisionErrors(Replay):
    """Under NumPy 2, a float32 plus a Python float is a float32."""

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        epsilon = self.sampler.settings["priority_epsilon"]
        priorities = np.abs(np.asarray(td_errors)) + epsilon
        super().update_priorities(indices, priorities.astype(np.float64) - epsilon)


class AutoresetStored(Replay):
    """The step with which a vector environment starts a new episode is stored like any other."""

    last: Transition | None = None

    def add(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike = False,
        *,
        valid: ArrayLike | None = None,
    ) -> None:
        if self.last is not None:
            over = np.logical_or(self.last.terminated, self.last.truncated)
            if over.any():
                no_reward, no_end = np.zeros(np.shape(reward)), np.zeros(over.shape, dtype=bool)
                reset = (self.last.next_observation, action, no_reward, observation, no_end, no_end)
                super().add(*reset, valid=None if self.runs is None else over)
        self.last = Transition(observation, action, reward, next_observation, terminated, truncated)
        super().add(*self.last, valid=valid)


class LossyCheckpoint(ProportionalSampler):
    """The largest priority is not restored."""

    def restore(self, state: State) -> None:
        super().restore(state)
        self.largest_priority[:] = 1.0


class ForgottenPriorities(ProportionalSampler):
    """All priorities are 1 after a file was loaded."""

    def restore(self, state: State) -> None:
        super().restore(state)
        leaves = self.sums.leaves_of(state["sums"])[: self.runs, : self.capacity]
        slots = np.where(leaves > 0, np.arange(self.capacity), -1)
        self._write(slots, np.ones(slots.shape))


class SeedIgnored(ProportionalSampler):
    """Random numbers come from the system, whatever the seed."""

    __signature__ = inspect.signature(ProportionalSampler)  # by which settings are found

    def __init__(self, capacity: int, seeds: Sequence[int], **settings: Any) -> None:
        seeds = [secrets.randbits(63) for _ in seeds]
        super().__init__(capacity, seeds, **settings)


EXHIBITS = (
    Exhibit(
        name="stale-write-back",
        bug="A priority is written to a slot whose transition was replaced since it was drawn.",
        wrong="return ids % self.capacity",
        right="slots[run, k] = -1 if not stored else slot if slot >= 0 else slot + capacity",
        seen=("vwxyzjn/cleanrl#511",),
        lived="not known",
        found_by="stale-updates",
        storage=StaleWriteBack,
    ),
    Exhibit(
        name="truncation-as-terminal",
        bug="A time limit counts as an end, so that the value of the last state is lost.",
        wrong="over = np.logical_or(transition.terminated, transition.truncated)",
        right="return rewards + discount * next_values.masked_fill(terminated, 0.0)",
        seen=(
            "Curt-Park/rainbow-is-all-you-need#70",
            "hill-a/stable-baselines#863",
            "rail-berkeley/hil-serl#20",
        ),
        lived="reported in 2020 and 2025",
        found_by="truncation",
        storage=TruncationAsTerminal,
    ),
    Exhibit(
        name="windows-cross-truncations",
        bug="n-step returns run on over a time limit into the next episode.",
        wrong="nowhere = np.zeros_like(terminated)",
        right="over = terminated[run, slot] or truncated[run, slot]",
        seen=("Curt-Park/rainbow-is-all-you-need#86", "tensorflow/agents#939"),
        lived="reported in 2024 in the second",
        found_by="n-step-truncation",
        storage=WindowsCrossTruncations,
        buffer_settings={"n_step": 3},
    ),
    Exhibit(
        name="next-slots-observation",
        bug="The next observation is that of the next slot: wrong where an episode ends, and at the "
        "place where the ring is written.",
        wrong='rows["next_observation"] = self.rows["observation"]'
        "[runs, (slots + 1) % self.capacity]",
        right='("next_observation", *observation),',
        seen=(),
        lived="not known",
        found_by="contents",
        storage=NextSlotsObservation,
    ),
    Exhibit(
        name="tail-never-flushed",
        bug="The last n − 1 steps of every episode are never the start of a window.",
        wrong="self.sampler._write(tail, np.zeros(tail.shape))",
        right="if over or length == n_step or length > newer:",
        seen=(),
        lived="not known",
        found_by="n-step-tail",
        replay=TailNeverFlushed,
        buffer_settings={"n_step": 3},
    ),
    Exhibit(
        name="rejected-draws",
        bug="Draws that the buffer rejects are never updated, so they keep the largest priority.",
        wrong="accepted = np.where(rejected, rejected.argmin(axis=1)[:, None], "
        "np.arange(slots.shape[1]))",
        right="self.sampler.update(self.storage.current_slots(numbers), errors)",
        seen=(),
        lived="not known",
        found_by="n-step-tail",
        replay=RejectedDraws,
    ),
    Exhibit(
        name="not-a-number",
        bug="A TD error that is NaN becomes a priority, and all sums above it are NaN.",
        wrong="errors = np.asarray(td_errors, dtype=np.float64).reshape(shape)",
        right="if not are_valid(numbers, errors, self.storage.added):",
        seen=(),
        lived="not known",
        found_by="nan-errors",
        replay=NotANumber,
    ),
    Exhibit(
        name="single-precision-errors",
        bug="TD errors in float32 make priorities in float32 (NumPy 2, NEP 50).",
        wrong="priorities = np.abs(np.asarray(td_errors)) + epsilon",
        right='errors = float_array("td_errors", td_errors)',
        seen=(),
        lived="not known",
        found_by="single-precision-errors",
        replay=SinglePrecisionErrors,
        choice=True,
    ),
    Exhibit(
        name="autoreset-stored",
        bug="The step on which a vector environment resets is stored as a transition, one for each "
        "episode, from its end to the start of the next.",
        wrong="super().add(*reset, valid=None if self.runs is None else over)",
        right="replay.add(*with_axes(storage.leading_axes, transition), valid=step.valid)",
        seen=(),
        lived="not known",
        found_by="only-stored",
        replay=AutoresetStored,
    ),
    Exhibit(
        name="lossy-checkpoint",
        bug="A file does not keep the largest priority: it is 1 again after loading.",
        wrong="self.largest_priority[:] = 1.0",
        right="array[:] = state[name]",
        seen=(),
        lived="not known",
        found_by="saved-largest",
        sampler=LossyCheckpoint,
    ),
    Exhibit(
        name="forgotten-priorities",
        bug="A file keeps the transitions and not their priorities.",
        wrong="self._write(slots, np.ones(slots.shape))",
        right="array[:] = state[name]",
        seen=(),
        lived="not known",
        found_by="saved-priorities",
        sampler=ForgottenPriorities,
    ),
    Exhibit(
        name="seed-ignored",
        bug="The buffer does not use the seed that it is given, and no run can be repeated.",
        wrong="seeds = [secrets.randbits(63) for _ in seeds]",
        right='self.streams = RandomStreams(seeds, "replay")',
        seen=(),
        lived="not known",
        found_by="seeds",
        sampler=SeedIgnored,
    ),
)
