"""Deep Q-learning with replay (Algorithm 1 of Schaul et al.), for a stack of runs at once."""

from typing import NamedTuple

import numpy as np

from per_tutorial.checks import whole_number
from per_tutorial.environments import Environments, make_environments
from per_tutorial.files import part_of
from per_tutorial.history import History
from per_tutorial.learner import DQNLearner
from per_tutorial.random_streams import RandomStreams
from per_tutorial.replay import Replay, make_replay


class Training(NamedTuple):
    """What changes while a training runs. Every part has a `state`, a dict of arrays, to go on from."""

    environments: Environments
    exploration: RandomStreams
    replay: Replay
    agent: DQNLearner
    history: History

    @property
    def state(self):
        """A dict of arrays named PART.NAME."""
        parts = self._asdict().items()
        return {f"{one}.{name}": array for one, part in parts for name, array in part.state.items()}

    def restore(self, state):
        """Go on from what `state` gave. Episodes that cannot go on are cut: they count as truncated."""
        episodes_go_on = self.environments.restore(part_of(state, "environments"))
        for name in ("exploration", "replay", "agent", "history"):
            getattr(self, name).restore(part_of(state, name))
        if not episodes_go_on:
            self.replay.storage.cut()
            self.history.cut()


def train(config, seeds=range(10), *, replay=None, watchers=(), checkpoints=None):
    """Train one agent per seed, side by side; each depends on no seed but its own.

    Args:
        config: a `DQNConfig`.
        seeds: ints, one run each; a single int is one run.
        replay: a `Replay` for as many runs, in place of the one that ``config`` describes. If it
            sums the rewards of several steps, then with the discount of ``config``.
        watchers: functions called with the `History` whenever measurements were written and at the
            end, such as a progress bar or a live plot.
        checkpoints: `Checkpoints` to continue from and to write, for a training that takes long.

    Returns:
        A `History`; its `agent` is the trained `DQNLearner`.
    """
    seeds = _seed_list(seeds)
    environments = make_environments(
        config.env,
        seeds,
        max_episode_steps=config.max_episode_steps,
        vectorization=config.vectorization,
    )
    agent = DQNLearner(config, environments.observation_shape, environments.actions, seeds)
    if replay is None:
        replay = make_replay(config, environments.observation_shape, seeds)
    storage = replay.storage
    if storage.n_step > 1 and storage.discount != config.discount:
        raise ValueError(
            f"replay: must discount rewards like config ({config.discount}), got {storage.discount}"
        )
    exploration = RandomStreams(seeds, "exploration")
    history = History(config, seeds)
    history.agent = agent
    training = Training(environments, exploration, replay, agent, history)
    if checkpoints is not None:
        checkpoints.restore(training)

    for t in range(history.step, config.steps):
        observation = environments.observation
        action = epsilon_greedy(agent, observation, config.epsilon(t), exploration)
        step = environments.step(action)
        reward = step.reward
        if config.terminal_reward is not None:
            reward = np.where(step.terminated, config.terminal_reward, reward)
        replay.add(
            observation,
            action,
            reward,
            step.next_observation,
            step.terminated,
            step.truncated,
            valid=step.valid,
        )
        history.record_step(step)

        if len(replay) >= config.learning_starts and t % config.update_every == 0:
            batch = replay.sample(config.batch_size, config.beta(t))
            update = agent.update(batch, config.step_size(t))
            replay.update_priorities(batch.indices, update.td_errors)
            history.record_update(batch, update)

        if history.log_is_due:
            history.log(replay)
            for watcher in watchers:
                watcher(history)
        if checkpoints is not None:
            checkpoints.save_if_due(training)
    environments.close()
    return history


def epsilon_greedy(agent, observations, epsilon, streams):
    """One action per run, (runs,): random with probability ε, else that of the largest Q."""
    q_values = agent.q_values(observations[:, None])[:, 0]
    explore, choice = streams.uniform(2).T
    random_actions = (choice * q_values.shape[1]).astype(np.int64)
    return np.where(explore < epsilon, random_actions, q_values.argmax(axis=1))


def evaluate(agent, episodes=10, *, seed=10_000, max_episode_steps=None):
    """Returns of the greedy policy, (runs, episodes), on new episodes of its environment.

    Args:
        agent: a `DQNLearner`.
        episodes: per run.
        seed: of the environments of a run whose own seed is 0, the next ``episodes`` numbers belong
            to seed 1, and so on, so that a run is given the same episodes in any stack. The first
            episode of each environment counts.
        max_episode_steps: time limit; None for the one that the agent was trained under.
    """
    if max_episode_steps is None:
        max_episode_steps = agent.config.max_episode_steps
    else:
        max_episode_steps = whole_number("max_episode_steps", max_episode_steps)
    episodes = whole_number("episodes", episodes)
    runs = len(agent.seeds)
    environments = make_environments(
        agent.config.env,
        [seed + own * episodes + k for own in agent.seeds for k in range(episodes)],
        max_episode_steps=max_episode_steps,
    )
    returns = np.zeros(runs * episodes)
    running = np.ones(runs * episodes, dtype=bool)
    while running.any():
        observations = environments.observation
        q_values = agent.q_values(observations.reshape(runs, episodes, *observations.shape[1:]))
        step = environments.step(q_values.argmax(axis=-1).reshape(-1))
        returns += step.reward * running
        running &= ~(step.terminated | step.truncated)
    environments.close()
    return returns.reshape(runs, episodes)


def _seed_list(seeds):
    seeds = [seeds] if isinstance(seeds, (int, np.integer)) else list(seeds)
    if not seeds:
        raise ValueError("seeds: at least one is needed, got none")
    seeds = [whole_number("seeds", seed, minimum=0) for seed in seeds]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: must differ from one another, got {seeds}")
    return seeds
