"""Made-up episodes for buffers of Stable-Baselines3, and what a minibatch of them must be."""

import numpy as np
from gymnasium import spaces

ACTIONS = spaces.Discrete(5)
VECTORS = spaces.Box(-1e6, 1e6, (3,), np.float32)


class Episodes:
    """Steps of several environments at once, some of which end; remembers all of them.

    Args:
        buffer: that they are added to.
        stack: None for observations that count up; or how many frames (2, 3) a picture has, whose
            first stack is filled up with "black", the "first" frame, or "noise".
    """

    def __init__(self, buffer, seed=0, ends=0.3, stack=None, fill="black"):
        self.buffer = buffer
        self.random = np.random.default_rng(seed)
        self.ends, self.stack, self.fill = ends, stack, fill
        self.count = 0
        self.steps = []
        self.now = np.array([self.begin() for _ in range(buffer.n_envs)])

    def begin(self):
        if self.stack is None:
            return self.vector()
        stack = self.random.integers(1, 256, (self.stack, 5, 6), np.uint8)
        if self.fill != "noise":
            stack[:-1] = 0 if self.fill == "black" else stack[-1]
        return stack

    def vector(self):
        self.count += 1
        return np.array([self.count, -self.count, 0.5], np.float32)

    def follow(self, observation):
        if self.stack is None:
            return self.vector()
        frame = self.random.integers(1, 256, (1, 5, 6), np.uint8)
        return np.concatenate((observation[1:], frame))

    def add(self, steps=1):
        """Add some steps; returns self."""
        environments = self.buffer.n_envs
        for _ in range(steps):
            following = np.array([self.follow(each) for each in self.now])
            ended = self.random.random(environments) < self.ends
            timeouts = ended & (self.random.random(environments) < 0.5)
            step = {
                "observation": self.now.copy(),
                "next": following.copy(),
                "action": self.random.integers(0, 5, environments),
                "reward": self.random.normal(size=environments).astype(np.float32),
                "done": ended,
                "timeout": timeouts,
            }
            self.steps.append(step)
            self.buffer.add(
                self.shown(step["observation"]),
                self.shown(step["next"]),
                step["action"],
                step["reward"],
                ended,
                [{"TimeLimit.truncated": bool(timeout)} for timeout in timeouts],
            )
            begun = [self.begin() if over else None for over in ended]
            self.now = np.array(
                [following[e] if one is None else one for e, one in enumerate(begun)]
            )
        return self

    def shown(self, observations):
        """Observations as the space of the buffer has them."""
        if isinstance(self.buffer.observation_space, spaces.Dict):
            return {"all": observations, "first": observations[:, :1]}
        return observations

    def expected(self, number, reward=lambda r: r):
        """(observation, action, return, next observation, done, γ^k) of a transition, step
        by step.
        """
        step, environment = divmod(int(number), self.buffer.n_envs)
        first, total, factor = self.steps[step], 0.0, 1.0
        for k in range(self.buffer.n_steps):
            here = self.steps[step + k]
            total += factor * reward(here["reward"][environment])
            factor *= self.buffer.gamma
            if here["done"][environment] or step + k + 1 == len(self.steps):
                break
        done = here["done"][environment] and not here["timeout"][environment]
        return (
            first["observation"][environment],
            first["action"][environment],
            total,
            here["next"][environment],
            float(done),
            factor,
        )

    def assert_right(self, batch, reward=lambda r: r):
        """Every transition of a minibatch is as it was added."""
        oldest = (len(self.steps) - self.buffer.buffer_size) * self.buffer.n_envs
        is_dict = isinstance(batch.observations, dict)
        observations = batch.observations["all"] if is_dict else batch.observations
        nexts = batch.next_observations["all"] if is_dict else batch.next_observations
        if is_dict:
            assert (batch.observations["first"] == observations[:, :1]).all()
            assert (batch.next_observations["first"] == nexts[:, :1]).all()
        for k, number in enumerate(batch.indices):
            assert number >= oldest
            observation, action, total, following, done, factor = self.expected(number, reward)
            np.testing.assert_array_equal(observations[k].numpy(), observation)
            np.testing.assert_array_equal(nexts[k].numpy(), following)
            assert batch.actions[k].item() == action
            np.testing.assert_allclose(batch.rewards[k].item(), total, rtol=1e-5, atol=1e-6)
            assert batch.dones[k].item() == done
            if batch.discounts is not None:
                np.testing.assert_allclose(batch.discounts[k].item(), factor, rtol=1e-6)


def assert_same_batches(one, other, batch_size=300):
    """Two buffers draw the same minibatch; both get the same TD errors for it."""
    first, second = one.sample(batch_size), other.sample(batch_size)
    for name, ours, twins in zip(first._fields, first, second, strict=True):
        if ours is not None:
            np.testing.assert_array_equal(ours, twins, err_msg=name)
    for name in ("indices", "weights", "probabilities"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    errors = np.random.default_rng(0).normal(size=batch_size)
    one.update_priorities(first.indices, errors)
    other.update_priorities(first.indices, errors)
