"""Speed on a GPU: stacks of CartPole, updates from Pong's frames; Stable-Baselines3's DQN beside.

    make bench ARGS=gpu

It took four minutes on an H200, and needs a GPU that PyTorch knows as "cuda" (on Colab: Runtime,
Change runtime type). All contestants take turns, round after round; ratios are taken within a round
(`benchmarks/harness.py`).

- **CartPole**: the work of `benchmarks/training.py`, on the GPU. All environments of a stack are
  stepped at once (NumPy), on the processor.
- **Pong, a minibatch**: sample from a memory on the host, update, write priorities back; 84×84
  pixels, the network of Mnih et al. (2015). Stable-Baselines3's is the same, without priorities.
  Frames are noise.
- **Pong, training**: eight games that feed one run, an update of 32 for every four agent steps.
- **Where an update's time goes**: *there* is what brings a minibatch to the GPU, *launched* how
  long Python takes to ask for an update, *computed* the sum of what the GPU's kernels take, *all*
  an update from start to end, its results fetched.

Writes docs/gpu_speed.md and, with all numbers, docs/gpu_speed.json. Without a GPU it measures
nothing, but for `--quick`, which tries the code on the processor.
"""

import importlib.util
import os
import shutil
import statistics
import time
from importlib.util import find_spec
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import training
from benchmarks.harness import alternate, machine, ratio, write_report
from per_tutorial import DQNConfig, DQNLearner, FrameStorage, train
from per_tutorial.dqn import history
from per_tutorial.replay import ProportionalSampler, Replay

PACKAGES = ("torch", "numpy", "numba", "gymnasium", "ale-py", "stable-baselines3")
SB3 = "Stable-Baselines3"
PONG = DQNConfig(
    env="ALE/Pong-v5",
    environments=8,
    hidden=(512,),
    sampler="proportional",
    loss="huber",
    max_grad_norm=10.0,
    precision="float32",
    update_every=4,
    target_update_every=1000,
    tau=1.0,
    learning_rate=1e-4,
    epsilon_start=0.05,
)
# {name: changes to these settings}
WAYS = {
    "as it is": {},
    "bfloat16": {"precision": "bfloat16"},
    "compiled": {"compiled": True},
    "compiled, bfloat16": {"compiled": True, "precision": "bfloat16"},
}


class Plan(NamedTuple):
    """How much is measured."""

    stacks: tuple[int, ...] = (1, 10, 100, 1000)
    steps: int = 300  # of each run of CartPole
    batches: tuple[int, ...] = (32, 256)
    size: int = 84  # pixels
    memory: int = 10_000  # transitions
    minibatches: int = 40
    pong_steps: int = 960
    rounds: int = 3


QUICK = Plan((1, 3), 100, (32,), 36, 128, 2, 160, 1)


