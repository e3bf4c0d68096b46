"""Environments that tell where they are, so that a false transition shows."""

import gymnasium as gym
import numpy as np

LENGTHS = (3, 1, 4, 2)  # steps of an episode, in turn


def episode_length(seed, episode):
    return LENGTHS[(seed + episode) % len(LENGTHS)]


def reward_of(episode, steps):
    """The reward for the step that made it ``steps`` steps in this episode: never 0, never
    twice.
    """
    return 100.0 * (episode + 1) + steps


def episode_return(seed, episode):
    return sum(reward_of(episode, k + 1) for k in range(episode_length(seed, episode)))


def ends_in_termination(episode):
    return episode % 2 == 0  # the others are truncated


class CountingEnv(gym.Env):
    """Observation: episode number, steps done in it, last action (−1 after a reset)."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Discrete(5)

    def __init__(self):
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.seed = seed
        self.episode += 1
        self.steps, self.action = 0, -1
        return self._observation(), {}

    def step(self, action):
        self.steps, self.action = self.steps + 1, action
        assert self.steps <= episode_length(self.seed, self.episode), "a step after the end"
        over = self.steps == episode_length(self.seed, self.episode)
        terminated = over and ends_in_termination(self.episode)
        reward = reward_of(self.episode, self.steps)
        return self._observation(), reward, terminated, over and not terminated, {}

    def _observation(self):
        return np.array([self.episode, self.steps, self.action], dtype=np.float32)


class EndlessEnv(gym.Env):
    """One state, reward 1, and no end but a time limit: every value is 1 / (1 − γ)."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, dtype=np.float32), {}

    def step(self, action):
        return np.ones(1, dtype=np.float32), 1.0, False, False, {}


class SameArray(gym.Env):
    """Shows the step of the episode, always in the same array; ends after 5 steps."""

    action_space = gym.spaces.Discrete(2)
    info = {}

    def __init__(self):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.seen = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen[:] = 0
        return self.seen, self.info

    def step(self, action):
        self.seen += 1
        return self.seen, 1.0, False, bool(self.seen[0] == 5), self.info


COUNTING, ENDLESS = "tests/Counting-v0", "tests/Endless-v0"
gym.register(COUNTING, CountingEnv)
gym.register(ENDLESS, EndlessEnv)


def assert_true_transitions(transitions, seed):
    """The transitions of one `CountingEnv` are what happened in it, all of it and nothing else.

    ``transitions``, in order: (observation, action, reward, next observation, terminated,
    truncated).
    """
    episode, steps, last_action = 0, 0, -1
    for observation, action, reward, next_observation, terminated, truncated in transitions:
        assert tuple(observation) == (episode, steps, last_action)
        steps, last_action = steps + 1, action
        assert tuple(next_observation) == (episode, steps, action)
        assert reward == reward_of(episode, steps)
        over = steps == episode_length(seed, episode)
        assert terminated == (over and ends_in_termination(episode))
        assert truncated == (over and not ends_in_termination(episode))
        if over:
            episode, steps, last_action = episode + 1, 0, -1
    assert episode >= len(LENGTHS), "too short a test"
