"""Ape-X (Horgan et al. 2018): many actors, a shared memory, and one learner.

    actors  ── windows with their first priorities ──▶  memory shards
       ▲                                                  │      ▲
       │ parameters                            minibatches│      │ TD errors
       └──────────────────────  learner  ◀────────────────┘──────┘

The learner is the process that calls `train_apex`. All queues are bounded. An actor is asked for
its next steps after it has reported the last ones, and not while the actors are too far ahead of
the learner; it has at most two messages in flight. The learner requests only a few minibatches
ahead of their use.
"""

import dataclasses
import json
import os
import time
import warnings
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from per_tutorial.common.arguments import whole_number
from per_tutorial.distributed.apex_files import (
    resolve_auto,
    restore_learner,
    save_learner,
    shard_file,
)
from per_tutorial.distributed.apex_settings import ApexConfig
from per_tutorial.distributed.cluster import LOCAL, ClusterError, connected, import_ray, nodes
from per_tutorial.distributed.memory import Minibatch
from per_tutorial.distributed.processes import ActorProcess, MemoryProcess, Report, WorkerPool
from per_tutorial.dqn.callbacks import Callback
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.history import BATCH_MEASURES, LOG_POINTS, History, batch_measures
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.networks import LARGEST_SEED
from per_tutorial.replay.contracts import needs_of
from per_tutorial.replay.samplers import SAMPLERS

STALLED_SECONDS = 180.0  # without a step or an update: something is missing for good
PUBLISH_EVERY = 10  # updates; actors fetch what was published last
MAX_UPDATES_SENT = 8  # messages of TD errors in flight


class ApexHistory(History):
    """A `History` with what happened on the cluster.

    Attributes:
        actors_replaced, shards_replaced: processes that were lost and replaced.
        windows_lost: windows lost with a shard: those since its last checkpoint, and those in
            flight to it.
        waited: seconds in which the learner waited for a minibatch.
        seconds: duration of the training, since it began or was continued.
    """

    actors_replaced = shards_replaced = windows_lost = 0
    waited = seconds = 0.0


def train_apex(
    config: DQNConfig,
    apex: ApexConfig | None = None,
    seed: int = 0,
    *,
    address: str = LOCAL,
    checkpoints: str | os.PathLike[str] | None = None,
    callbacks: Iterable[Callback] = (),
) -> ApexHistory:
    """Train one agent with many actors.

    Two trainings with the same seed differ, because they depend on the order of arrival.

    Args:
        config: a `DQNConfig`. ``steps`` counts those of all actors, ``capacity`` is divided among
            the shards; the schedule of ε is replaced by the ladder of ``apex``.
        apex: how the training is spread; None: the defaults of `ApexConfig`.
        seed: an int, from which every environment gets its own.
        address: of the cluster, see `connected`.
        checkpoints: a folder for the checkpoints of this training alone, from which it continues.
            All nodes must see it under this path.
        callbacks: as in `train`.

    Returns:
        An `ApexHistory`; its `agent` is the trained `DQNLearner`. Its measures are those of a
        `History`, without `held_out_q` and the sampler's own, and `priority_age` and
        `parameter_age`: the age, in updates, of the drawn priorities and of the actors' parameters.

    Raises:
        ValueError: the settings do not fit Ape-X, or the checkpoints have other settings.
        ClusterError: see `connected`; or there are too few CPUs, a process failed, or nothing has
            happened for a long time.
    """
    apex = apex or ApexConfig()
    seed = whole_number("seed", seed, minimum=0, maximum=LARGEST_SEED)
    needs = needs_of(SAMPLERS[config.sampler])
    if needs.candidates or needs.episodes or needs.reducible_losses:
        raise ValueError(
            "sampler: must need neither candidates nor episodes nor reducible losses, "
            f"got {config.sampler!r}"
        )
    if config.environments > 1:
        raise ValueError(
            "environments: must be 1, since each actor has its own (ApexConfig.environments_each), "
            f"got {config.environments}"
        )
    if config.capacity // apex.shards < config.batch_size:
        raise ValueError(
            f"shards: each must hold a minibatch of {config.batch_size}, "
            f"got {apex.shards} with a capacity of {config.capacity}"
        )
    needed = apex.actors + apex.shards
    with connected(address, cpus=needed):
        cpus = sum(node.resources.get("CPU", 0) for node in nodes())
        if cpus < needed:
            raise ClusterError(
                f"ray: {apex.actors} actors and {apex.shards} shards need {needed} CPUs. "
                + _resources()
            )
        folder = None if checkpoints is None else Path(checkpoints).absolute()
        training = _Training(config, apex, seed, folder)
        try:
            return training.run(list(callbacks))
        finally:
            training.end()


