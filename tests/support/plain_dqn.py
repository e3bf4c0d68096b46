"""Deep Q-learning with prioritised replay, plainly: one agent, lists and loops.

The twin that the learning side is compared with. It follows Algorithm 1 of Schaul et al. (2016) one
transition at a time, with PyTorch's own layers, losses, clipping and optimiser. Initial weights,
settings and random numbers are handed in. The one thing of the package in here is its learner,
widened to the twin's precision for the comparison.
"""

import copy
import math
from collections import deque

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn.functional import huber_loss, smooth_l1_loss

from per_tutorial.dqn.learner import DQNLearner


class DoublePrecisionLearner(DQNLearner):
    """With 64 bits, a difference to the twin is one of meaning, not of rounding."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.online.double()
        self.target.double()
        for moments in self.optimizer.moments:
            moments.update({name: tensor.double() for name, tensor in moments.items()})

    def _observations(self, observations):
        found = super()._observations(observations)
        return found.to(next(self.online.parameters()).dtype)


class PlainQNetwork(nn.Module):
    """The Q-network of one agent, in double precision; starts as run ``run`` of a stacked one."""

    def __init__(self, stacked, run):
        super().__init__()
        *hidden, last = stacked.layers
        self.hidden = nn.ModuleList(_linear(layer.weight[run], layer.bias[run]) for layer in hidden)
        self.dueling = stacked.dueling
        if self.dueling:
            self.value = _linear(last.weight[run, :, :1], last.bias[run, :, :1])
            self.advantage = _linear(last.weight[run, :, 1:], last.bias[run, :, 1:])
        else:
            self.output = _linear(last.weight[run], last.bias[run])

    def forward(self, observation):
        features = torch.as_tensor(observation, dtype=torch.float64)
        for layer in self.hidden:
            features = torch.relu(layer(features))
        if not self.dueling:
            return self.output(features)
        advantages = self.advantage(features)
        return self.value(features) + (advantages - advantages.mean(-1, keepdim=True))


def _linear(weight, bias):
    """`nn.Linear` with the given weight (inputs, outputs) and bias (1, outputs)."""
    layer = nn.Linear(*weight.shape, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight.T)
        layer.bias.copy_(bias[0])
    return layer


class PlainLearner:
    """Online network, target network and optimiser of one agent."""

    def __init__(self, config, network):
        self.config = config
        self.online = network
        self.target = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
        self.updates = 0

    def target_of(self, reward, next_observation, terminated, discount):
        """r if the episode is over, else r + γ^k · (what the target network says is still to come).

        ``reward`` is the discounted sum of k rewards, and ``discount`` is γ^k.
        """
        reward, discount = np.float32([reward, discount]).tolist()  # as the package's batches
        if terminated:
            return torch.tensor(reward, dtype=torch.float64)
        with torch.no_grad():
            values = self.target(next_observation)
            if self.config.double:
                value = values[self.online(next_observation).argmax()]
            else:
                value = values.max()
        return reward + discount * value

    def loss_of(self, q_value, target):
        """PyTorch's Huber loss or ½δ²; if δ is clipped, with a straight line from there on."""
        limit, kappa = self.config.td_error_clip, self.config.kappa
        if self.config.loss == "huber" and limit is None and kappa == 1:
            return smooth_l1_loss(q_value, target)
        if self.config.loss == "huber":
            return huber_loss(q_value, target, delta=min(kappa, limit or kappa))
        if limit is None:
            return 0.5 * (target - q_value) ** 2
        return huber_loss(q_value, target, delta=limit)

    def update(self, transitions, weights, step_size=None):
        """One gradient step; returns the TD errors and the loss."""
        td_errors, losses = [], []
        for transition, weight in zip(transitions, weights, strict=True):
            observation, action, reward, next_observation, terminated, discount = transition
            target = self.target_of(reward, next_observation, terminated, discount)
            q_value = self.online(observation)[action]
            td_errors.append((target - q_value).item())
            losses.append(float(weight) * self.loss_of(q_value, target))
        loss = sum(losses) / len(losses)
        limit = self.config.td_error_clip
        if limit is not None:
            td_errors = [max(-limit, min(td_error, limit)) for td_error in td_errors]

        self.optimizer.zero_grad()
        loss.backward()
        if self.config.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.online.parameters(), self.config.max_grad_norm)
        if step_size is not None:
            self.optimizer.param_groups[0]["lr"] = step_size
        self.optimizer.step()

        self.updates += 1
        if self.updates % self.config.target_update_every == 0:
            tau = self.config.tau
            with torch.no_grad():
                for old, new in zip(
                    self.target.parameters(), self.online.parameters(), strict=True
                ):
                    old.copy_((1 - tau) * old + tau * new)
        return np.array(td_errors), float(loss.detach())


