"""Trainings that die at chosen steps, and all that they leave, for the tests of checkpoints."""

import numpy as np

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
    """A training that dies right after the first of these steps; step 0: before it goes on."""

    def __init__(self, folder, steps=(), **options):
        super().__init__(folder, **options)
        self.steps = steps

    def restore(self, training):
        self.training = training
        super().restore(training)
        if 0 in self.steps:
            raise Killed

    def save_if_due(self, training):
        super().save_if_due(training)
        if training.history.step in self.steps:
            raise Killed


def everything(training):
    """All that a training leaves, as a dict of arrays; read from its parts, not through `state`."""
    agent, history, storage = training.agent, training.history, training.replay.storage
    found = {"episodes": np.array(history.episodes), "log steps": history.log_steps}
    found |= {name: history.measure(name) for name in history.measures}
    found |= {"losses": np.array(history._losses), "held out": history._held_out}
    found |= {f"row: {name}": storage.rows[name].copy() for name in storage.rows.dtype.names}
    found |= {f"sampler: {k}": v.copy() for k, v in training.replay.sampler.state.items()}
    for network in ("online", "target"):
        for number, parameter in enumerate(getattr(agent, network).parameters()):
            found[f"{network} {number}"] = parameter.detach().cpu().numpy().copy()
    for number, moments in enumerate(agent.optimizer.moments):
        for name, tensor in moments.items():
            found[f"{number} {name}"] = tensor.cpu().numpy().copy()
    found |= {"exploration": training.exploration.states.copy(), "added": storage.added.copy()}
    return found | {"updates": agent.updates, "step": history.step}


def assert_identical(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def continued(config, folder, **options):
    """What the training in this folder comes to."""
    checkpoints = Dying(folder, **options)
    train(config, SEEDS, checkpoints=checkpoints)
    return everything(checkpoints.training)
