"""What a replay brings where values share a network: single updates on copies. Declared before it
ran.

The worlds, runs and settings are those of `network`, with uniform replay at its best rate. At the
six moments of `mechanism` (the first waits for 64 transitions), 64 transitions of each memory are
replayed, each on its own copy of the network. A replay is one plain gradient step on δ², without an
optimiser's state. To first order it moves Q of its own pair by η δ, with η = 1/16. It brings the
decrease of the squared error of Q:

- ``whole``: summed over all pairs of the walk; ``own``: of its own pair alone; ``useful``: as
  ``whole``, with m in place of δ.
- The proxy is the rank correlation of |δ| with each of the three, over the 64.

**Expected.** Without noise, the proxy is worse than in the table with 4 states, because a step for
one pair moves the others. With noise it falls as in the table.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import make_replay, train
from per_tutorial.experiments.when.learning import WARM, steps_of
from per_tutorial.experiments.when.maps import SEEDS
from per_tutorial.experiments.when.mechanism import MOMENTS, outlook, rank_correlation
from per_tutorial.experiments.when.network import Cell, config_of
from per_tutorial.experiments.when.results import load
from per_tutorial.experiments.when.worlds import Experience, Knobs

REPLAYED = 64  # transitions that are replayed on copies, per run and moment
SHARE = 1 / 16  # η, the share of δ by which Q of the pair moves


def errors_after(
    agent: DQNLearner, states: NDArray, actions: NDArray, moves: NDArray, truth: NDArray
) -> NDArray[np.float64]:
    """Q − Q* of all pairs (runs, n, 2) after one step of a copy of each run's network.

    Args:
        states, actions: (runs,) the pair that is replayed in each run.
        moves: (runs,) by how much Q of that pair moves, to first order.
        truth: (n, 2)
    """
    runs, everything = len(states), torch.eye(2 * len(truth)).expand(len(states), -1, -1)
    names, parameters = zip(*agent.online.named_parameters(), strict=True)
    q = agent.online(everything)[torch.arange(runs), states, actions]
    gradients = torch.autograd.grad(q.sum(), parameters)  # the runs share no parameter
    lengths = sum((gradient**2).flatten(1).sum(dim=1) for gradient in gradients)
    steps = torch.from_numpy(moves).to(q.dtype) / lengths
    moved = {
        name: parameter + steps.reshape(-1, *[1] * (parameter.dim() - 1)) * gradient
        for name, parameter, gradient in zip(names, parameters, gradients, strict=True)
    }
    with torch.no_grad():
        after = torch.func.functional_call(agent.online, moved, (everything,))
    return after[:, : len(truth)].double().numpy() - truth


def look(
    agent: DQNLearner, knobs: Knobs, experience: Experience, rng: np.random.Generator
) -> dict[str, list[float]]:
    """The proxies of each run, at one moment of its training."""
    runs, size = experience.states.shape
    states = np.tile(np.eye(2 * knobs.n, dtype=np.float32), (runs, 1, 1))
    q = agent.q_values(states).astype(float)
    replay = outlook(knobs, q, experience, size)
    truth, seed_index = knobs.true_values, np.arange(runs)
    before = q[:, : knobs.n] - truth
    chosen = np.stack([rng.choice(size, REPLAYED, replace=False) for _ in seed_index])
    brought = {name: np.empty((runs, REPLAYED)) for name in ("whole", "own", "useful")}
    for k, at in enumerate(chosen.T):
        s, a = experience.states[seed_index, at], experience.actions[seed_index, at]
        for name, errors in (("whole", replay.deltas), ("useful", replay.means)):
            after = errors_after(agent, s, a, SHARE * errors[seed_index, at], truth)
            gone = before**2 - after**2
            brought[name][:, k] = gone.sum(axis=(1, 2))
            if name == "whole":
                brought["own"][:, k] = gone[seed_index, s, a]
    sizes = np.abs(np.take_along_axis(replay.deltas, chosen, axis=1))
    return {
        name: [round(rank_correlation(*pair), 4) for pair in zip(sizes, values, strict=True)]
        for name, values in brought.items()
    }


def run_cell(cell: Cell) -> dict[str, Any]:
    """The proxies of a world at each moment: {moment: {name: a number for each run}}."""
    knobs, steps = cell.knobs, steps_of(cell.knobs)
    rate = load("network")["cells"][cell.name]["uniform"]["rate"]
    config = config_of(knobs, "uniform", rate)
    replay = make_replay(config, (2 * knobs.n,), list(SEEDS))
    rng = np.random.default_rng(0)
    first = int(steps * WARM)
    moments = [first + int(share * (steps - first)) for share in MOMENTS]
    found: dict[str, Any] = {"rate": rate}

    def callback(history: History) -> None:
        done = len(found) - 1
        if done == len(MOMENTS) or history.step < moments[done] or history.agent is None:
            return
        slots = np.tile(np.arange(int(replay.storage.ring.sizes.min())), (len(SEEDS), 1))
        rows, _ = replay.storage.n_step_transitions(slots)
        if slots.shape[1] < REPLAYED:
            return
        experience = Experience(
            rows["observation"].argmax(axis=2),
            rows["action"].astype(np.int64),
            rows["reward"].astype(float),
            rows["next_observation"].argmax(axis=2),
            rows["terminated"].astype(bool),
        )
        found[str(MOMENTS[done])] = look(history.agent, knobs, experience, rng)

    train(config, SEEDS, replay=replay, callbacks=[callback])
    return found
