"""Training speed: frames per second, ours beside Stable-Baselines3's and tianshou's DQN.

    make bench ARGS=training

All contestants do the same work: CartPole-v1, a 128-128 network, minibatches of 32, an update at
every frame, ε = 0.05, one environment a run. They take turns, round after round; ratios are taken
within a round (`benchmarks/harness.py`). One *frame* is one environment step of one run.
"""

import functools
from unittest.mock import patch

from benchmarks.harness import alternate, machine, timed
from per_tutorial import DQNConfig, train
from per_tutorial.dqn import history

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


# {name: (function of the steps of each run, how many times fewer steps are enough)}
CONTESTANTS = {
    "Stable-Baselines3 DQN, 1 run": (stable_baselines3, 1),
    "tianshou DQN + PER, 1 run": (tianshou, 2),
    "1 run, uniform": (ours(1, "uniform"), 1),
    "1 run, proportional": (ours(1, "proportional"), 1),
    "10 runs, uniform": (ours(10, "uniform"), 1),
    "10 runs, proportional": (ours(10, "proportional"), 1),
    "100 runs, uniform": (ours(100, "uniform"), 6),
    "100 runs, proportional": (ours(100, "proportional"), 6),
}


def measure(quick):
    """``seconds`` is {contestant: seconds of a step, a frame of each of its runs, each round}."""
    steps, rounds = (400, 1) if quick else (3_000, 5)
    turns = {
        name: timed(functools.partial(train_steps, steps // fewer), steps // fewer)
        for name, (train_steps, fewer) in CONTESTANTS.items()
    }
    return {
        "machine": machine(PACKAGES),
        "steps": steps,
        "rounds": rounds,
        "seconds": alternate(turns, rounds),
    }