def finish(device):
    """Wait until the device has done what it was asked for."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def seconds(function, count, device):
    """A function that measures the seconds of one of ``count`` calls."""

    def measured():
        finish(device)
        start = time.perf_counter()
        for _ in range(count):
            function()
        finish(device)
        return (time.perf_counter() - start) / count

    return measured


def why_not_compiled(device):
    """What is missing to compile for this device, in a few words; None if nothing is."""
    if torch.device(device).type == "cpu":
        return None if shutil.which(os.environ.get("CXX", "g++")) else "there is no C++ compiler"
    return None if importlib.util.find_spec("triton") else "triton is not installed"


def ways(device):
    """Those of `WAYS` that this machine can go."""
    possible = why_not_compiled(device) is None
    return {
        name: changes for name, changes in WAYS.items() if possible or "compiled" not in changes
    }


# CartPole


def cartpole(plan, device):
    """{contestant: seconds of a step of all its runs, in each round}."""
    turns = {}
    if find_spec("stable_baselines3"):
        turns[f"{SB3}, 1 run"] = lambda steps: training.stable_baselines3(steps, device)
    for runs in plan.stacks:
        for name, changes in ways(device).items():
            if "precision" not in changes:  # networks so small are not made for bfloat16
                turns[f"{runs} run{'s' if runs > 1 else ''}, {name}"] = training.ours(
                    runs,
                    "proportional",
                    vectorization="vector_entry_point",
                    device=device,
                    **changes,
                )
    return alternate(
        {
            name: lambda turn=turn: seconds(lambda: turn(plan.steps), 1, device)() / plan.steps
            for name, turn in turns.items()
        },
        plan.rounds,
    )


# Pong


def full_replay(plan, batch_size):
    """A memory on the host, full of noise: the time does not depend on what is in the pictures."""
    storage = FrameStorage(plan.memory, (4, plan.size, plan.size))
    replay = Replay(storage, ProportionalSampler(plan.memory, [0]), runs=1)
    rng = np.random.default_rng(0)
    film = rng.integers(256, size=(64, 1, 1, 1, plan.size, plan.size), dtype=np.uint8)
    black = np.zeros((1, 1, 4, plan.size, plan.size), dtype=np.uint8)
    stack = black
    for k in range(plan.memory):
        following, over = np.concatenate([stack[:, :, 1:], film[k % 64]], axis=2), k % 50 == 49
        replay.add(stack, [[k % 6]], [[0.0]], following, terminated=[[over]])
        stack = black if over else following
    return lambda: replay.sample(batch_size), replay


def learner(plan, batch_size, device, changes):
    config = PONG.replace(
        frame_size=plan.size,
        batch_size=batch_size,
        learning_starts=max(PONG.learning_starts, batch_size),
        device=device,
        **changes,
    )
    return DQNLearner(config, (4, plan.size, plan.size), 6, seeds=[0])


def sb3_model(plan, device, batch_size=32, environments=1, **settings):
    from stable_baselines3 import DQN

    return DQN(
        "CnnPolicy",
        sb3_games(plan, environments),
        batch_size=batch_size,
        buffer_size=plan.memory,
        learning_starts=max(PONG.learning_starts, batch_size),
        target_update_interval=PONG.target_update_every,
        learning_rate=PONG.learning_rate,
        gamma=PONG.discount,
        exploration_initial_eps=PONG.epsilon_start,
        exploration_final_eps=PONG.epsilon_end,
        max_grad_norm=PONG.max_grad_norm,
        device=device,
        seed=0,
        **settings,
    )


def sb3_games(plan, environments):
    import ale_py
    import gymnasium
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)
    games = make_atari_env(
        "PongNoFrameskip-v4",
        n_envs=environments,
        seed=0,
        wrapper_kwargs={"screen_size": plan.size},
    )
    return VecFrameStack(games, n_stack=4)


def minibatches(plan, device):
    """{batch size: {contestant: seconds of sample, update and writing back, in each round}}."""
    results = {}
    for batch_size in plan.batches:
        turns = {}
        for name, changes in ways(device).items():
            sample, replay = full_replay(plan, batch_size)
            agent = learner(plan, batch_size, device, changes)

            def step(sample=sample, replay=replay, agent=agent):
                batch = sample()
                replay.update_priorities(batch.indices, agent.update(batch).td_errors)

            turns[name] = seconds(step, plan.minibatches, device)
        if find_spec("stable_baselines3"):
            model = sb3_model(plan, device, batch_size)
            model.learn(model.learning_starts)  # makes what `train` needs
            buffer = model.replay_buffer
            buffer.pos, buffer.full = 0, True  # whatever is in it: the time is the same
            turns[SB3] = seconds(
                lambda model=model, size=batch_size: model.train(1, size), plan.minibatches, device
            )
        results[batch_size] = alternate(turns, plan.rounds)
    return results


def pong_training(plan, device):
    """{contestant: seconds of an agent step of a training, in each round}."""

    def ours(changes):
        config = PONG.replace(
            frame_size=plan.size,
            steps=plan.pong_steps,
            capacity=plan.memory,
            device=device,
            **changes,
        )

        def train_all():
            # As often as in a long training: a short one would measure itself all the time.
            with patch.object(history, "LOG_POINTS", 2):
                train(config, seeds=0)

        return train_all

    def sb3():
        # In each step of all games eight agent steps and two updates
        model = sb3_model(
            plan, device, environments=PONG.environments, train_freq=1, gradient_steps=2
        )
        model.learn(plan.pong_steps)
        model.get_env().close()

    turns = {name: ours(changes) for name, changes in ways(device).items()}
    if find_spec("stable_baselines3"):
        turns[SB3] = sb3
    return alternate(
        {
            name: lambda turn=turn: seconds(turn, 1, device)() / plan.pong_steps
            for name, turn in turns.items()
        },
        plan.rounds,
    )


def parts(plan, device):
    """{batch size: {way: {part: seconds}}} of an update, medians of many."""
    return {
        batch_size: {
            name: parts_of_update(
                learner(plan, batch_size, device, changes),
                full_replay(plan, batch_size)[0](),
                plan.minibatches,
                device,
            )
            for name, changes in ways(device).items()
        }
        for batch_size in plan.batches
    }


def parts_of_update(agent, batch, count, device):
    """{part: seconds}"""
    agent.update(batch)
    tensors = agent._on_device(batch)

    def there():
        agent._on_device(batch)
        finish(device)

    def launched():
        agent._step(tensors)

    return {
        "there": _median(there, count, device),
        "launched": _median(launched, count, device),
        "computed": computed(launched, count, device),
        "all": _median(lambda: agent.update(batch), count, device),
    }


def _median(function, count, device):
    """The median time of a call, which waits for nothing that is still to be done on the device."""
    times = []
    for _ in range(count):
        finish(device)
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    finish(device)
    return statistics.median(times)


def computed(function, count, device):
    """Seconds that the device's kernels take in a call, all together."""
    on_gpu = torch.device(device).type == "cuda"
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity]) as profiled:
        for _ in range(count):
            function()
        finish(device)
    events = profiled.key_averages()
    micros = [
        each.self_device_time_total if on_gpu else each.self_cpu_time_total for each in events
    ]
    return sum(micros) / 1e6 / count


