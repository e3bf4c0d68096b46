"""Trained agents that come with the package: a safetensors file and a model card each."""

from pathlib import Path
from typing import TYPE_CHECKING

from per_tutorial.common.arguments import one_of

if TYPE_CHECKING:
    from per_tutorial.dqn.learner import DQNLearner

FOLDER = Path(__file__).parents[1] / "results"


def agent_names() -> list[str]:
    """The names of the agents that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def load_agent(name: str, device: str = "cpu", *, precision: str = "float32") -> "DQNLearner":
    """The trained `DQNLearner` of this name; a stack of one run.

    It plays in float32 unless asked otherwise, whatever it was trained with, so that scores are
    nearly the same on all machines. bfloat16 takes many times as long on processors without
    instructions for it.

    Raises:
        ValueError: there is no agent of this name, or no such precision.
    """
    from per_tutorial.dqn.learner import DQNLearner

    path = FOLDER / f"{one_of('name', name, agent_names())}.safetensors"
    return DQNLearner.load(path, device, precision=precision)
