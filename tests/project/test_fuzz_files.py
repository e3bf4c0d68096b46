"""Files damaged by chance, of every kind: each is refused by an error that names it, or it works.

A buffer that refuses a file stays as it was.
"""

import random
import zipfile
from functools import partial

import numpy as np
import pytest
from notebook_files import ROOT
from tracked import tracked_files

import per_tutorial
from per_tutorial import Checkpoints, DQNConfig, DQNLearner, train
from per_tutorial.studies.results import load_study

DAMAGES = 60  # of each kind of file
CONFIG = DQNConfig(steps=130, learning_starts=100, hidden=(4,), capacity=150)


def damaged(content, rng):
    """The bytes of a file with a bit flipped, a span removed, repeated or overwritten, or cut."""
    start = rng.randrange(len(content))
    end = min(start + rng.choice((1, 8, 300)), len(content))
    before, span, after = content[:start], content[start:end], content[end:]
    flipped = bytes([span[0] ^ 1 << rng.randrange(8)]) + span[1:]
    middles = (flipped, b"", span + span, rng.randbytes(len(span)))
    return rng.choice([before, *(before + middle + after for middle in middles)])


def misfit(path, rng):
    """Write an .npz file anew, with an array left out or of another form; all else fits."""
    with np.load(path) as file:
        arrays = dict(file)
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    other = rng.choice((None, array.ravel()[:-1], array[None], np.zeros(array.shape, "S9")))
    arrays |= {} if other is None else {name: other}
    np.savez(path, **arrays)


# Kinds of files: write an honest one; return its path, and a function that loads and uses it.


def buffer(kind, folder):
    def filled(seed):
        memory = getattr(per_tutorial, kind)(40, (3,), seed=seed)
        for k in range(60):
            memory.add([k, seed, 1], k % 3, 1.0, [k + 1, seed, 1], k % 10 == 9)
        return memory

    def load():
        memory = filled(1)
        before = {name: np.copy(array) for name, array in memory.state.items()}
        try:
            memory.load(folder / "buffer.npz")
        except ValueError:
            np.testing.assert_equal(dict(memory.state), before)
            raise
        assert (memory.sample(8).observations[:, 1:] == (0, 1)).all()

    filled(0).save(folder / "buffer.npz")
    return folder / "buffer.npz", load


def checkpoint(folder):
    def trained():
        return train(CONFIG, seeds=0, checkpoints=Checkpoints(folder, every=130)).episodes

    honest = trained()
    return folder / "checkpoint.npz", lambda: np.testing.assert_equal(trained(), honest)


def agent(folder):
    def load():
        learner = DQNLearner.load(folder / "agent.safetensors")
        assert np.isfinite(learner.q_values(np.zeros((1, 5, 4), np.float32))).all()

    DQNLearner(CONFIG, (4,), 2, [0]).save(folder / "agent.safetensors")
    return folder / "agent.safetensors", load


def results(folder):
    (name,) = (name for name in tracked_files() if name.endswith("/published-breakout.csv.gz"))
    (folder / "study.csv.gz").write_bytes((ROOT / name).read_bytes())
    return folder / "study.csv.gz", lambda: load_study("study", folder).seeds


BUFFERS = ("ReplayBuffer", "PrioritizedReplayBuffer", "RankBasedReplayBuffer")
KINDS = {name: partial(buffer, name) for name in BUFFERS}
KINDS |= {kind.__name__: kind for kind in (checkpoint, agent, results)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_by_its_name_or_works(kind, tmp_path):
    path, load = KINDS[kind](tmp_path)
    load()
    honest, refused = path.read_bytes(), 0
    for number in range(DAMAGES):
        rng = random.Random(f"{kind} {number}")
        path.write_bytes(honest)
        if zipfile.is_zipfile(path) and rng.random() < 0.4:
            misfit(path, rng)
        else:
            path.write_bytes(damaged(honest, rng))
        try:
            load()
        except ValueError as error:
            assert str(tmp_path) in str(error), (number, error)
            refused += 1
    assert refused > DAMAGES / 4, refused
