"""DQN with prioritised experience replay on one page: what to change in your own agent.

    pip install per_tutorial torch gymnasium  # before a release: from the address in the README
    python per_dqn.py --env-id CartPole-v1 --total-timesteps 50000 --seed 1

Only the replay buffer is imported; the rest is PyTorch and Gymnasium. Every place that differs from
DQN with uniform replay is marked with "PER:". The marks answer six questions: which buffer, how
strongly priorities count, which β, where the weights enter, where the TD errors are written back,
and in which form. `add` gives new transitions their priority.
"""

import argparse
import random
import time
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import nn, optim

from per_tutorial import PrioritizedReplayBuffer  # PER: in place of a uniform buffer


@dataclass
class Args:
    """The settings; each is an option on the command line."""

    env_id: str = "CartPole-v1"
    total_timesteps: int = 50_000  # of all environments together
    num_envs: int = 1
    seed: int = 1
    learning_rate: float = 2.5e-4
    buffer_size: int = 10_000
    gamma: float = 0.99
    target_frequency: int = 500  # environment steps between updates of the target network
    batch_size: int = 128
    start_epsilon: float = 1.0
    end_epsilon: float = 0.05
    exploration_fraction: float = 0.5  # of all steps, until epsilon reaches its end
    learning_starts: int = 1_000
    train_frequency: int = 4  # environment steps per gradient step
    alpha: float = 0.6  # PER: how strongly priorities count; 0 is uniform replay
    start_beta: float = 0.4  # PER: exponent of the weights; rises to 1 during the training
    device: str = "cpu"


def parse_args() -> Args:
    """The settings from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for field in fields(Args):
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(
            name, type=type(field.default), default=field.default, help="%(default)s"
        )
    return Args(**vars(parser.parse_args()))


class QNetwork(nn.Module):
    """Observations (batch, ...) → the value of every action (batch, actions)."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Flatten(),
            nn.Linear(observations, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, actions),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.network(observations)


def linear(start: float, end: float, fraction: float) -> float:
    """Linear from start to end, and constant afterwards."""
    return start + (end - start) * min(fraction, 1.0)


def train(args: Args) -> tuple[QNetwork, PrioritizedReplayBuffer, list[float]]:
    """Train; returns the network, the buffer, and the returns of all episodes."""
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)

    # Under SAME_STEP, the step that ends an episode returns the first observation of the next one;
    # the true last observation is in infos["final_obs"]. It is a copy, since some environments
    # return the same array every time, and the reset overwrites it.
    envs = gym.make_vec(
        args.env_id,
        num_envs=args.num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        # Some environments return the same array each time, which their reset would overwrite.
        wrappers=[lambda env: gym.wrappers.TransformObservation(env, np.copy, None)],
    )
    space = envs.single_observation_space
    actions_count = int(envs.single_action_space.n)

    q_network = QNetwork(int(np.prod(space.shape)), actions_count).to(device)
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
    target_network = QNetwork(int(np.prod(space.shape)), actions_count).to(device)
    target_network.load_state_dict(q_network.state_dict())

    buffer = PrioritizedReplayBuffer(
        args.buffer_size,
        space.shape,
        observation_dtype=space.dtype,
        discount=args.gamma,  # of the batches' `discounts`
        environments=args.num_envs,  # they take turns below; n-step returns stay within each one
        alpha=args.alpha,  # PER: stored priorities include it, so it stays constant while you train
        seed=args.seed,
    )

    began, returns = time.time(), []
    running_returns = np.zeros(args.num_envs)
    observations, _ = envs.reset(seed=args.seed)
    for step in range(0, args.total_timesteps, args.num_envs):
        epsilon = linear(
            args.start_epsilon,
            args.end_epsilon,
            step / (args.exploration_fraction * args.total_timesteps),
        )
        with torch.no_grad():
            values = q_network(torch.as_tensor(observations, dtype=torch.float32, device=device))
        actions = values.argmax(dim=1).cpu().numpy()
        at_random = np.random.random(args.num_envs) < epsilon
        actions[at_random] = np.random.randint(actions_count, size=at_random.sum())
        following, rewards, terminated, truncated, infos = envs.step(actions)

        for e in range(args.num_envs):
            over = terminated[e] or truncated[e]
            true_next = infos["final_obs"][e] if over else following[e]
            # Only `terminated` says that no value follows; a time limit just ends the episode.
            buffer.add(
                observations[e], actions[e], rewards[e], true_next, terminated[e], truncated[e]
            )
            running_returns[e] += rewards[e]
            if over:
                returns.append(float(running_returns[e]))
                running_returns[e] = 0.0
        observations = following

        for now in range(step, step + args.num_envs):  # one turn per environment step
            if now < max(args.learning_starts, args.batch_size):
                continue
            if now % args.train_frequency == 0:
                beta = linear(args.start_beta, 1.0, now / args.total_timesteps)  # PER: β now
                batch = buffer.sample(args.batch_size, beta)  # PER: uniform replay takes no β
                fields = (*batch[:4], batch.discounts, batch.weights)  # PER: weights go along
                on_device = [torch.as_tensor(field, device=device) for field in fields]
                states, chosen, reward, next_states, discounts, weights = on_device
                with torch.no_grad():
                    best = target_network(next_states.float()).max(dim=1).values
                    targets = reward + discounts * best  # γ, and 0 after a terminal step
                predicted = q_network(states.float()).gather(1, chosen[:, None]).squeeze(1)
                # Of shape (batch,), as the weights are: nothing broadcasts
                td_errors = targets - predicted
                # PER: multiply every squared error by its weight, then take the mean.
                loss = (weights * td_errors**2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                # PER: write the raw TD errors back; the buffer applies |δ|, ε and α.
                buffer.update_priorities(batch.indices, td_errors)
            if now % args.target_frequency == 0:
                target_network.load_state_dict(q_network.state_dict())

        if step // args.num_envs % max(1, args.total_timesteps // args.num_envs // 10) == 0:
            recent = np.mean(returns[-20:]) if returns else float("nan")
            speed = (step + args.num_envs) / (time.time() - began)
            print(f"step {step:>8}  episode return {recent:8.1f}  {speed:7.0f} steps/s")
    envs.close()
    return q_network, buffer, returns


if __name__ == "__main__":
    _, _, returns = train(parse_args())
    if returns:
        print(f"The last {len(returns[-20:])} episodes: a return of {np.mean(returns[-20:]):.1f}.")
