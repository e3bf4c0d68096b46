"""Speed on a GPU, in one visit of fifteen minutes; Stable-Baselines3's DQN beside.

    make bench ARGS=gpu

In turn, until `--minutes` are over: the tests for a GPU (`tests`); sample, update and write-back
for Pong, 84×84 pixels (`minibatches`); short trainings of Pong (`pong`) and of CartPole
(`cartpole`); the notebooks 03 and 05 in full (`pages`, which need all that `[notebooks]` has);
and Pong until it wins by 18 points (`pong_to_18`). Each part writes its result as it ends.

All contestants of a part take turns, round after round; ratios are taken within a round
(`benchmarks/harness.py`). The network is that of Mnih et al. (2015); Stable-Baselines3's has no
priorities. The memory is on the host, and its frames are noise. In trainings of Pong eight games
feed a run, with an update of 32 for every four agent steps.

It needs a GPU that PyTorch knows as "cuda". Without one it measures nothing, but for `--quick`,
which tries the code on the processor.
"""

import functools
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from benchmarks import training
from benchmarks.harness import ROOT, alternate, machine, timed, write
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
    update_every=4,
    target_update_every=1000,
    tau=1.0,
    learning_rate=1e-4,
    epsilon_start=0.05,
)
WAYS = {"as it is": {}, "compiled": {"compiled": True}}  # changes to the settings
WON = 18  # points, the mean of the last games
GAMES = 20


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
    pages: tuple[str, ...] = ("03", "05")
    whole: int = 480_000  # steps of Pong, unless it has won before


QUICK = Plan((1, 3), 100, (32,), 36, 128, 2, 64, 1, pages=(), whole=160)


def seconds(function, calls, device, parts=None):
    """A function that calls one, waits for the device, and returns the seconds of a part.

    Args:
        parts: how many equal parts the calls have; None: each call is one.
    """

    def work():
        for _ in range(calls):
            function()
        if device == "cuda":
            torch.cuda.synchronize()

    return timed(work, parts or calls)


# (a) and (d): the tests, and the pages ------------------------------------------------------------


def command(arguments, left):
    """What a Python module, run as a command, says last, its exit status and its seconds."""
    start = time.perf_counter()
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    environment.pop("PER_TUTORIAL_FAST", None)
    ran = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=environment,
        timeout=left,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    took = round(time.perf_counter() - start, 1)
    print(ran.stdout, flush=True)
    return {"status": ran.returncode, "seconds": took, "says": ran.stdout.splitlines()[-3:]}


def tests(plan, device, left, folder):
    """The tests that need a GPU; without one pytest leaves them out."""
    return command(["pytest", "-q", "-p", "no:cacheprovider", "tests/dqn/test_gpu.py"], left)


