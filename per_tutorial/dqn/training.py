"""Deep Q-learning with replay (Algorithm 1 of Schaul et al.), for a stack of runs at once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number
from per_tutorial.common.files import join_parts, part_of
from per_tutorial.dqn.callbacks import Callback
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.environments.gymnasium_envs import Environments
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.networks import LARGEST_SEED
from per_tutorial.dqn.states import State, checked_state
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers import SAMPLERS, settings_from
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.rows import TransitionStorage

STORAGES: dict[str, type] = {"transitions": TransitionStorage, "frames": FrameStorage}


class Training(NamedTuple):
    """The parts of a training that change; each can continue from its `state`."""

    environments: Environments
    exploration: RandomStreams
    replay: Replay
    agent: DQNLearner
    history: History

    @property
    def state(self) -> State:
        """A dict of arrays named PART.NAME."""
        return join_parts(**{name: part.state for name, part in self._asdict().items()})

    def check(self, state: State) -> None:
        """Raise ValueError unless `restore` accepts this state."""
        for name, part in self._asdict().items():
            arrays = part_of(state, name)
            if hasattr(part, "schema"):
                arrays = checked_state(arrays, part.schema)
            if hasattr(part, "check"):
                part.check(arrays)

    def restore(self, state: State) -> None:
        """Continue from a saved `state`. Episodes that cannot continue count as truncated.

        Raises:
            ValueError: it is not a state of such a training, which is then unchanged.
        """
        self.check(state)
        episodes_go_on = self.environments.restore(part_of(state, "environments"))
        for name in ("exploration", "replay", "agent", "history"):
            getattr(self, name).restore(part_of(state, name))
        if not episodes_go_on:
            self.replay.truncate_episodes()


class Checkpointer(Protocol):
    """What saves a training at intervals, such as `Checkpoints`."""

    def resolve_auto(self, config: DQNConfig) -> DQNConfig:
        """The settings, with "auto" replaced by what the saved training chose."""

    def restore(self, training: Training) -> None:
        """Continue the training from what was saved, if anything was."""

    def save_if_due(self, training: Training) -> None:
        """Save the training if it is due. Called after every step."""


def train(  # noqa: C901  (Algorithm 1 in one place)
    config: DQNConfig,
    seeds: int | Iterable[int] = range(10),
    *,
    replay: Replay | None = None,
    learner: type[DQNLearner] | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoints: Checkpointer | None = None,
) -> History:
    """Train one agent per seed, side by side.

    Each run depends only on its own seed, unless ``vectorization`` shares a generator. What a
    setting of "auto" becomes is printed, and is in ``agent.config``.

    Args:
        config: a `DQNConfig`.
        seeds: ints, one run each; a single int is one run.
        replay: a `Replay` for as many runs, in place of the one that ``config`` describes. Its
            n-step returns must have the discount of ``config``.
        learner: the class of the agent, such as one with another loss; None: `DQNLearner`.
        callbacks: functions called with the `History` whenever measurements were written, the last
            time at the end, such as a progress bar or a live plot.
        checkpoints: `Checkpoints` to continue from and to write, for long trainings.

    Returns:
        A `History`; its `agent` is the trained `DQNLearner`.

    Raises:
        ValueError: the environment cannot be made, two seeds are the same, ``replay`` does not fit
            ``config``, or the checkpoints are those of another training.

    Example:
        >>> from per_tutorial import DQNConfig, evaluate, train
        >>> config = DQNConfig(sampler="proportional", steps=600, learning_starts=100, hidden=(16,))
        >>> history = train(config, seeds=range(3))  # three agents of CartPole, side by side
        >>> evaluate(history.agent, episodes=2).shape
        (3, 2)
    """
    seeds = _seed_list(seeds)
    if checkpoints is not None:
        config = checkpoints.resolve_auto(config)
    environments = env_spec(config.env).module().training_environments(config, seeds)
    agent = (learner or DQNLearner)(
        config, environments.observation_shape, environments.actions, seeds
    )
    for line in agent.choices:
        print(line)
    config = agent.config  # with these choices
    if replay is None:
        replay = make_replay(config, environments.observation_shape, seeds)
    storage = replay.storage
    if storage.n_step > 1 and storage.discount != config.discount:
        raise ValueError(
            f"replay: must discount rewards like config ({config.discount}), got {storage.discount}"
        )
    if storage.environments != config.environments:
        raise ValueError(
            f"replay: must have config's number of environments ({config.environments}), "
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
        reward = step.learned_reward(config.terminal_reward)
        ends = step.terminated, step.truncated
        fields = (observation, action, reward, step.next_observation, *ends)
        replay.add(*with_axes(storage.leading_axes, fields), valid=step.valid)
        history.record_step(environments.finished)

        for k in range(t, t + config.environments):  # each environment has made one step
            if len(replay) >= config.learning_starts and k % config.update_every == 0:
                batch = replay.sample(config.batch_size, config.beta(k))
                update = agent.update(batch, config.step_size(k))
                replay.update_priorities(batch.indices, update.td_errors)
                history.record_update(batch, update)

        if history.log_is_due:
            history.log(replay)
            for callback in callbacks:
                callback(history)
        if checkpoints is not None:
            checkpoints.save_if_due(training)
    environments.close()
    return history


def make_replay(
    config: DQNConfig, observation_shape: tuple[int, ...], seeds: Sequence[int]
) -> Replay:
    """The replay buffer that the settings describe, with one run per seed."""
    store, draw = STORAGES[config.storage], SAMPLERS[config.sampler]
    storage = store(config.capacity, observation_shape, len(seeds), **settings_from(config, store))
    return Replay(storage, draw(config.capacity, seeds, **settings_from(config, draw)), len(seeds))


def with_axes(axes: tuple[int, ...], fields: Iterable[NDArray]) -> Iterator[NDArray]:
    """The fields, with ``axes`` in place of their first axis, that of all environments."""
    return (field.reshape(axes + field.shape[1:]) for field in fields)


def epsilon_greedy(
    agent: DQNLearner, observations: NDArray, epsilon: float, streams: RandomStreams
) -> NDArray[np.int64]:
    """Actions, (environments,): random with probability ε, else that of the largest Q.

    Observations are (environments, *shape), equally many per run, those of the first run first.
    """
    runs = len(streams.states)
    q_values = agent.q_values(observations.reshape(runs, -1, *observations.shape[1:]))
    _, each, actions = q_values.shape
    draws = streams.uniform(2 * each).reshape(runs, each, 2)
    random_actions = (draws[..., 1] * actions).astype(np.int64)
    return np.where(draws[..., 0] < epsilon, random_actions, q_values.argmax(axis=-1)).reshape(-1)


def evaluate(
    agent: DQNLearner,
    episodes: int = 10,
    *,
    seed: int = 10_000,
    max_episode_steps: int | None = None,
    epsilon: float | None = None,
) -> NDArray[np.float64]:
    """Returns of the (nearly) greedy policy, (runs, episodes), on new episodes of its environment.

    Atari games are played to their end in Gymnasium's own pipeline, with unclipped scores.

    Args:
        agent: a `DQNLearner`.
        episodes: per run.
        seed: seed of the first environment of the run with seed 0. Each run has ``episodes``
            consecutive seeds, followed by those of the run with the next seed, so a run gets the
            same episodes in any stack. Only the first episode of each environment counts.
        max_episode_steps: time limit; None for the one that the agent was trained under.
        epsilon: share of random actions. None: 0.01 in Atari games, where a policy may otherwise
            loop forever, and 0 elsewhere.

    Raises:
        ValueError: the environment does not fit the agent, or cannot be made.

    Example:
        >>> from per_tutorial import DQNConfig, DQNLearner, evaluate
        >>> novice = DQNLearner(DQNConfig(), (4,), actions=2, seeds=[0])
        >>> evaluate(novice, episodes=3).shape  # one run, three episodes
        (1, 3)
    """
    episodes = whole_number("episodes", episodes)
    config = agent.config
    if max_episode_steps is not None:
        config = config.replace(max_episode_steps=max_episode_steps)
    spec = env_spec(config.env)
    if epsilon is None:
        epsilon = spec.evaluation_epsilon
    epsilon = real_number("epsilon", epsilon, 0, 1)
    first_seeds = [seed + own * episodes for own in agent.seeds]
    seeds = [first + k for first in first_seeds for k in range(episodes)]
    environments = spec.module().evaluation_environments(config, seeds)
    _check_fit(agent, environments)
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


def _check_fit(agent: DQNLearner, environments: Environments) -> None:
    """Raise ValueError if the agent's network is for other observations or actions."""
    inputs = env_spec(agent.config.env).network_inputs
    seen, shown = agent.observation_shape, environments.observation_shape
    if inputs(seen) != inputs(shown) or agent.actions != environments.actions:
        environments.close()
        raise ValueError(
            f"agent: expects observations of the shape {seen} and {agent.actions} actions, "
            f"but {agent.config.env!r} has {shown} and {environments.actions}"
        )


def _seed_list(seeds: int | Iterable[int]) -> list[int]:
    given = [seeds] if isinstance(seeds, (int, np.integer)) else list(seeds)
    if not given:
        raise ValueError("seeds: at least one is needed, got none")
    checked = [whole_number("seeds", seed, minimum=0, maximum=LARGEST_SEED) for seed in given]
    if len(set(checked)) < len(checked):
        raise ValueError(f"seeds: must differ from one another, got {checked}")
    return checked
