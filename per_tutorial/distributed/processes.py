"""The Ray processes of Ape-X, and their replacement when they are lost."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.distributed.cluster import ClusterError, first_line, import_ray, nodes
from per_tutorial.distributed.memory import Memory
from per_tutorial.distributed.n_step_batches import NStepBatch
from per_tutorial.dqn.config import DQNConfig

if TYPE_CHECKING:  # a memory does not need PyTorch
    from per_tutorial.distributed.acting import Parameters

MAX_IN_FLIGHT = 2  # an actor with this many messages in flight to its memory waits
MAX_LOSSES = 5  # of one process in a row, with no work done in between


class Report(NamedTuple):
    """An actor's report on the steps that it was asked for."""

    steps: int
    episodes: list[tuple[int, float, int]]  # (steps of this report until its end, return, length)
    version: int  # updates of the parameters that it acted with
    lost: int  # windows that did not reach a memory


class ActorProcess:
    """Acts, and sends its transitions straight to a memory."""

    def __init__(self, config: DQNConfig, epsilons: NDArray, seeds: list[int]) -> None:
        import torch

        from per_tutorial.distributed.acting import Acting

        torch.set_num_threads(1)
        self._acting = Acting(config, epsilons, seeds)
        self._sent: list[tuple[Any, int]] = []  # (reference, windows)

    def act(self, parameters: "Parameters", version: int, steps: int, memory: Any) -> Report:
        """Make steps with these parameters; waits if the memory does not keep up."""
        self._acting.use(parameters)
        windows, episodes = self._acting.act(steps)
        if windows is not None:
            self._sent.append((memory.add.remote(windows, version), len(windows.actions)))
        lost = 0
        while len(self._sent) >= MAX_IN_FLIGHT:
            lost += self._arrived(*self._sent.pop(0))
        return Report(steps, episodes, version, lost)

    def _arrived(self, reference: Any, count: int) -> int:
        ray = import_ray()
        try:
            ray.get(reference)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError:  # its memory was lost
            return count
        return 0


class MemoryProcess(Memory):
    """A `Memory` that copies Ray's read-only arrays: compiled code takes writable ones."""

    def add(self, windows: NStepBatch, version: int) -> int:
        own = (np.array(field) for field in windows[:7])  # frames don't go to compiled code
        return super().add(NStepBatch._make([*own, windows.frames]), version)

    def update(self, indices: NDArray, td_errors: NDArray, version: int) -> None:
        super().update(np.array(indices), np.array(td_errors), version)


class WorkerPool:
    """Processes of one kind, by number; lost ones are replaced.

    Args:
        kind: the class.
        arguments: a function (number, how often it was lost) → arguments of the constructor.
        count: how many.
    """

    def __init__(self, kind: type, arguments: Callable[[int, int], tuple], count: int) -> None:
        self._kind, self._arguments = kind, arguments
        self._in_a_row = [0] * count
        self.lost = [0] * count
        self.members = [self._start(number) for number in range(count)]

    def _start(self, number: int) -> Any:
        process = import_ray().remote(num_cpus=1, max_restarts=0)(self._kind)
        return process.remote(*self._arguments(number, self.lost[number]))

    def done(self, number: int) -> None:
        """Note that the process has done some work: its losses in a row start at 0 again."""
        self._in_a_row[number] = 0

    def replace(self, number: int, error: Exception) -> None:
        """Replace a lost process.

        Raises:
            ClusterError: its own code failed, or it was lost more than `MAX_LOSSES` times in a row.
        """
        ray = import_ray()
        name = f"{self._kind.__name__} {number}"
        if isinstance(error, ray.exceptions.RayTaskError):
            place = _place(error)
            cause = error.cause
            raise ClusterError(
                f"ray: {name} failed{place} ({type(cause).__name__}: {first_line(cause)})"
            ) from cause
        self._in_a_row[number] += 1
        if self._in_a_row[number] > MAX_LOSSES:
            raise ClusterError(
                f"ray: {name} was lost {MAX_LOSSES + 1} times in a row ({first_line(error)})"
            ) from error
        self.lost[number] += 1
        ray.kill(self.members[number])
        self.members[number] = self._start(number)

    def end(self) -> None:
        for process in self.members:
            import_ray().kill(process)


def _place(error: Exception) -> str:
    """The node where a task failed; Ray names it only in the first line of its report."""
    found = re.search(r"\bip=([^,)\s]+)", first_line(error))
    if found is None:
        return ""
    named = [node.name for node in nodes() if node.address == found[1]]
    return f" on {named[0] if len(named) == 1 else f'node {found[1]}'}"
