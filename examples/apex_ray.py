"""Ape-X on one page: many actors fill one prioritised memory, one learner draws from it, on Ray.

    pip install per_tutorial torch gymnasium ray  # before a release: from the address in the README
    python apex_ray.py --actors 3 --total-updates 3000

    actors ── transitions, each with its own first priority ──▶ memory
       ▲                                                         │  ▲
       │ parameters                                  minibatches │  │ TD errors
       └──────────────────────── learner ◀───────────────────────┘──┘

After Horgan et al. (2018), https://arxiv.org/abs/1803.00933. Every place that differs from an agent
in one process is marked with "APE-X:". Actors, memory and learner are processes that don't wait for
each other, so two runs with the same seed differ.
"""

import argparse
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, fields

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before the import: report nothing

import gymnasium as gym
import numpy as np
import ray
import torch
from torch import nn, optim

from per_tutorial import PrioritizedReplayBuffer


@dataclass
class Args:
    """The settings; each is an option on the command line."""

    env_id: str = "CartPole-v1"
    actors: int = 3  # one CPU each; the memory takes another one
    total_updates: int = 3_000  # of the learner; the actors act until it is done
    seed: int = 1
    address: str = "local"  # of a Ray cluster, such as auto; local starts one on this machine
    base: float = 0.4  # APE-X: actor i of N explores with ε = base^(1 + steepness · i / (N − 1))
    steepness: float = 7.0
    n_step: int = 3
    gamma: float = 0.99
    message_steps: int = 50  # environment steps after which an actor sends what it has
    publish_every: int = 10  # updates after which the learner hands out new parameters
    prefetch: int = 3  # minibatches that the learner requests ahead of their use
    buffer_size: int = 50_000
    learning_starts: int = 1_000  # transitions in the memory
    batch_size: int = 128
    learning_rate: float = 5e-4
    target_frequency: int = 200  # updates between two updates of the target network
    alpha: float = 0.6
    beta: float = 0.4  # constant, as in the paper


def parse_args() -> Args:
    """The settings from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for field in fields(Args):
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(
            name, type=type(field.default), default=field.default, help="%(default)s"
        )
    return Args(**vars(parser.parse_args()))


# What actors and learner both need ----------------------------------------------------------------

COLUMNS = "observations", "actions", "rewards", "next_observations", "terminated", "steps"


class QNetwork(nn.Module):
    """Observations (batch, ...) → the value of every action (batch, actions)."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Flatten(),
            nn.Linear(int(np.prod(env.observation_space.shape)), 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, int(env.action_space.n)),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.network(observations.float())


def td_errors(online: QNetwork, target: QNetwork, transitions: dict, gamma: float) -> torch.Tensor:
    """(batch,) the errors of double Q-learning over as many steps as each transition has."""
    t = {name: torch.tensor(array) for name, array in transitions.items()}
    with torch.no_grad():
        best = online(t["next_observations"]).argmax(dim=1, keepdim=True)
        values = target(t["next_observations"]).gather(1, best).squeeze(1)
        targets = t["rewards"] + gamma ** t["steps"] * values * ~t["terminated"]
    return targets - online(t["observations"]).gather(1, t["actions"][:, None]).squeeze(1)


# The memory ---------------------------------------------------------------------------------------


class Memory:
    """The one prioritised replay memory. What Ray brings is read-only, so it makes copies."""

    def __init__(self, args: Args) -> None:
        self.args, self.added = args, 0
        space = gym.make(args.env_id).observation_space
        self.buffer = PrioritizedReplayBuffer(
            args.buffer_size,
            space.shape,
            observation_dtype=space.dtype,
            action_shape=(2,),  # the action, and beside it the steps of the transition
            alpha=args.alpha,
            seed=args.seed,
        )

    def add(self, transitions: dict, first_errors: np.ndarray) -> int:
        """Store transitions with the priorities that their actor found; how many came so far."""
        t = {name: np.array(column) for name, column in transitions.items()}
        self.buffer.extend(
            t["observations"],
            np.stack([t["actions"], t["steps"]], axis=1),
            t["rewards"],
            t["next_observations"],
            t["terminated"],
            np.zeros(len(first_errors), dtype=bool),  # each stands for itself: nothing goes on
        )
        # Transitions are numbered from 0, in the order of their arrival, for ever.
        ids = np.arange(self.added, self.added + len(first_errors))
        self.added += len(first_errors)
        # APE-X: with the largest priority, as in one process, the newcomers of many actors would
        # take nearly all draws, and no large error would be preferred to a small one.
        self.buffer.update_priorities(ids, np.array(first_errors))
        return self.added

    def sample(self) -> tuple[dict, np.ndarray, np.ndarray] | None:
        """A minibatch, its weights and ids; None while there are too few transitions."""
        if self.added < max(self.args.learning_starts, self.args.batch_size):
            return None
        batch = self.buffer.sample(self.args.batch_size, self.args.beta)
        actions, steps = batch.actions.T
        columns = (batch.observations, actions, *batch[2:5], steps)
        transitions = dict(zip(COLUMNS, columns, strict=True))
        return transitions, batch.weights, batch.indices

    def update(self, ids: np.ndarray, errors: np.ndarray) -> None:
        """New priorities; a transition that was overwritten in the meantime is skipped."""
        self.buffer.update_priorities(np.array(ids), np.array(errors))


# The actors ---------------------------------------------------------------------------------------


