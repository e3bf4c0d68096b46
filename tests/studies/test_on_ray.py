"""Studies on Ray: the rows of a local run, a lost process, an error; without a real cluster."""

import dataclasses
import os
import sys
from types import SimpleNamespace

import pytest
from small_study import STUDY, contents, rows_of

from per_tutorial.studies.on_ray import MAX_RETRIES, on_ray
from per_tutorial.studies.runner import run_study


class Stub:
    """What `on_ray` asks of Ray; a task runs when it is waited for, the last one first."""

    def __init__(self):
        self.tasks, self.options, self.cancelled = [], [], []

    def remote(self, max_retries):
        assert max_retries == MAX_RETRIES
        return lambda function: SimpleNamespace(options=lambda **its: self._task(function, its))

    def _task(self, function, options):
        self.options.append(options)

        def remote(*args):
            self.tasks.append(lambda: function(*args))
            return len(self.tasks) - 1

        return SimpleNamespace(remote=remote)

    def wait(self, references):
        return references[-1:], references[:-1]

    def get(self, reference):
        return self.tasks[reference]()

    def cancel(self, reference, force):
        self.cancelled.append(reference)


@pytest.fixture
def stub(monkeypatch):
    stub = Stub()
    monkeypatch.setitem(sys.modules, "ray", stub)
    return stub


@pytest.mark.slow
def test_the_rows_and_agents_are_those_of_a_local_run(stub, finished, tmp_path):
    study = dataclasses.replace(STUDY, checkpoint_every=200)
    run_study(study, tmp_path, executor=on_ray)
    assert rows_of(tmp_path / "small.csv.gz") == rows_of(finished[0] / "small.csv.gz")
    names = {name.rpartition(".")[2] for name in contents(tmp_path / "small")}
    assert names == {"csv", "safetensors"}
    assert [one["name"] for one in stub.options] == [
        "uniform.seeds-0-1",
        "uniform.seeds-2-3",
        "per.seeds-0-1",
        "per.seeds-2-3",
    ]
    assert all((one["num_cpus"], one["num_gpus"]) == (1, 0) for one in stub.options)
    assert stub.cancelled == []


@pytest.mark.slow
def test_an_error_cancels_what_waits_and_keeps_what_is_finished(stub, tmp_path):
    get, asked = stub.get, []

    def failing(reference):
        asked.append(reference)
        if len(asked) == 2:
            raise RuntimeError("out of memory")
        return get(reference)

    stub.get = failing
    with pytest.raises(RuntimeError, match="out of memory"):
        run_study(STUDY, tmp_path, executor=on_ray)
    assert sorted(stub.cancelled) == [0, 1, 2]
    assert list(contents(tmp_path)) == ["small/per.seeds-2-3.csv"]
    stub.get = get
    run_study(STUDY, tmp_path, executor=on_ray)  # only what is missing
    assert len(stub.options) == 4 + 3


@pytest.mark.exhaustive
def test_a_real_ray_gives_the_rows_of_a_local_run(finished, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    except Exception as error:  # its parts wait 15 seconds for each other
        if "timed out during startup" not in str(error):
            raise
        pytest.skip("the machine is too busy for Ray")
    try:
        run_study(STUDY, tmp_path, executor=on_ray)
    finally:
        ray.shutdown()
    assert rows_of(tmp_path / "small.csv.gz") == rows_of(finished[0] / "small.csv.gz")
