"""Bugs between storing a step and replaying it."""

import inspect
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.files import AnyArray
from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.contracts import Batch, Fields, Slots, Transition
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.ring import Ring, sum_n_steps
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.storages.rows import TransitionStorage


class StaleRing(Ring):
    """A priority goes to the slot, whichever transition is there now."""

    def slots(self, ids: NDArray[np.int64]) -> Slots:
        return ids % self.capacity


class StaleWriteBack(Replay):
    """Its ring does not know what was overwritten."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ring = StaleRing(self.storage.added, self.capacity)


class TruncationAsTerminal(TransitionStorage):
    """A time limit is stored as a termination."""

    def add(
        self, transition: Fields, valid: ArrayLike | None = None, *, stacked: bool = True
    ) -> Slots:
        return super().add(self._over(transition), valid, stacked=stacked)

    def extend(self, transitions: Fields, *, stacked: bool = True) -> Slots:
        return super().extend(self._over(transitions), stacked=stacked)

    @staticmethod
    def _over(fields: Fields) -> Fields:
        *rest, terminated, truncated = fields
        over = np.logical_or(terminated, truncated)
        return (*rest, over, truncated)  # type: ignore[return-value]


class WindowsCrossTruncations(TransitionStorage):
    """n-step windows end where an episode terminates, and nowhere else."""

    def _walk(self, slots: Slots) -> tuple[NDArray[np.float64], Slots, NDArray[np.int64]]:
        returns = np.empty(slots.shape)
        last_slots, steps = np.empty_like(slots), np.empty_like(slots)
        terminated = self.rows["terminated"]
        nowhere = np.zeros_like(terminated)
        sum_n_steps(
            *(self.rows["reward"], terminated, nowhere),
            *(self.added, self.environments, slots, self.n_step, self.discount),
            *(returns, last_slots, steps),
        )
        return returns, last_slots, steps


class NextSlotsObservation(TransitionStorage):
    """The next observation is read from the next slot, to save memory."""

    def n_step_transitions(self, slots: Slots) -> tuple[NDArray, NDArray[np.int64]]:
        rows, steps = super().n_step_transitions(slots)
        runs = np.arange(self.runs)[:, None]
        rows["next_observation"] = self.rows["observation"][runs, (slots + 1) % self.capacity]
        return rows, steps


class TailNeverFlushed(Replay):
    """The last n − 1 steps of an episode wait for a window that is never complete."""

    def _store(self, store: Callable[..., Slots], *fields: Any) -> None:
        before = self.storage.added.copy()
        super()._store(store, *fields)
        slots, over = self._ring.since(before), self.storage.rows["terminated"].copy()
        over |= self.storage.rows["truncated"]
        tail = np.where(np.take_along_axis(over, slots, axis=1), slots, -1)
        for _ in range(self.storage.n_step - 1):
            self.sampler._write(tail, np.zeros(tail.shape))
            earlier = (tail - 1) % self.capacity
            known = (tail >= 0) & (self._ring.ids(earlier) >= 0)
            running = known & ~np.take_along_axis(over, earlier, axis=1)
            tail = np.where(running & (earlier < self.storage.sizes[:, None]), earlier, -1)


class RejectedDraws(Replay):
    """Draws that end at a time limit are rejected, so their priorities are never updated."""

    def _batch(self, slots: Slots, weights: NDArray) -> Batch:
        truncated = self.storage.rows["truncated"]
        rejected = np.take_along_axis(truncated, slots, axis=1)
        accepted = np.where(rejected, rejected.argmin(axis=1)[:, None], np.arange(slots.shape[1]))
        slots, weights = (np.take_along_axis(each, accepted, axis=1) for each in (slots, weights))
        return super()._batch(slots, weights)


class NotANumber(Replay):
    """Any TD error is accepted, even NaN."""

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        shape = (self.sampler.runs, -1)
        errors = np.asarray(td_errors, dtype=np.float64).reshape(shape)
        self.sampler.update(self._ring.slots(np.reshape(indices, shape)), errors)


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


class LossyCheckpoint(Replay):
    """The largest priority is not restored."""

    def _copy(self, state: Mapping[str, AnyArray]) -> None:
        super()._copy(state)
        self.sampler.largest_priority[:] = 1.0


class ForgottenPriorities(Replay):
    """All priorities are 1 after a file is loaded."""

    def _copy(self, state: Mapping[str, AnyArray]) -> None:
        super()._copy(state)
        every = np.arange(self.capacity)
        slots = np.where(every < self.storage.sizes[:, None], every, -1)
        self.sampler._write(slots, np.ones(slots.shape))


class SeedIgnored(ProportionalSampler):
    """Random numbers come from the operating system, whatever the seed."""

    __signature__ = inspect.signature(ProportionalSampler)  # the registry finds settings by it

    def __init__(self, capacity: int, seeds: Sequence[int], **settings: Any) -> None:
        seeds = [secrets.randbits(63) for _ in seeds]
        super().__init__(capacity, seeds, **settings)


KNOWN_BUGS = (
    Bug(
        name="stale-write-back",
        mistake="A priority is written to a slot whose transition was replaced since it was drawn.",
        wrong="return ids % self.capacity",
        right="stored = ids[run, k] >= added[run] - capacity",
        seen=("vwxyzjn/cleanrl#511",),
        found_by="stale-updates",
        replay=StaleWriteBack,
    ),
    Bug(
        name="truncation-as-terminal",
        mistake="A time limit counts as an end, so that the value of the last state is lost.",
        wrong="over = np.logical_or(terminated, truncated)",
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
    Bug(
        name="windows-cross-truncations",
        mistake="n-step returns run on over a time limit into the next episode.",
        wrong="nowhere = np.zeros_like(terminated)",
        right="over = terminated[run, slot] or truncated[run, slot]",
        seen=("Curt-Park/rainbow-is-all-you-need#86", "tensorflow/agents#939"),
        lived="reported in 2024 in the second",
        found_by="n-step-truncation",
        storage=WindowsCrossTruncations,
        buffer_settings={"n_step": 3},
    ),
    Bug(
        name="next-slots-observation",
        mistake="The next observation is that of the next slot: wrong where an episode ends, and "
        "at the place where the ring is written.",
        wrong='rows["next_observation"] = self.rows["observation"]'
        "[runs, (slots + 1) % self.capacity]",
        right='("next_observation", *observation),',
        found_by="contents",
        storage=NextSlotsObservation,
    ),
    Bug(
        name="tail-never-flushed",
        mistake="The last n − 1 steps of every episode are never the start of a window.",
        wrong="self.sampler._write(tail, np.zeros(tail.shape))",
        right="if over or length == n_step or length > newer:",
        found_by="n-step-tail",
        replay=TailNeverFlushed,
        buffer_settings={"n_step": 3},
    ),
    Bug(
        name="rejected-draws",
        mistake="Draws that the buffer rejects, here those at a time limit, are never updated, so "
        "they keep the largest priority.",
        wrong="accepted = np.where(rejected, rejected.argmin(axis=1)[:, None], "
        "np.arange(slots.shape[1]))",
        right="self.sampler.update(slots, errors)",
        found_by="n-step-tail",
        replay=RejectedDraws,
    ),
    Bug(
        name="not-a-number",
        mistake="A TD error that is NaN becomes a priority, and all sums above it are NaN.",
        wrong="errors = np.asarray(td_errors, dtype=np.float64).reshape(shape)",
        right="if not are_valid(ids, td_errors, self.added):",
        found_by="nan-errors",
        replay=NotANumber,
    ),
    Bug(
        name="single-precision-errors",
        mistake="TD errors in float32 make priorities in float32 (NumPy 2, NEP 50).",
        wrong="priorities = np.abs(np.asarray(td_errors)) + epsilon",
        right='errors = float_array("td_errors", td_errors)',
        found_by="single-precision-errors",
        replay=SinglePrecisionErrors,
        choice=True,
    ),
    Bug(
        name="autoreset-stored",
        mistake="The step on which a vector environment resets is stored as a transition, one for "
        "each episode, from its end to the start of the next.",
        wrong="super().add(*reset, valid=None if self.runs is None else over)",
        right="replay.add(*(field.reshape(axes + field.shape[1:]) for field in fields), "
        "valid=step.valid)",
        found_by="only-stored",
        replay=AutoresetStored,
    ),
    Bug(
        name="lossy-checkpoint",
        mistake="A file does not keep the largest priority: it is 1 again after loading.",
        wrong="self.largest_priority[:] = 1.0",
        right="array[...] = other",
        found_by="saved-largest",
        replay=LossyCheckpoint,
    ),
    Bug(
        name="forgotten-priorities",
        mistake="A file keeps the transitions and not their priorities.",
        wrong="self._write(slots, np.ones(slots.shape))",
        right="array[...] = other",
        found_by="saved-priorities",
        replay=ForgottenPriorities,
    ),
    Bug(
        name="seed-ignored",
        mistake="The buffer does not use the seed that it is given, and no run can be repeated.",
        wrong="seeds = [secrets.randbits(63) for _ in seeds]",
        right='self.streams = RandomStreams(seeds, "replay")',
        found_by="seeds",
        sampler=SeedIgnored,
    ),
)
