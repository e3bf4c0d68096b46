"""Deep Q-learning with replay (Algorithm 1 of Schaul et al.), for a stack of runs at once."""

from typing import NamedTuple

import numpy as np

from per_tutorial.common.arguments import real_number, whole_number
from per_tutorial.common.files import part_of
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.worlds.atari import FRAME_SKIP, make_atari_environments, make_atari_references
from per_tutorial.dqn.worlds.environments import Environments, make_environments
from per_tutorial.replay.buffers import Replay, make_replay
from per_tutorial.replay.random_streams import RandomStreams


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
    environments = _environments(config, seeds)
    agent = DQNLearner(config, environments.observation_shape, environments.actions, seeds)
    if replay is None:
        replay = make_replay(config, environments.observation_shape, seeds)
    storage = replay.storage
    if storage.n_step > 1 and storage.discount != config.discount:
        raise ValueError(
            f"replay: must discount rewards like config ({config.discount}), got {storage.discount}"
        )
    if storage.environments != config.environments:
        raise ValueError(
            f"replay: must be fed by as many environments as config says ({config.environments}), "
            f"got {storage.environments}"
        )
    exploration = RandomStreams(seeds, "exploration")
    history = History(config, seeds)
    history.agent = agent
    training = Training(environments, exploration, replay, agent, history)
    if checkpoints is not None:
        checkpoints.restore(training)

    for t in range(history.step, config.steps, config.environments):
        observation = environments.observation
        action = epsilon_greedy(agent, observation, config.epsilon(t), exploration)
        step = environments.step(action)
        reward = step.reward
        if config.terminal_reward is not None:
            reward = np.where(step.terminated, config.terminal_reward, reward)
        ends = (step.terminated, step.truncated)
        transition = (observation, action, reward, step.next_observation, *ends)
        replay.add(*map(storage.by_run, transition), valid=step.valid)
        history.record_step(environments.finished)

        for k in range(t, t + config.environments):  # each environment has made one step
            if len(replay) >= config.learning_starts and k % config.update_every == 0:
                batch = replay.sample(config.batch_size, config.beta(k))
                update = agent.update(batch, config.step_size(k))
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
    """Actions, (environments,): random with probability ε, else that of the largest Q.

    Of the observations (environments, *shape) every run has as many, those of the first run first.
    """
    runs = len(streams.states)
    q_values = agent.q_values(observations.reshape(runs, -1, *observations.shape[1:]))
    _, each, actions = q_values.shape
    draws = streams.uniform(2 * each).reshape(runs, each, 2)
    random_actions = (draws[..., 1] * actions).astype(np.int64)
    return np.where(draws[..., 0] < epsilon, random_actions, q_values.argmax(axis=-1)).reshape(-1)


def evaluate(agent, episodes=10, *, seed=10_000, max_episode_steps=None, epsilon=None):
    """Returns of the (nearly) greedy policy, (runs, episodes), on new episodes of its environment.

    Atari games are played to their end, their scores left as they are, in Gymnasium's own pipeline.

    Args:
        agent: a `DQNLearner`.
        episodes: per run.
        seed: of the environments of a run whose own seed is 0, the next ``episodes`` numbers belong
            to seed 1, and so on, so that a run is given the same episodes in any stack. The first
            episode of each environment counts.
        max_episode_steps: time limit; None for the one that the agent was trained under.
        epsilon: share of random actions. None: 0.01 in Atari games, where a policy may otherwise
            repeat itself without end, and 0 elsewhere.
    """
    episodes = whole_number("episodes", episodes)
    config = agent.config
    if max_episode_steps is not None:
        config = config.replace(max_episode_steps=max_episode_steps)
    if epsilon is None:
        epsilon = 0.01 if config.from_pixels else 0.0
    epsilon = real_number("epsilon", epsilon, 0, 1)
    first_seeds = [seed + own * episodes for own in agent.seeds]
    seeds = [first + k for first in first_seeds for k in range(episodes)]
    if config.from_pixels:
        environments = make_atari_references(config.env, seeds, **_atari_options(config))
    else:
        environments = make_environments(
            config.env, seeds, max_episode_steps=config.max_episode_steps
        )
    exploration = RandomStreams(first_seeds, "evaluation")
    returns = np.zeros(len(seeds))
    running = np.ones(len(seeds), dtype=bool)
    while running.any():
        action = epsilon_greedy(agent, environments.observation, epsilon, exploration)
        step = environments.step(action)
        returns += step.reward * running
        running &= ~(step.terminated | step.truncated)
    environments.close()
    return returns.reshape(len(agent.seeds), episodes)


def _environments(config, seeds):
    """The environments to train in, ``config.environments`` for each seed."""
    if config.from_pixels:
        options = _atari_options(config)
        return make_atari_environments(config.env, config.environments, seeds, **options)
    return make_environments(
        config.env,
        seeds,
        max_episode_steps=config.max_episode_steps,
        vectorization=config.vectorization,
    )


def _atari_options(config):
    options = {"size": config.frame_size, "sticky_actions": config.sticky_actions}
    if config.max_episode_steps is not None:
        options["max_frames"] = FRAME_SKIP * config.max_episode_steps
    return options


def _seed_list(seeds):
    seeds = [seeds] if isinstance(seeds, (int, np.integer)) else list(seeds)
    if not seeds:
        raise ValueError("seeds: at least one is needed, got none")
    seeds = [whole_number("seeds", seed, minimum=0) for seed in seeds]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: must differ from one another, got {seeds}")
    return seeds
