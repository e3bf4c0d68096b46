"""Training speed: frames per second, ours beside Stable-Baselines3's and tianshou's DQN.

    make bench ARGS=training

All contestants do the same work: CartPole-v1, a 128-128 network, minibatches of 32, an update at
every frame, ε = 0.05, one environment a run; in one line of the table, Gymnasium's CartPole that
steps all environments at once. They take turns, round after round; ratios are taken within a round
(`benchmarks/harness.py`). One *frame* is one environment step of one run.

The floor of R runs are the matrix products alone: acting, the targets, the Q-values and their
gradients, and nothing else: no activations, losses, optimiser, environments or replay.

*Compiled* are trainings with `DQNConfig(compiled=True)`; compiling itself, some seconds, is not
counted. An update from pixels is one of the study `pong`, on random frames.

Where a step's time goes is measured by clocks around the functions that `train` calls; a clock
stands still while another one inside of it runs.

Writes docs/training_speed.md and, with all numbers, docs/training_speed.json.
"""

import functools
import statistics
import time
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.harness import (
    alternate,
    exponent,
    machine,
    ratio,
    table_of_parts,
    timed,
    write_report,
)
from per_tutorial import Batch, DQNConfig, DQNLearner, History, train
from per_tutorial.dqn import history, training
from per_tutorial.dqn import learner as learner_module
from per_tutorial.dqn.environments.gymnasium_envs import Environments
from per_tutorial.replay.replay import Replay
from per_tutorial.studies.declared import STUDIES

SETTINGS = {
    "env": "CartPole-v1",
    "hidden": (128, 128),
    "batch_size": 32,
    "learning_starts": 32,
    "update_every": 1,
    "target_update_every": 100,
    "tau": 1.0,
    "capacity": 10_000,
    "learning_rate": 1e-3,
    "discount": 0.99,
    "epsilon_start": 0.05,
    "epsilon_end": 0.05,
}
PACKAGES = ("torch", "numpy", "numba", "gymnasium", "stable-baselines3", "tianshou")
SB3, TIANSHOU = "Stable-Baselines3 DQN, 1 run", "tianshou DQN + PER, 1 run"
NUMPY_ENVIRONMENTS = "100 runs, proportional, all environments in one (NumPy)"
COMPILED = "{}, proportional, compiled"
COMPILED_NUMPY = f"{NUMPY_ENVIRONMENTS}, compiled"
FLOOR = "floor of 100 runs: the matrix products alone"


def ours(runs, sampler, **settings):
    def train_steps(steps):
        # As often as in a training of 20,000 steps: a short one would measure itself all the time.
        with patch.object(history, "LOG_POINTS", max(1, steps // 100)):
            train(DQNConfig(steps=steps, sampler=sampler, **SETTINGS, **settings), range(runs))

    return train_steps


def stable_baselines3(steps, device="cpu"):
    from stable_baselines3 import DQN

    model = DQN(
        "MlpPolicy",
        SETTINGS["env"],
        policy_kwargs={"net_arch": list(SETTINGS["hidden"])},
        batch_size=SETTINGS["batch_size"],
        learning_starts=SETTINGS["learning_starts"],
        train_freq=1,
        gradient_steps=1,
        target_update_interval=SETTINGS["target_update_every"],
        buffer_size=SETTINGS["capacity"],
        learning_rate=SETTINGS["learning_rate"],
        gamma=SETTINGS["discount"],
        exploration_initial_eps=SETTINGS["epsilon_start"],
        exploration_final_eps=SETTINGS["epsilon_end"],
        device=device,
        seed=0,
    )
    model.learn(steps)


def tianshou(steps):
    import gymnasium
    from tianshou.algorithm import DQN
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, PrioritizedVectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.trainer import OffPolicyTrainerParams
    from tianshou.utils.net.common import Net

    environments = DummyVectorEnv([lambda: gymnasium.make(SETTINGS["env"])])
    spaces = gymnasium.make(SETTINGS["env"])
    policy = DiscreteQLearningPolicy(
        model=Net(
            state_shape=spaces.observation_space.shape,
            action_shape=spaces.action_space.n,
            hidden_sizes=SETTINGS["hidden"],
        ),
        action_space=spaces.action_space,
        observation_space=spaces.observation_space,
        eps_training=SETTINGS["epsilon_end"],
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=SETTINGS["learning_rate"]),
        gamma=SETTINGS["discount"],
        target_update_freq=SETTINGS["target_update_every"],
        is_double=False,
    )
    buffer = PrioritizedVectorReplayBuffer(SETTINGS["capacity"], 1, alpha=0.6, beta=0.4)
    collector = Collector(algorithm, environments, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=SETTINGS["learning_starts"], random=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=steps - SETTINGS["learning_starts"],
            collection_step_num_env_steps=1,
            update_step_num_gradient_steps_per_sample=1.0,
            batch_size=SETTINGS["batch_size"],
            verbose=False,
            show_progress=False,
        )
    )


