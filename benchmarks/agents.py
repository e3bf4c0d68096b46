"""What PER costs in Stable-Baselines3's agents: a training step and a minibatch of frames.

    make bench ARGS=agents

A *training step* is `train(1)`: a minibatch is drawn, the network moves, and with PER the TD errors
are written back. Both agents have the same network, memory and minibatch, and take turns, one step
each. Pictures are 84×84×4 bytes; buffers hold the same 8,000 transitions, in SB3's own form and in
that of `FrameReplayBuffer`, which keeps each frame once.

Times are of the processor, so that other programs disturb them less.
"""

import time
import warnings

import numpy as np
import torch

from benchmarks.harness import alternate, machine

PACKAGES = ("torch", "numpy", "numba", "gymnasium", "stable-baselines3")
BATCHES = (32, 256)
FRAMES = (4, 84, 84)


def agents(steps):
    """{name: an agent whose memory holds ``steps`` transitions of CartPole}."""
    from stable_baselines3 import DQN

    from per_tutorial.integrations.sb3 import PrioritizedDQN

    found = {}
    for name, agent in {"SB3's DQN": DQN, "with PER": PrioritizedDQN}.items():
        model = agent(
            "MlpPolicy",
            "CartPole-v1",
            seed=1,
            learning_starts=10**9,  # nothing is learned while the memory is filled
            buffer_size=100_000,
            device="cpu",
        )
        found[name] = model.learn(steps)
    return found


def pictures(steps):
    """{name: a buffer that holds the same ``steps`` transitions of random frames}."""
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer

    from per_tutorial.integrations.sb3 import FrameReplayBuffer, PrioritizedReplayBuffer

    kinds = {
        "SB3's ReplayBuffer": ReplayBuffer,
        "PrioritizedReplayBuffer": PrioritizedReplayBuffer,
        "FrameReplayBuffer": FrameReplayBuffer,
    }
    box, discrete = spaces.Box(0, 255, FRAMES, np.uint8), spaces.Discrete(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so many frames need much memory
        buffers = {name: kind(steps, box, discrete, "cpu") for name, kind in kinds.items()}
    random = np.random.default_rng(0)
    blank = np.zeros((1, *FRAMES), np.uint8)
    observation = blank
    for step in range(steps):
        frame = random.integers(0, 256, (1, 1, *FRAMES[1:]), np.uint8)
        following = np.concatenate((observation[:, 1:], frame), axis=1)
        done = np.array([step % 200 == 199])
        for buffer in buffers.values():
            buffer.add(observation, following, np.zeros(1, int), np.zeros(1), done, [{}])
        observation = np.concatenate((blank[:, 1:], frame), axis=1) if done else following
    return buffers


def measure(quick):
    """``seconds`` is a list of (what, batch size, {name: processor seconds of each call})."""
    torch.set_num_threads(1)

    def timed(function, *arguments):
        def measured():
            start = time.process_time()
            function(*arguments)
            return round(time.process_time() - start, 7)

        return measured

    models = agents(500 if quick else 20_000)
    buffers = pictures(300 if quick else 8_000)
    results = []
    for batch in BATCHES:
        steps = {name: timed(model.train, 1, batch) for name, model in models.items()}
        samples = {name: timed(buffer.sample, batch) for name, buffer in buffers.items()}
        results += [
            ("training step", batch, alternate(steps, 20 if quick else 1_500)),
            ("minibatch of frames", batch, alternate(samples, 5 if quick else 200)),
        ]
    return {"machine": machine(PACKAGES), "seconds": results}