class _Training:
    """The learner, and the references to what it waits for."""

    def __init__(self, config: DQNConfig, apex: ApexConfig, seed: int, folder: Path | None) -> None:
        self.apex, self.folder = apex, folder
        self._ray = import_ray()
        if folder is not None:
            config = resolve_auto(folder, config)
        environments = env_spec(config.env).module().training_environments(config, [seed])
        shape = environments.observation_shape
        self.agent = DQNLearner(config, shape, environments.actions, [seed])
        environments.close()
        for line in self.agent.choices:
            print(line)
        self.config = config = self.agent.config  # "auto" is resolved
        self.history = ApexHistory(config, [seed])
        self.history.agent = self.agent
        if folder is not None:
            restore_learner(folder, self._made_with, self.agent, self.history)
        each = config.capacity // apex.shards

        def memory_of(number: int, lost: int) -> tuple:
            path = None if folder is None else shard_file(folder, number)
            return config, each, shape, _seed_of(seed, 1, number, lost), path

        def actor_of(number: int, lost: int) -> tuple:
            mine = slice(number * apex.environments_each, (number + 1) * apex.environments_each)
            # A continued training gets new seeds: it has seen the episodes of the old ones.
            again = (number, lost, self.history.step)
            seeds = [_seed_of(seed, 2, *again, one) for one in range(apex.environments_each)]
            return config, apex.epsilons[mine], seeds

        self.memories = WorkerPool(MemoryProcess, memory_of, apex.shards)
        self.actors = WorkerPool(ActorProcess, actor_of, apex.actors)
        self.acting: dict[Any, tuple[int, int]] = {}  # reference → actor, steps
        # A queue: otherwise, with more actors than needed, the first would make most of the steps.
        self.idle = deque(range(apex.actors))
        self.proven: set[int] = set()  # actors that have reported since they were started
        self.sampling: dict[Any, int] = {}  # reference → shard
        self.sent: list[tuple[Any, int]] = []  # TD errors in flight: reference, shard
        self.spare = 0  # steps that actors may be further ahead than `lead`
        self.added = [0] * apex.shards  # windows ever added to each shard
        self._next_shard = 0
        self._row: dict[str, list[float]] = {}
        self._published: Any = None

    def run(self, callbacks: list[Callback]) -> ApexHistory:
        history, config = self.history, self.config
        begun = happened = time.monotonic()
        log_every = max(1, config.steps // LOG_POINTS)
        next_log = (history.step // log_every + 1) * log_every
        next_save = history.step + self.apex.checkpoint_every
        total = self._due(config.steps)
        while history.step < config.steps or self.agent.updates < total:
            self._ask_actors()
            learned = self.agent.updates < self._due(history.step) and self._learn()
            reported = self._hear_actors(0 if learned else 0.02)
            now = time.monotonic()
            if learned or reported:
                happened = now
            elif now - happened > STALLED_SECONDS:
                raise ClusterError(
                    f"ray: nothing has happened for {STALLED_SECONDS:.0f} s. {_resources()}"
                )
            history.seconds = now - begun
            if next_log <= history.step < config.steps:
                self._log()
                next_log = (history.step // log_every + 1) * log_every
                for callback in callbacks:
                    callback(history)
            if self.folder is not None and history.step >= next_save:
                self._save(self.folder)
                next_save = history.step + self.apex.checkpoint_every
        if not history.log_steps or history.log_steps[-1] < config.steps:
            self._log()
            for callback in callbacks:
                callback(history)
        if self.folder is not None:
            self._save(self.folder)
        return history

    def end(self) -> None:
        self.actors.end()
        self.memories.end()

    def _due(self, step: int) -> int:
        """How many updates `train` would have made after this many steps, or one more."""
        config = self.config
        if step < config.learning_starts:
            return 0
        return (step - config.learning_starts) // config.update_every + 1

    # Actors

    def _ask_actors(self) -> None:
        """Ask idle actors for steps, the longest idle first, unless they are too far ahead."""
        config = self.config
        granted = config.learning_starts + self.agent.updates * config.update_every
        granted += self.apex.lead + self.spare
        while self.idle:
            # Steps of actors that may not have started (nodes may be missing) don't count here,
            # so that they block nobody.
            asked = sum(steps for one, steps in self.acting.values() if one in self.proven)
            reached = self.history.step + asked
            if reached >= min(config.steps, granted):
                return
            number = self.idle.popleft()
            # A whole message even if fewer steps are granted, since small ones cost as much. At the
            # end of the training, fewer, rounded up to whole steps of its environments.
            each = self.apex.environments_each
            steps = -(-min(self.apex.fetch_every, config.steps - reached) // each) * each
            if self._published is None or self.agent.updates - self._published[1] >= PUBLISH_EVERY:
                tensors = self.agent.online.state_dict().items()
                arrays = {name: tensor.cpu().numpy() for name, tensor in tensors}
                self._published = (self._ray.put(arrays), self.agent.updates)
            memory = self.memories.members[number % self.apex.shards]
            reference = self.actors.members[number].act.remote(*self._published, steps, memory)
            self.acting[reference] = number, steps

    def _hear_actors(self, seconds: float) -> bool:
        """Process the reports of actors; returns whether there was one."""
        if not self.acting:
            return False
        done, _ = self._ray.wait(list(self.acting), timeout=seconds)
        heard = False
        for reference in done:
            number, _ = self.acting.pop(reference)
            self.idle.append(number)
            try:
                report: Report = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self.proven.discard(number)
                self.actors.replace(number, error)
                self.history.actors_replaced += 1
                continue
            self.actors.done(number)
            self.proven.add(number)
            heard = True
            start = self.history.step
            last = self.config.steps
            self.history.step = min(start + report.steps, last)
            for step, value, length in report.episodes:
                self.history.episodes.append((0, min(start + step, last), value, length))
            self.history.windows_lost += report.lost
            self._note(parameter_age=self.agent.updates - report.version)
        return heard

    # Memory

    def _ask_memories(self) -> None:
        beta = self.config.beta(self.history.step)
        while len(self.sampling) < self.apex.prefetch:
            number = self._next_shard = (self._next_shard + 1) % self.apex.shards
            memory = self.memories.members[number]
            self.sampling[memory.sample.remote(self.config.batch_size, beta)] = number

    def _learn(self) -> bool:
        """One update, if a minibatch has arrived; returns whether it has."""
        self._ask_memories()
        start = time.monotonic()
        done, _ = self._ray.wait(list(self.sampling), timeout=0.02)
        self.history.waited += time.monotonic() - start
        if not done:
            return False
        number = self.sampling.pop(done[0])
        try:
            minibatch: Minibatch | None = self._ray.get(done[0])
        except self._ray.exceptions.RayError as error:
            self._replace_memory(number, error)
            return False
        self._ask_memories()  # before the update, so that the next one arrives meanwhile
        if minibatch is None:
            if not self.acting:  # a replaced shard holds too little, and no actor may act
                self.spare += self.config.batch_size
            return False
        self.memories.done(number)
        self.added[number] = minibatch.added
        batch, version = minibatch.batch, self.agent.updates
        with warnings.catch_warnings():
            # Ray's arrays are read-only, and nothing writes to them: no copy is needed.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            update = self.agent.update(batch, self.config.step_size(self.history.step))
        sent = self.memories.members[number].update.remote(batch.indices, update.td_errors, version)
        self.sent.append((sent, number))
        if len(self.sent) > MAX_UPDATES_SENT:
            self._await_sent()
        added = np.array([minibatch.added])
        measures = batch_measures(added, batch.weights, batch.indices, *update[:2])
        self._note(**{name: of_run[0] for name, of_run in measures.items()})
        age = version - minibatch.versions.mean()
        self._note(loss=update.losses.mean(), priority_age=age)
        return True

    def _await_sent(self) -> None:
        reference, number = self.sent.pop(0)
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            self.memories.replace(number, error)  # raises
        except self._ray.exceptions.RayError:
            pass  # the shard was lost; its next minibatch raises this, too

    def _replace_memory(self, number: int, error: Exception) -> None:
        """Replace a lost shard, and count its lost windows."""
        lost = self._ray.exceptions
        while True:
            self.memories.replace(number, error)
            self.history.shards_replaced += 1
            answer = self.memories.members[number].restored.remote()
            try:
                restored = self._ray.get(answer, timeout=STALLED_SECONDS)
                break
            except lost.GetTimeoutError:
                raise ClusterError(f"ray: no node takes shard {number}. {_resources()}") from None
            except lost.RayError as again:
                error = again
        self.sampling = {one: shard for one, shard in self.sampling.items() if shard != number}
        self.history.windows_lost += max(0, self.added[number] - restored)
        self.added[number] = restored

    # Records

    def _note(self, **values: float) -> None:
        for name, value in values.items():
            self._row.setdefault(name, []).append(float(value))

    def _log(self) -> None:
        """Write a row of measurements: means since the last row."""
        names = ("loss", *BATCH_MEASURES, "priority_age", "parameter_age")
        row = {
            "epsilon": self.apex.epsilons.mean(),
            "beta": self.config.beta(self.history.step),
            **dict.fromkeys(names, np.nan),
            **{name: np.mean(values) for name, values in self._row.items()},
        }
        self._row = {}
        self.history.log_steps.append(self.history.step)
        for name, value in row.items():
            self.history.measures.setdefault(name, []).append(np.array([value], dtype=np.float64))

    @property
    def _made_with(self) -> dict[str, Any]:
        spread = dataclasses.asdict(self.apex)
        made_with = {"seeds": self.history.seeds, **dataclasses.asdict(self.config), **spread}
        return json.loads(json.dumps(made_with))

    def _save(self, folder: Path) -> None:
        """Save the shards, then the learner, whose file marks the checkpoint as complete."""
        for number, memory in enumerate(self.memories.members):
            try:
                self._ray.get(memory.save.remote())
            except self._ray.exceptions.RayError as error:
                self._replace_memory(number, error)
        save_learner(folder, self._made_with, self.agent, self.history)


def _seed_of(seed: int, *purpose: int) -> int:
    """A seed of 31 bits, derived from a training's seed and its purpose."""
    return int(np.random.SeedSequence((seed, *purpose)).generate_state(1)[0] >> 1)


def _resources() -> str:
    """The nodes and their CPUs, for error messages."""
    named = (f"{node.name} has {node.resources.get('CPU', 0):g} CPU" for node in nodes())
    return "; ".join(named)
