"""The stacks of a study, trained on a Ray cluster; results are written where the study runs."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from per_tutorial.common.files import atomic_write
from per_tutorial.common.tables import write_table
from per_tutorial.distributed.cluster import (
    ClusterError,
    first_line,
    import_ray,
    nodes,
    on_node,
    require_resources,
)
from per_tutorial.experiments.studies.results import COLUMNS
from per_tutorial.experiments.studies.runner import Job, train_stack
from per_tutorial.experiments.studies.study import Study

MAX_CRASHES = 3  # of one stack, on nodes that stay alive
POLL_SECONDS = 2.0
NOTICE_SECONDS = 20.0  # within which the cluster notices that a node is lost


class _Result(NamedTuple):
    """A `TrainedStack` to be sent: the agent as the bytes of its file."""

    heading: dict[str, Any]
    rows: list[tuple[Any, ...]]
    agent: bytes | None


class RayStacks:
    """The executor of `run_study` that trains every stack as a task of the connected cluster.

    A stack takes one CPU and one thread, and a GPU unless its device is "cpu". The results equal
    those of a local run, bit for bit on the same kind of machine. If its node is lost, a stack is
    trained on another one. If this process is killed, finished stacks are saved; the others end.

    Args:
        shared_folder: a folder that all nodes see under this path, for the checkpoints of studies
            that have some (`Study.checkpoint_every`). None: a lost stack starts from the beginning.

    Attributes:
        nodes_at_work: how many nodes train stacks now.
        lost: how many times a stack was lost with its node.

    Example:
        >>> from per_tutorial.distributed import RayStacks
        >>> stacks = RayStacks()  # run_study(study, "results", executor=stacks), once connected
        >>> stacks.nodes_at_work
        0
    """

    def __init__(self, shared_folder: str | os.PathLike[str] | None = None) -> None:
        self.shared_folder = None if shared_folder is None else Path(shared_folder).absolute()
        self.lost = 0
        self._at: dict[int, str] = {}  # job number → the node that trains it
        self._running: set[int] = set()

    @property
    def nodes_at_work(self) -> int:
        """How many nodes train stacks now."""
        return len({node for job, node in self._at.items() if job in self._running})

    def __call__(self, jobs: list[Job]) -> Iterator[tuple[str, list[int]]]:
        """Run the jobs and yield the (arm, seeds) of each when its file is written.

        Raises:
            ClusterError: no node has the resources for a stack, a training failed, or its process
                crashed several times. It names the node.
        """
        return self._finished(jobs) if jobs else iter(())

    def _finished(  # noqa: C901  (one loop: what Ray hands back, and each way a stack can fail)
        self, jobs: list[Job]
    ) -> Iterator[tuple[str, list[int]]]:
        ray = import_ray()
        for study, arm, _, _ in jobs:
            require_resources(_needs(study, arm), f"a stack of {arm}")
        log = ray.remote(num_cpus=0)(_StartLog).options(
            scheduling_strategy=on_node(ray.get_runtime_context().get_node_id())
        )
        starts = log.remote()
        train = ray.remote(_train)

        def submit(number: int) -> Any:
            study, arm, seeds, path = jobs[number]
            needs = _needs(study, arm)
            # Lost tasks are restarted below, not by Ray: there, lost nodes are told from crashes.
            task = train.options(
                num_cpus=needs["CPU"], num_gpus=needs.get("GPU", 0), max_retries=0, name=path.stem
            )
            return task.remote(starts, number, study, arm, seeds, self._checkpoints(study, path))

        waiting = {submit(number): number for number in range(len(jobs))}
        crashes = dict.fromkeys(waiting.values(), 0)
        try:
            while waiting:
                done, _ = ray.wait(list(waiting), timeout=POLL_SECONDS)
                self._at = ray.get(starts.started.remote())
                self._running = set(waiting.values())
                for reference in done:
                    number = waiting.pop(reference)
                    study, arm, seeds, path = jobs[number]
                    try:
                        result = ray.get(reference)
                    except ray.exceptions.RayTaskError as error:
                        cause = error.cause
                        raise ClusterError(
                            f"ray: {path.stem} failed on {self._place(number)} "
                            f"({type(cause).__name__}: {first_line(cause)})"
                        ) from cause
                    except ray.exceptions.RayError as error:
                        if self._lives(number):
                            crashes[number] += 1
                        else:
                            self.lost += 1
                        if crashes[number] >= MAX_CRASHES:
                            raise ClusterError(
                                f"ray: the process that trains {path.stem} crashed {MAX_CRASHES} "
                                f"times, most recently on {self._place(number)} "
                                f"({first_line(error)})"
                            ) from error
                        waiting[submit(number)] = number
                        continue
                    _write(path, result)
                    checkpoints = self._checkpoints(study, path)
                    if checkpoints is not None:
                        shutil.rmtree(checkpoints, ignore_errors=True)
                    self._running = set(waiting.values())
                    yield arm, seeds
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            ray.kill(starts)
            self._running = set()

    def _checkpoints(self, study: Study, path: Path) -> Path | None:
        if self.shared_folder is None or study.checkpoint_every is None:
            return None
        return self.shared_folder / study.name / path.stem

    def _lives(self, number: int) -> bool:
        """Whether the node of a lost job is alive; the cluster may take a while to notice."""
        if number not in self._at:  # the job ended before it had reported its node
            return True
        end = time.monotonic() + NOTICE_SECONDS
        while self._at[number] in {node.id for node in nodes()}:
            if time.monotonic() > end:
                return True
            time.sleep(0.5)
        return False

    def _place(self, number: int) -> str:
        if number not in self._at:
            return "a node that it did not name"
        named = {node.id: node.name for node in nodes()}
        return named.get(self._at[number], "a node that is lost")


class _StartLog:
    """Which node started which job, as the tasks report it; it runs on the driver's node."""

    def __init__(self) -> None:
        self._nodes: dict[int, str] = {}

    def start(self, number: int, node: str) -> None:
        self._nodes[number] = node

    def started(self) -> dict[int, str]:
        return self._nodes


def _train(
    starts: Any, number: int, study: Study, arm: str, seeds: list[int], folder: Path | None
) -> _Result:
    """Train one stack on a node."""
    import torch

    ray = import_ray()
    # Not waited for: meanwhile, Ray would give this CPU to the next stack.
    starts.start.remote(number, ray.get_runtime_context().get_node_id())
    torch.set_num_threads(1)
    heading, rows, agent = train_stack(study, arm, seeds, folder)
    if agent is None:
        return _Result(heading, rows, None)
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "agent.safetensors"
        agent.save(file)
        return _Result(heading, rows, file.read_bytes())


def _write(path: Path, result: _Result) -> None:
    """Write the files that `run_study` writes for a stack that it trained itself."""
    if result.agent is not None:
        with atomic_write(path.with_suffix(".safetensors")) as file:
            file.write(result.agent)
    write_table(path, result.heading, COLUMNS, result.rows)


def _needs(study: Study, arm: str) -> dict[str, float]:
    device = study.arms[arm].device
    return {"CPU": 1} if device == "cpu" else {"CPU": 1, "GPU": 1}