def pages(plan, device, left, folder):
    """{notebook: what running it in full said}; the notebook with its outputs is in ``folder``."""
    start, found = time.perf_counter(), {}
    for number in plan.pages:
        (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
        run = ["nbconvert", "--to", "notebook", "--execute", "--output-dir", str(folder), str(path)]
        found[path.stem] = command(run, left - (time.perf_counter() - start))
    return found


# (b): sample, update, write back ------------------------------------------------------------------


def full_replay(plan):
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
    return replay


def sb3_model(plan, device, batch_size=32, environments=1, **settings):
    """Stable-Baselines3's DQN with the settings of `PONG`."""
    import ale_py
    import gymnasium
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)
    screen = {"screen_size": plan.size}
    games = make_atari_env("PongNoFrameskip-v4", environments, seed=0, wrapper_kwargs=screen)
    return DQN(
        "CnnPolicy",
        VecFrameStack(games, n_stack=4),
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


def minibatches(plan, device, left, folder):
    """{batch size: {contestant: seconds of sample, update and writing back, in each round}}."""
    replay, results = full_replay(plan), {}
    for batch_size in plan.batches:
        turns = {}
        for name, changes in WAYS.items():
            starts = max(PONG.learning_starts, batch_size)
            config = PONG.replace(
                frame_size=plan.size,
                batch_size=batch_size,
                learning_starts=starts,
                device=device,
                **changes,
            )
            agent = DQNLearner(config, (4, plan.size, plan.size), 6, seeds=[0])

            def step(agent=agent, batch_size=batch_size):
                batch = replay.sample(batch_size)
                replay.update_priorities(batch.indices, agent.update(batch).td_errors)

            turns[name] = seconds(step, plan.minibatches, device)
        if find_spec("stable_baselines3"):
            model = sb3_model(plan, device, batch_size)
            model.learn(model.learning_starts)  # makes what `train` needs
            buffer = model.replay_buffer
            buffer.pos, buffer.full = 0, True  # whatever is in it: the time is the same
            their_step = functools.partial(model.train, 1, batch_size)
            turns[SB3] = seconds(their_step, plan.minibatches, device)
        results[batch_size] = alternate(turns, plan.rounds)
    return results


# (c): short trainings -----------------------------------------------------------------------------


def pong(plan, device, left, folder):
    """{contestant: seconds of an agent step of a training, in each round}.

    Of those after the first ``plan.pong_steps``, in which games start and graphs are recorded.
    """

    def ours(changes, steps):
        config = PONG.replace(
            frame_size=plan.size,
            steps=steps,
            capacity=plan.memory,
            device=device,
            **changes,
        )
        # As often as in a long training: a short one would measure itself all the time.
        with patch.object(history, "LOG_POINTS", 2):
            train(config, seeds=0)

    def theirs(steps):
        # In each step of all games eight agent steps and two updates
        model = sb3_model(plan, device, environments=8, train_freq=1, gradient_steps=2)
        model.learn(steps)
        model.get_env().close()

    def pace(train_steps):
        short, long = (
            seconds(functools.partial(train_steps, count * plan.pong_steps), 1, device)()
            for count in (1, 3)
        )
        return (long - short) / (2 * plan.pong_steps)

    trainings = {name: functools.partial(ours, changes) for name, changes in WAYS.items()}
    if find_spec("stable_baselines3"):
        trainings[SB3] = theirs
    turns = {name: functools.partial(pace, training) for name, training in trainings.items()}
    return alternate(turns, plan.rounds)


def cartpole(plan, device, left, folder):
    """{contestant: seconds of a step of all its runs, in each round}."""
    turns = {}
    if find_spec("stable_baselines3"):
        theirs = functools.partial(training.stable_baselines3, plan.steps, device)
        turns[f"{SB3}, 1 run"] = theirs
    for runs in plan.stacks:
        for name, changes in WAYS.items():
            ours = training.ours(runs, "proportional", device=device, **changes)
            contestant = f"{runs} run{'s' if runs > 1 else ''}, {name}"
            turns[contestant] = functools.partial(ours, plan.steps)
    turns = {name: seconds(turn, 1, device, plan.steps) for name, turn in turns.items()}
    return alternate(turns, plan.rounds)


# (e): until it wins -------------------------------------------------------------------------------


class Over(Exception):
    """The training has won, or its time is over."""


def pong_to_18(plan, device, left, folder):
    """{"curve": [seconds, step, mean return of the last games], "won": whether it has won}.

    The settings are those of the study `pong`, whose frames have 42×42 pixels.
    """
    from per_tutorial.studies.declared import STUDIES

    config = STUDIES["pong"].arms["per"].replace(device=device, steps=plan.whole, compiled=True)
    if device == "cpu":  # where the code is only tried
        config = config.replace(capacity=plan.memory, learning_starts=plan.memory)
    start, curve = time.perf_counter(), []

    def clock(record):
        returns = [episode_return for _, _, episode_return, _ in record.episodes[-GAMES:]]
        mean = float(np.mean(returns)) if len(returns) == GAMES else None
        took = round(time.perf_counter() - start, 1)
        curve.append([took, record.step, mean])
        if took > left or (mean is not None and mean >= WON):
            raise Over

    try:
        train(config, seeds=0, callbacks=[clock])
    except Over:
        pass
    return {"curve": curve, "won": curve[-1][2] is not None and curve[-1][2] >= WON}


# {name: a function of the plan, the device, the seconds left, and a folder for its files}
PARTS = {
    "tests": tests,
    "minibatches": minibatches,
    "pong": pong,
    "cartpole": cartpole,
    "pages": pages,
    "pong_to_18": pong_to_18,
}


def run(folder, *, quick=False, minutes=14):
    """Measure what the time allows, and write each part's result into gpu.json as it ends.

    A part that fails is told in its place, and the next one begins.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not quick:
        raise SystemExit("gpu: PyTorch finds no GPU here; --quick tries the code without one")
    plan = QUICK if quick else Plan()
    end = time.perf_counter() + 60 * minutes
    card = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    found = {"device": card, "machine": machine(PACKAGES), "plan": plan._asdict()}
    for name, part in PARTS.items():
        left = end - time.perf_counter()
        if left <= 0:
            break
        try:
            found[name] = part(plan, device, left, folder)
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"}
        write(folder, "gpu", found)
        print(f"{name}: {found[name]}", flush=True)
