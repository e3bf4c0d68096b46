"""Trainings that die at chosen steps, and all that they leave, for the tests of checkpoints."""

import os

import numpy as np

from per_tutorial.common.files import ArrayFile
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.training import train

SEEDS = [3, 4]
CONFIG = DQNConfig(
    steps=60,
    hidden=(8,),
    batch_size=4,
    learning_starts=20,
    learning_rate=0.01,
    max_episode_steps=11,
    update_every=2,
    target_update_every=4,
    tau=0.5,
    capacity=30,
    epsilon_steps=40,
    sampler="proportional",
)


class Killed(Exception):
    """The training stops here."""


class Dying(Checkpoints):
    """A training that dies right after the first of these steps."""

    def __init__(self, folder, steps=(), **options):
        super().__init__(folder, **options)
        self.steps = steps

    def restore(self, training):
        self.training = training
        super().restore(training)

    def save_if_due(self, training):
        super().save_if_due(training)
        if training.history.step in self.steps:
            raise Killed


class Nothing:
    """No checkpoints; but the parts of the training can be looked at."""

    def resolve_auto(self, config):
        return config

    def restore(self, training):
        self.training = training

    def save_if_due(self, training):
        pass


def uninterrupted(config, seeds=SEEDS):
    spy = Nothing()
    train(config, seeds, checkpoints=spy)
    return everything(spy.training)


def continued(config, folder, seeds=SEEDS, **options):
    """What the training in this folder comes to."""
    checkpoints = Dying(folder, **options)
    train(config, seeds, checkpoints=checkpoints)
    return everything(checkpoints.training)


def everything(training):
    """All that a training leaves, as a dict of arrays; read from its parts, not through `state`."""
    agent, history, storage = training.agent, training.history, training.replay.storage
    found = {"episodes": np.array(history.episodes), "log steps": history.log_steps}
    found |= {name: history.measure(name) for name in history.measures}
    found |= {f"row: {name}": storage.rows[name] for name in storage.rows.dtype.names}
    found |= {f"sampler: {name}": array for name, array in training.replay.sampler.state.items()}
    for network in ("online", "target"):
        for number, parameter in enumerate(getattr(agent, network).parameters()):
            found[f"{network} {number}"] = parameter.detach().cpu().numpy()
    for number, moments in enumerate(agent.optimizer.state.values()):
        found |= {f"adam {number} {name}": tensor.cpu().numpy() for name, tensor in moments.items()}
    found |= {"exploration": training.exploration.states, "added": storage.added}
    found |= {"observation": training.environments.observation, "updates": agent.updates}
    return found


def assert_identical(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def logged_steps(checkpoints):
    """The steps of the rows of measurements that a training writes from here on."""
    steps = []
    callbacks = [lambda history: steps.append(history.step)]
    train(CONFIG, SEEDS, checkpoints=checkpoints, callbacks=callbacks)
    return steps


def read_arrays(path):
    """All members of the file."""
    with ArrayFile(path) as file:
        return {name: file.read(name) for name in file.specs}


def names(folder):
    return sorted(os.listdir(folder))
