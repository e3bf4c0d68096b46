"""The benchmark of what an update costs: all methods learn, from the same memory. Nothing is timed."""

import numpy as np
import pytest

from benchmarks import methods
from per_tutorial.dqn.learner import DQNLearner


@pytest.mark.parametrize("name", methods.ARMS)
def test_a_block_is_as_many_updates_of_a_full_memory(name, monkeypatch):
    seen, update = [], DQNLearner.update

    def noted(learner, batch):
        seen.append(batch)
        return update(learner, batch)

    monkeypatch.setattr(DQNLearner, "update", noted)
    assert methods.updates(methods.ARMS[name], runs=2, capacity=128)(5) >= 0
    assert [batch.indices.shape for batch in seen] == [(2, 32)] * 5
    assert len(np.unique([batch.indices for batch in seen])) > 50


def test_a_report_about_methods(tmp_path, monkeypatch):
    seconds = {name: [0.002, 0.003, 0.001] for name in methods.ARMS}
    seconds["pal"] = [0.001, 0.003, 0.002]
    monkeypatch.setattr(methods, "measure", lambda rounds: {1: seconds, 10: seconds})
    methods.run(tmp_path, quick=True)
    page = (tmp_path / "methods_speed.md").read_text(encoding="utf-8")
    assert "| | 1 run, ms | beside PER | 10 runs, ms | beside PER |" in page
    assert "| pal | 2.00 | ×1.00 (0.75 to 1.50) | 2.00 | ×1.00 (0.75 to 1.50) |" in page
    monkeypatch.setattr(methods, "measure", None)  # what was measured is enough
    methods.run(tmp_path, redraw=True)
    assert (tmp_path / "methods_speed.md").read_text(encoding="utf-8") == page