# The report


def report(data):
    """The text of gpu_speed.md."""
    plan = Plan(**data["plan"])
    lines = [
        "# Speed on a GPU",
        "",
        "Written by `make bench ARGS=gpu` (`benchmarks/gpu.py`, which describes the work).",
        f"{plan.rounds} rounds on **{data['device']}**, beside {data['machine']}.",
        "Medians over rounds; for ratios, median and range over the rounds.",
    ]
    if data["uncompiled"]:
        lines += ["", f"Nothing was compiled: {data['uncompiled']}."]
    lines += [
        "",
        "## CartPole, stacks of runs",
        "",
        f"{plan.steps} steps of each run, its start included.",
        "",
        f"| | ms per step of all runs | frames per second | × {SB3} |",
        "|---|--:|--:|--:|",
    ]
    frames = {
        name: [each / int(name.removeprefix(f"{SB3}, ").split()[0]) for each in values]
        for name, values in data["cartpole"].items()
    }
    peer = frames.get(f"{SB3}, 1 run")
    for name, values in frames.items():
        step, frame = statistics.median(data["cartpole"][name]), statistics.median(values)
        lines.append(f"| {name} | {1000 * step:.2f} | {1 / frame:,.0f} | {_times(peer, values)} |")
    lines += [
        "",
        f"## Pong, {plan.size}×{plan.size}: sample, update, write back",
        "",
        f"| minibatch | | ms | × {SB3} |",
        "|--:|---|--:|--:|",
    ]
    for batch_size, found in data["minibatches"].items():
        for name, values in found.items():
            milliseconds = 1000 * statistics.median(values)
            row = (batch_size, name, f"{milliseconds:.2f}", _times(found.get(SB3), values))
            lines.append(f"| {' | '.join(map(str, row))} |")
    lines += [
        "",
        f"## Pong, {plan.size}×{plan.size}: training",
        "",
        f"Eight games feed a run of {plan.pong_steps} steps, its start included; an update of 32 "
        "for every four agent steps.",
        "",
        f"| | agent steps per second | × {SB3} |",
        "|---|--:|--:|",
    ]
    for name, values in data["pong"].items():
        times = _times(data["pong"].get(SB3), values)
        lines.append(f"| {name} | {1 / statistics.median(values):,.0f} | {times} |")
    lines += [
        "",
        "## Where an update's time goes",
        "",
        "In ms, Pong as above: to bring a minibatch there, to launch an update, the sum of what "
        "the kernels compute, and an update from start to end.",
        "",
        "| minibatch | | there | launched | computed | all |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for batch_size, found in data["parts"].items():
        for name, each in found.items():
            numbers = " | ".join(f"{1000 * value:.2f}" for value in each.values())
            lines.append(f"| {batch_size} | {name} | {numbers} |")
    return "\n".join(lines) + "\n"


def _times(peer, values):
    return "·" if peer is None else ratio(peer, values)


def measure(plan, device):
    """All numbers, as they are written to gpu_speed.json."""
    on_gpu = torch.device(device).type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else "no GPU",
        "machine": machine(PACKAGES),
        "uncompiled": why_not_compiled(device),
        "plan": plan._asdict(),
        "cartpole": cartpole(plan, device),
        "minibatches": minibatches(plan, device),
        "pong": pong_training(plan, device),
        "parts": parts(plan, device),
    }


def run(folder, *, quick=False, redraw=False):
    """Measure (or read what was measured) and write the report into `folder`."""
    data = None
    if not redraw:
        if not torch.cuda.is_available() and not quick:
            raise SystemExit("gpu: PyTorch finds no GPU here; --quick tries the code without one")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        data = measure(QUICK if quick else Plan(), device)
    write_report(folder, "gpu_speed", data, report)