class Actor:
    """Acts with parameters that may be old, and sends what it sees straight to the memory."""

    def __init__(self, args: Args, number: int) -> None:
        torch.set_num_threads(1)
        self.args = args
        # APE-X: each actor explores to another degree, and always to the same.
        self.epsilon = args.base ** (1 + args.steepness * number / max(args.actors - 1, 1))
        self.random = np.random.default_rng([args.seed, number])
        self.env = gym.make(args.env_id)
        self.network = QNetwork(self.env)
        self.observation, _ = self.env.reset(seed=int(self.random.integers(2**31)))
        self.window: deque = deque()  # the last steps (observation, action, reward), at most n
        self.episode_return = 0.0

    def act(self, parameters: dict, memory: "ray.actor.ActorHandle") -> tuple[int, list[float]]:
        """Make some steps; how many transitions the memory has seen, and returns of episodes."""
        self.network.load_state_dict(parameters)
        complete, returns = [], []
        for _ in range(self.args.message_steps):
            complete += self.step(returns)
        if not complete:  # fewer steps than n
            return 0, returns
        columns = map(np.array, zip(*complete, strict=True))
        transitions = dict(zip(COLUMNS, columns, strict=True))
        # APE-X: the first priority comes from here. The actor knows Q of these states, and its
        # network takes the place of both the learner's.
        with torch.no_grad():
            errors = td_errors(self.network, self.network, transitions, self.args.gamma)
        # Wait for the answer: otherwise messages would pile up before a slow memory.
        return ray.get(memory.add.remote(transitions, errors.numpy())), returns

    def step(self, returns: list[float]) -> Iterator[tuple]:
        """One step of the environment; the n-step transitions that it completes."""
        if self.random.random() < self.epsilon:
            action = int(self.random.integers(self.env.action_space.n))
        else:
            with torch.no_grad():
                action = int(self.network(torch.as_tensor(self.observation)[None]).argmax())
        following, reward, terminated, truncated, _ = self.env.step(action)
        self.window.append((self.observation, action, float(reward)))
        self.observation = following
        self.episode_return += float(reward)
        over = terminated or truncated
        # At the end of an episode the windows that are still open become shorter transitions.
        while len(self.window) == self.args.n_step or (over and self.window):
            rewards = [reward for _, _, reward in self.window]
            discounted = sum(self.args.gamma**k * reward for k, reward in enumerate(rewards))
            first, chosen, _ = self.window[0]
            yield first, chosen, np.float32(discounted), following, terminated, len(self.window)
            self.window.popleft()
        if over:
            returns.append(self.episode_return)
            self.episode_return = 0.0
            self.observation, _ = self.env.reset()


# The learner --------------------------------------------------------------------------------------


def train(args: Args) -> tuple[QNetwork, int, list[float]]:
    """Train; the network, how many transitions the memory saw, the last actor's returns."""
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    env = gym.make(args.env_id)
    online, target = QNetwork(env), QNetwork(env)
    target.load_state_dict(online.state_dict())
    optimizer = optim.Adam(online.parameters(), lr=args.learning_rate)

    # APE-X: each of these objects lives in a process of its own. An actor that is lost is replaced.
    memory = ray.remote(num_cpus=1)(Memory).remote(args)
    actor_process = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(Actor)
    actors = [actor_process.remote(args, number) for number in range(args.actors)]
    parameters = ray.put(online.state_dict())  # handed out once, and fetched by every actor
    # APE-X: all the work that is under way. Nobody waits for the slowest.
    acting = {actor.act.remote(parameters, memory): actor for actor in actors}
    requested = deque(memory.sample.remote() for _ in range(args.prefetch))

    began, updates, seen, returns = time.time(), 0, 0, []
    while updates < args.total_updates:
        done, _ = ray.wait(list(acting), num_returns=len(acting), timeout=0)
        for reference in done:
            actor = acting.pop(reference)
            added, ended = ray.get(reference)
            seen = max(seen, added)
            if actor is actors[-1]:  # the one that explores least
                returns += ended
            acting[actor.act.remote(parameters, memory)] = actor

        drawn = ray.get(requested.popleft())
        requested.append(memory.sample.remote())
        if drawn is None:  # the actors have only begun
            time.sleep(0.1)
            continue
        transitions, weights, ids = drawn
        errors = td_errors(online, target, transitions, args.gamma)
        loss = (torch.tensor(weights) * errors**2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        optimizer.step()
        # APE-X: no answer is awaited. Minibatches under way were drawn with older priorities.
        memory.update.remote(ids, errors.detach().numpy())
        updates += 1
        if updates % args.publish_every == 0:
            parameters = ray.put(online.state_dict())
        if updates % args.target_frequency == 0:
            target.load_state_dict(online.state_dict())
        if updates % max(1, args.total_updates // 10) == 0:
            recent = np.mean(returns[-10:]) if returns else float("nan")
            drawn_each = updates * args.batch_size / max(seen, 1)
            print(
                f"update {updates:>7}  {seen:>8} transitions, each drawn {drawn_each:5.1f} times  "
                f"return of the last actor {recent:6.1f}  {time.time() - began:5.0f} s"
            )
    return online, seen, returns


def play(args: Args, network: QNetwork, episodes: int = 10) -> float:
    """The mean return of greedy episodes."""
    env, total = gym.make(args.env_id), 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=10_000 + episode)
        over = False
        while not over:
            with torch.no_grad():
                action = int(network(torch.as_tensor(observation)[None]).argmax())
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            over = terminated or truncated
    return total / episodes


if __name__ == "__main__":
    args = parse_args()
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    here = {"num_cpus": args.actors + 1, "_node_ip_address": "127.0.0.1", **quiet}
    ray.init(address=args.address, **(here if args.address == "local" else {}))
    network, _, _ = train(args)
    ray.shutdown()
    print(f"The learner's greedy policy: a mean return of {play(args, network):.1f}.")