class PlainReplay:
    """The last ``capacity`` transitions, each with its priority, in a list. Drawing is O(N).

    With n-step returns, the last n transitions of the episode that goes on are in a queue as well:
    they still grow with every step. ``draw`` returns the next random number in [0, 1).
    """

    def __init__(self, config, draw):
        self.config, self.draw = config, draw
        self.slots = []  # [number, transition, priority]
        self.growing = deque(maxlen=config.n_step)
        self.added = 0
        self.largest_priority = 1.0

    def add(self, observation, action, reward, next_observation, terminated, truncated):
        self.growing.append([observation, action, 0.0, None, None, 1.0])
        for transition in self.growing:
            discount = transition[5]
            transition[2] += discount * reward
            transition[3:] = next_observation, terminated, discount * self.config.discount
        entry = [self.added, self.growing[-1], self.largest_priority]
        if terminated or truncated:
            self.growing.clear()
        if len(self.slots) < self.config.capacity:
            self.slots.append(entry)
        else:
            self.slots[self.added % self.config.capacity] = entry
        self.added += 1

    def sample(self, batch_size, beta):
        """Entries and their importance-sampling weights."""
        if self.config.sampler == "uniform":
            chosen = [int(self.draw() * len(self.slots)) for _ in range(batch_size)]
            return [self.slots[i] for i in chosen], [1.0] * batch_size
        scaled = [priority**self.config.alpha for _, _, priority in self.slots]
        total = math.fsum(scaled)
        chosen = []
        for k in range(batch_size):
            wanted = (k + self.draw()) / batch_size * total
            i = 0
            while wanted >= scaled[i]:
                wanted -= scaled[i]
                i += 1
            chosen.append(i)
        weights = [(len(self.slots) * scaled[i] / total) ** -beta for i in chosen]
        return [self.slots[i] for i in chosen], [weight / max(weights) for weight in weights]

    def update(self, entries, td_errors):
        for entry, td_error in zip(entries, td_errors, strict=True):
            entry[2] = abs(td_error) + self.config.priority_epsilon
            self.largest_priority = max(self.largest_priority, entry[2])


def plain_train(config, seed, network, draw_exploration, memory):
    """Algorithm 1 with one agent and its `PlainReplay`.

    Returns the learner, the list of actions, and for each update the numbers of the replayed
    transitions and their TD errors.
    """
    env = gym.make(config.env, max_episode_steps=config.max_episode_steps)
    learner = PlainLearner(config, network)
    actions, replayed, td_errors = [], [], []

    def line(start, end, share):
        return start + (end - start) * min(share, 1.0)

    observation, _ = env.reset(seed=seed)
    for t in range(config.steps):
        explore, choice = draw_exploration(), draw_exploration()
        decayed = t / config.epsilon_steps
        if explore < line(config.epsilon_start, config.epsilon_end, decayed):
            action = int(choice * env.action_space.n)
        else:
            action = int(learner.online(observation).argmax())
        next_observation, reward, terminated, truncated, _ = env.step(action)
        if terminated and config.terminal_reward is not None:
            reward = config.terminal_reward
        memory.add(observation, action, reward, next_observation, terminated, truncated)
        observation = env.reset()[0] if terminated or truncated else next_observation
        actions.append(action)

        if len(memory.slots) >= config.learning_starts and t % config.update_every == 0:
            beta = line(config.beta_start, config.beta_end, t / config.steps)
            entries, weights = memory.sample(config.batch_size, beta)
            step_size = line(config.learning_rate, config.learning_rate_end, t / config.steps)
            weights = np.float32(weights)  # as a batch of the package reaches its network
            found, _ = learner.update([entry[1] for entry in entries], weights, step_size)
            memory.update(entries, found)
            replayed.append([entry[0] for entry in entries])
            td_errors.append(found)
    env.close()
    return learner, actions, replayed, td_errors
