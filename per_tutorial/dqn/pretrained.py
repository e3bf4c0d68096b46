"""Two trained agents of a checkout: a safetensors file and a model card each (`common.data`)."""

from typing import TYPE_CHECKING

from per_tutorial.common.arguments import one_of
from per_tutorial.common.data import data_file

if TYPE_CHECKING:
    from per_tutorial.dqn.learner import DQNLearner

AGENTS = ("long-cartpole", "pong")


def load_agent(name: str, device: str = "cpu", *, precision: str = "float32") -> "DQNLearner":
    """The trained `DQNLearner` of this name; a stack of one run.

    It plays in float32 unless asked otherwise, whatever it was trained with, so that scores are
    nearly the same on all machines. bfloat16 takes many times as long on processors without
    instructions for it.

    Raises:
        ValueError: there is no agent of this name, or no such precision.
        FileNotFoundError: the data of the series are not here, only the package is.
    """
    from per_tutorial.dqn.learner import DQNLearner

    path = data_file(f"{one_of('name', name, AGENTS)}.safetensors")
    return DQNLearner.load(path, device, precision=precision)
