"""The parts of a study, trained on a Ray cluster; the files are written where the study runs.

    import ray
    from per_tutorial.studies.declared import STUDIES
    from per_tutorial.studies.on_ray import on_ray
    from per_tutorial.studies.runner import run_study

    ray.init(address="auto")  # the cluster of this machine
    run_study(STUDIES["hundred-runs"], "results", executor=on_ray)

Every machine needs the same versions of Python and of this package.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from per_tutorial.common.files import atomic_write
from per_tutorial.studies.runner import Job, TrainedPart, train_part, write_part
from per_tutorial.studies.study import Study

MAX_RETRIES = 3  # of a part whose process or machine is lost; an error in a training ends the study


def on_ray(jobs: list[Job]) -> Iterator[tuple[str, list[int]]]:
    """Do the jobs on the connected cluster; yields the (arm, seeds) of each once it is written.

    A part is a task with one CPU and one thread, and a GPU unless its device is "cpu". Its rows
    equal those of a local run, bit for bit on processors of one kind. If its machine is lost, Ray
    starts it again elsewhere. Without checkpoints it then begins anew.

    Raises:
        ray.exceptions.RayError: a training failed, or its process was lost too often.
    """
    import ray

    train = ray.remote(max_retries=MAX_RETRIES)(_train)
    waiting = {}
    for study, arm, seeds, path in jobs:
        gpus = 0 if study.arms[arm].device == "cpu" else 1
        task = train.options(num_cpus=1, num_gpus=gpus, name=path.stem)
        waiting[task.remote(study, arm, seeds)] = (arm, seeds, path)
    try:
        while waiting:
            (done,), _ = ray.wait(list(waiting))
            part, agent = ray.get(done)
            arm, seeds, path = waiting.pop(done)
            if agent is not None:
                with atomic_write(path.with_suffix(".safetensors")) as file:
                    file.write(agent)
            write_part(path, part)
            yield arm, seeds
    finally:  # an error or Ctrl-C
        for reference in waiting:
            ray.cancel(reference, force=True)


def _train(study: Study, arm: str, seeds: list[int]) -> tuple[TrainedPart, bytes | None]:
    """Train one part on a machine of the cluster; its agent comes back as the bytes of a file."""
    import torch

    torch.set_num_threads(1)
    part = train_part(study, arm, seeds)
    if part.agent is None:
        return part, None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.safetensors"
        part.agent.save(file)
        return part._replace(agent=None), file.read_bytes()