def floor(runs, inputs=4, actions=2):
    """The matrix products of `ours(runs, …)`, with operands of the same shapes and layouts."""
    sizes = (inputs, *SETTINGS["hidden"], actions)
    layers = [
        (torch.randn(runs, 1, outputs), torch.randn(runs, inputs, outputs))
        for inputs, outputs in zip(sizes, sizes[1:], strict=False)
    ]
    one, batch = (torch.randn(runs, n, inputs) for n in (1, SETTINGS["batch_size"]))
    gradient = torch.randn(runs, SETTINGS["batch_size"], actions)

    def forward(observations):
        features = [observations]
        for bias, weight in layers:
            features.append(torch.baddbmm(bias, features[-1], weight))
        return features

    def backward(features):
        error = gradient
        for number in reversed(range(len(layers))):
            torch.bmm(features[number].transpose(1, 2), error)  # the gradient of the weights
            if number:  # nobody wants that of the observations
                error = torch.bmm(error, layers[number][1].transpose(1, 2))

    @torch.no_grad()
    def multiply(steps):
        for step in range(steps):
            forward(one)
            if step >= SETTINGS["learning_starts"]:
                forward(batch)
                backward(forward(batch))

    return multiply


# {name: (function of the steps of each run, runs, how many times fewer steps are enough)}
CONTESTANTS = {
    SB3: (stable_baselines3, 1, 1),
    TIANSHOU: (tianshou, 1, 2),
    "1 run, uniform": (ours(1, "uniform"), 1, 1),
    "1 run, proportional": (ours(1, "proportional"), 1, 1),
    "10 runs, uniform": (ours(10, "uniform"), 10, 1),
    "10 runs, proportional": (ours(10, "proportional"), 10, 1),
    "30 runs, proportional": (ours(30, "proportional"), 30, 2),
    "100 runs, uniform": (ours(100, "uniform"), 100, 6),
    "100 runs, proportional": (ours(100, "proportional"), 100, 6),
    NUMPY_ENVIRONMENTS: (ours(100, "proportional", vectorization="vector_entry_point"), 100, 6),
    COMPILED.format("1 run"): (ours(1, "proportional", compiled=True), 1, 1),
    COMPILED.format("10 runs"): (ours(10, "proportional", compiled=True), 10, 1),
    COMPILED.format("100 runs"): (ours(100, "proportional", compiled=True), 100, 6),
    COMPILED_NUMPY: (
        ours(100, "proportional", vectorization="vector_entry_point", compiled=True),
        100,
        6,
    ),
    FLOOR: (floor(100), 100, 6),
}


def pixel_updates(frame_size, compiled, updates=20):
    """A function that makes updates from random frames and returns the seconds of each."""
    (config, *_) = STUDIES["pong"].arms.values()
    config = config.replace(frame_size=frame_size, compiled=compiled)
    random = np.random.default_rng(0)
    shape = (1, config.batch_size)
    frames = (*shape, 4, frame_size, frame_size)
    batch = Batch(
        observations=random.integers(256, size=frames, dtype=np.uint8),
        actions=random.integers(6, size=shape),
        rewards=np.zeros(shape, dtype=np.float32),
        next_observations=random.integers(256, size=frames, dtype=np.uint8),
        terminated=np.zeros(shape, dtype=bool),
        weights=np.ones(shape),
        indices=np.zeros(shape, dtype=np.int64),
        steps=np.full(shape, config.n_step),
    )
    learner = DQNLearner(config, frames[2:], 6, seeds=[0])

    def work():
        for _ in range(updates):
            learner.update(batch)

    return timed(work, updates)


# What takes time in a step: {part: functions, each by who holds it and its name}
PARTS = {
    "acting": [(training, "epsilon_greedy")],
    "environments": [(Environments, "step")],
    "replay: add, sample": [(Replay, "add"), (Replay, "sample")],
    "replay: update priorities": [(Replay, "update_priorities")],
    "forward passes, losses": [(DQNLearner, "update")],
    "gradients": [(torch.autograd, "grad")],
    "Adam": [(learner_module, "descend")],
    "target networks": [(DQNLearner, "update_target")],
    "records": [(History, "record_step"), (History, "record_update"), (History, "log")],
}


