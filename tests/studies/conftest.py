"""A finished study, for those who read it and those who do harm to a copy."""

import shutil

import pytest


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished study: its folder, `StudyResults`, and what its progress was called with."""
    from small_study import STUDY

    from per_tutorial.studies.runner import run_study

    folder, calls = tmp_path_factory.mktemp("study") / "not" / "yet", []
    results = run_study(STUDY, folder, progress=lambda *counts: calls.append(counts))
    return folder, results, calls


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the folder of a finished study, to do harm to."""
    return shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)


@pytest.fixture
def trained(monkeypatch):
    """The (sampler, seeds) of every training, as they happen."""
    from per_tutorial.dqn import training

    calls, train = [], training.train

    def noted(config, seeds, **options):
        calls.append((config.sampler, list(seeds)))
        return train(config, seeds, **options)

    monkeypatch.setattr(training, "train", noted)
    return calls
