"""Deep Q-learning with replay (Algorithm 1 of Schaul et al.), for a stack of runs at once."""

import numpy as np

from per_tutorial.checks import whole_number
from per_tutorial.environments import make_environments
from per_tutorial.history import History
from per_tutorial.learner import DQNLearner
from per_tutorial.random_streams import RandomStreams, seeds_for
from per_tutorial.replay import make_replay


def train(config, seeds=range(10), *, replay=None, watchers=()):
    """Train one agent per seed, side by side; each depends on no seed but its own.

    Args:
        config: a `DQNConfig`.
        seeds: ints, one run each; a single int is one run.
        replay: a `Replay` for as many runs, in place of the one that ``config`` describes. If it
            sums the rewards of several steps, then with the discount of ``config``.
        watchers: functions called with the `History` whenever measurements were written and at the
            end, such as a progress bar or a live plot.

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
    batch = update = None

    for t in range(config.steps):
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
            history.record_update(update)

        if history.log_is_due:
            history.log(replay, batch, update)
            for watcher in watchers:
                watcher(history)
    environments.close()
    return history


def epsilon_greedy(agent, observations, epsilon, streams):
    """One action per run, (runs,): random with probability ε, else that of the largest Q."""
    q_values = agent.q_values(observations[:, None])[:, 0]
    explore, choice = streams.uniform(2).T
    random_actions = (choice * q_values.shape[1]).astype(np.int64)
    return np.where(explore < epsilon, random_actions, q_values.argmax(axis=1))


def evaluate(agent, episodes=10, *, seed=10_000):
    """Returns of the greedy policy, (runs, episodes), on new episodes of its environment.

    Args:
        agent: a `DQNLearner`.
        episodes: per run.
        seed: of the environments of a run whose own seed is 0, the next ``episodes`` numbers belong
            to seed 1, and so on, so that a run is given the same episodes in any stack. The first
            episode of each environment counts.
    """
    episodes = whole_number("episodes", episodes)
    runs = len(agent.seeds)
    environments = make_environments(
        agent.config.env,
        [seed + own * episodes + k for own in agent.seeds for k in range(episodes)],
        max_episode_steps=agent.config.max_episode_steps,
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
    seeds = seeds_for(seeds, len(seeds))
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: must differ from one another, got {seeds}")
    return seeds