def profile(train_steps, steps):
    """{part: seconds of a step} of a training."""
    seconds, running = dict.fromkeys([*PARTS, "all else"], 0.0), ["all else"]
    since = time.perf_counter()

    def switch():
        """Give the time that has passed to the part that runs."""
        nonlocal since
        now = time.perf_counter()
        seconds[running[-1]] += now - since
        since = now

    def clocked(part, function):
        @functools.wraps(function)
        def call(*arguments, **keywords):
            switch()
            running.append(part)
            try:
                return function(*arguments, **keywords)
            finally:
                switch()
                running.pop()

        return call

    with ExitStack() as stack:
        for part, functions in PARTS.items():
            for holder, name in functions:
                function = clocked(part, getattr(holder, name))
                stack.enter_context(patch.object(holder, name, function))
        train_steps(steps)
        switch()
    return {part: each / steps for part, each in seconds.items()}


def measure(steps, rounds):
    """{contestant: seconds of a step, which is a frame of each of its runs, in each round}."""
    turns = {
        name: timed(functools.partial(train_steps, steps // fewer), steps // fewer)
        for name, (train_steps, _, fewer) in CONTESTANTS.items()
    }
    return alternate(turns, rounds)


def report(data):
    """The text of training_speed.md."""
    seconds = data["seconds"]
    # Seconds of a frame: the only unit in which stacks of different size can be compared.
    frames = {name: [s / CONTESTANTS[name][1] for s in each] for name, each in seconds.items()}
    lines = [
        "# Training speed",
        "",
        "Written by `make bench` (`benchmarks/training.py`, which describes the work).",
        f"{data['rounds']} rounds of {data['steps']} steps (fewer where a step takes long) on "
        f"{data['machine']}.",
        "",
        "| | ms per step of all runs | frames per second | × Stable-Baselines3 | × tianshou |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, values in frames.items():
        median = statistics.median(seconds[name])
        entries = [name, f"{1000 * median:.2f}", f"{1 / statistics.median(values):,.0f}"]
        entries += [ratio(frames[peer], values) for peer in (SB3, TIANSHOU)]
        lines.append(f"| {' | '.join(entries)} |")
    growth = {
        runs: statistics.median(seconds[f"{name}, proportional"])
        for runs, name in ((10, "10 runs"), (30, "30 runs"), (100, "100 runs"))
    }
    lines += [
        "",
        "Medians over rounds; for ratios, median and range over the rounds.",
        "",
        "- A step with PER, as a multiple of uniform replay's: "
        + ", ".join(
            f"{runs} {ratio(seconds[f'{runs}, proportional'], seconds[f'{runs}, uniform'])}"
            for runs in ("1 run", "10 runs", "100 runs")
        )
        + ".",
        "- 100 runs as a multiple of their floor: "
        + ", ".join(
            f"{name.removeprefix('100 runs, ')} {ratio(seconds[name], seconds[FLOOR])}"
            for name in (
                "100 runs, uniform",
                "100 runs, proportional",
                NUMPY_ENVIRONMENTS,
                COMPILED.format("100 runs"),
                COMPILED_NUMPY,
            )
        )
        + ".",
        f"- From 10 to 100 runs with PER a step's time grows as runs^"
        f"{exponent(list(growth), list(growth.values())):.2f}; "
        f"1 run takes {ratio(seconds['1 run, proportional'], seconds['10 runs, proportional'])} "
        "of the time of 10.",
        "- A compiled step with PER, as a multiple of one that is not: "
        + ", ".join(
            f"{runs} {ratio(seconds[COMPILED.format(runs)], seconds[f'{runs}, proportional'])}"
            for runs in ("1 run", "10 runs", "100 runs")
        )
        + ".",
        "- An update from pixels (Pong, one run), in ms as it is and compiled: "
        + ", ".join(
            f"{size}×{size} {1000 * statistics.median(pixels['as it is']):.1f} and "
            f"{1000 * statistics.median(pixels['compiled']):.1f}, "
            f"×{ratio(pixels['compiled'], pixels['as it is'])}"
            for size, pixels in data["pixels"].items()
        )
        + ".",
        "",
        "## Where the time goes",
        "",
        "With PER, in ms of a step of all runs:",
        "",
        *table_of_parts(data["profiles"], digits=3),
    ]
    return "\n".join(lines) + "\n"


def run(folder, *, quick=False, redraw=False):
    """Measure (or read what was measured) and write the report into `folder`."""
    data = None
    if not redraw:
        steps, rounds = (400, 1) if quick else (3_000, 5)
        data = {"machine": machine(PACKAGES), "steps": steps, "rounds": rounds}
        data["seconds"] = measure(steps, rounds)
        data["pixels"] = {
            size: alternate(
                {
                    "as it is": pixel_updates(size, compiled=False),
                    "compiled": pixel_updates(size, compiled=True),
                },
                rounds,
            )
            for size in (42, 84)
        }
        data["profiles"] = {
            name: profile(CONTESTANTS[f"{name}, proportional"][0], steps // fewer)
            for name, fewer in (("1 run", 1), ("10 runs", 1), ("100 runs", 6))
        }
    write_report(folder, "training_speed", data, report)
