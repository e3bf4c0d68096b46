"""Deep Q-learning with replay (Algorithm 1 of Schaul et al.), for several runs at once."""

import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number
from per_tutorial.common.files import AnyArray, copy_arrays, join_parts, part_of, require_like
from per_tutorial.dqn.callbacks import Callback
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import SAMPLER_SETTINGS, DQNConfig
from per_tutorial.dqn.env_specs import LONGEST_EPISODE, env_spec
from per_tutorial.dqn.environments.gymnasium_envs import Environments
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner, as_batch
from per_tutorial.dqn.networks import LARGEST_SEED, seed_list
from per_tutorial.dqn.threads import one_thread_if_small
from per_tutorial.replay.contracts import Batch, State
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers import SAMPLERS


class Training(NamedTuple):
    """The parts of a training that change; each has a `state`."""

    environments: Environments
    exploration: RandomStreams
    replay: "Replay | OneRun"
    agent: DQNLearner
    history: History

    @property
    def state(self) -> State:
        """A dict of arrays named PART.NAME."""
        return join_parts(**{name: part.state for name, part in self._asdict().items()})

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved `state`. The running episodes count as truncated.

        Raises:
            ValueError: it is not a state of such a training.
        """
        for name in ("replay", "agent", "history", "environments"):
            getattr(self, name).restore(part_of(state, name))
        streams = part_of(state, "exploration")
        require_like(self.exploration.state, streams)
        copy_arrays(self.exploration.state, streams)
        self.replay.truncate_episodes()


class Memory(Protocol):
    """A replay memory of your own, for one run and without an axis of runs.

    `sample` returns what `learner.as_batch` takes. A memory that also has `settings`, `state`,
    `restore` and `truncate_episodes`, like `Replay`, can be written to checkpoints.

    Example:
        >>> import random
        >>> import numpy as np
        >>> from per_tutorial import DQNConfig, train
        >>> class Uniform(list):
        ...     def add(self, *step):
        ...         self.append(step)
        ...     def sample(self, batch_size, beta):
        ...         steps = random.choices(self, k=batch_size)
        ...         return tuple(np.array(field) for field in zip(*steps))[:5]
        ...     def update_priorities(self, indices, td_errors):
        ...         pass
        >>> config = DQNConfig(steps=300, hidden=(16,))
        >>> train(config, seeds=0, replay=Uniform()).step
        300
    """

    def __len__(self) -> int: ...

    def add(
        self,
        observation: NDArray,
        action: np.int64,
        reward: np.float64,
        next_observation: NDArray,
        terminated: np.bool_,
        truncated: np.bool_,
        /,
    ) -> object: ...

    def sample(self, batch_size: int, beta: float, /) -> Any: ...

    def update_priorities(self, indices: NDArray, td_errors: NDArray, /) -> object: ...


class OneRun:
    """A `Memory`, or a `Replay` without an axis of runs, as `train` needs it: with that axis."""

    def __init__(self, memory: Memory) -> None:
        for member in ("__len__", "add", "sample", "update_priorities"):
            if not hasattr(memory, member):
                raise TypeError(f"replay: must have {member}, got {type(memory).__name__}")
        self.memory = memory

    def __len__(self) -> int:
        return len(self.memory)

    def add(self, *fields: NDArray) -> None:
        self.memory.add(*(field[0] for field in fields))

    def sample(self, batch_size: int, beta: float) -> Batch:
        return as_batch(self.memory.sample(batch_size, beta), runs=1)[0]

    def update_priorities(self, indices: NDArray, td_errors: NDArray) -> None:
        self.memory.update_priorities(indices[0], td_errors[0])

    def __getattr__(self, name: str) -> Any:  # a storage and a state, if the memory has them
        return getattr(self.memory, name)


def make_replay(
    config: DQNConfig, observation_shape: tuple[int, ...], seeds: Sequence[int]
) -> Replay:
    """The replay buffer that the settings describe, with one run per seed."""
    runs = len(seeds)
    storage = env_spec(config.env).storage(
        config.capacity,
        observation_shape,
        runs,
        n_step=config.n_step,
        discount=config.discount,
        environments=config.environments,
    )
    settings = {name: getattr(config, name) for name in SAMPLER_SETTINGS[config.sampler]}
    if config.alpha is None:
        settings.pop("alpha", None)  # the sampler's own
    return Replay(storage, SAMPLERS[config.sampler](config.capacity, seeds, **settings), runs)


def train(  # noqa: C901  (Algorithm 1 in one place)
    config: DQNConfig,
    seeds: int | Iterable[int] = range(10),
    *,
    replay: Replay | Memory | None = None,
    learner: type[DQNLearner] | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoints: Checkpoints | None = None,
) -> History:
    """Train one agent per seed, side by side.

    Each run draws all its random numbers from its own seed. Its results are the same bit for bit
    beside any other seeds, on one kind of processor and with equally many runs. Beside another
    number of runs, matrix products may be rounded otherwise, and training amplifies the difference:
    to repeat a run exactly, train as many runs again.

    In a notebook or another interactive session, an interrupted training warns and returns the
    `History` of what it has done; `history.step` says how far it came. In a script, Ctrl-C raises
    KeyboardInterrupt as usual.

    Args:
        config: a `DQNConfig`.
        seeds: ints, one run each; a single int is one run.
        replay: in place of the memory that ``config`` describes, a `Replay` for as many runs, whose
            n-step returns have the length and the discount of ``config``; or, for one run, a
            `Memory` of your own. It may hold transitions already; episodes that were not over are
            then truncated.
        learner: the class of the agent, such as one with another loss or network; None:
            `DQNLearner`.
        callbacks: functions called with the `History` whenever measurements were written, the last
            time at the end, such as a progress bar or a live plot. If ``checkpoints`` hold a
            finished training, they are called once.
        checkpoints: `Checkpoints` to continue from and to write, for long trainings.

    Returns:
        A `History`; its `agent` is the trained `DQNLearner`.

    Raises:
        ValueError: the environment cannot be made, two seeds are the same, ``replay`` does not fit
            ``config`` or ``learner``, there would be no update, or the checkpoints are those of
            another training.
        TypeError: ``replay`` lacks a method.

    Example:
        >>> from per_tutorial import DQNConfig, evaluate, train
        >>> config = DQNConfig(sampler="proportional", steps=600, learning_starts=100, hidden=(16,))
        >>> history = train(config, seeds=range(3))  # three agents of CartPole, side by side
        >>> evaluate(history.agent, episodes=2).shape
        (3, 2)
    """
    seeds = seed_list(seeds)
    environments = env_spec(config.env).module.training_environments(config, seeds)
    with closing(environments), one_thread_if_small(config):
        agent = (learner or DQNLearner)(
            config, environments.observation_shape, environments.actions, seeds
        )
        agent.first_action = environments.first_action
        if replay is None:
            replay = make_replay(config, environments.observation_shape, seeds)
        memory = _checked_memory(replay, agent)
        axes = replay.storage.leading_axes if isinstance(replay, Replay) else (1,)
        exploration = RandomStreams(seeds, "exploration")
        history = History(config, seeds, getattr(memory, "settings", {}))
        history.agent = agent
        training = Training(environments, exploration, memory, agent, history)
        if checkpoints is not None:
            checkpoints.restore(training)
        if hasattr(memory, "truncate_episodes"):
            memory.truncate_episodes()  # those of an earlier training
        if history.step == config.steps:  # of a finished one
            for callback in callbacks:
                callback(history)

        with _stopped_by_the_user(history):
            for t in range(history.step, config.steps, config.environments):
                observation = environments.observation
                action = epsilon_greedy(agent, observation, config.epsilon(t), exploration)
                step = environments.step(action)
                reward = step.reward
                if config.terminal_reward is not None:  # to learn from, not in the returns
                    reward = np.where(step.terminated, config.terminal_reward, reward)
                ends = step.terminated, step.truncated
                fields = (observation, action, reward, step.next_observation, *ends)
                memory.add(*(field.reshape(axes + field.shape[1:]) for field in fields))
                history.record_step(environments.finished)

                for k in range(t, t + config.environments):  # each environment has made one step
                    if len(memory) >= config.learning_starts and k % config.update_every == 0:
                        batch = memory.sample(config.batch_size, config.beta(k))
                        update = agent.update(batch, config.step_size(k))
                        memory.update_priorities(batch.indices, update.td_errors)
                        history.record_update(batch, update)

                if history.log_is_due:
                    history.log(memory)
                    for callback in callbacks:
                        callback(history)
                if checkpoints is not None:
                    checkpoints.save_if_due(training)
    return history


@contextmanager
def _stopped_by_the_user(history: History) -> Iterator[None]:
    """In an interactive session, an interrupt ends the block with a warning."""
    try:
        yield
    except KeyboardInterrupt:
        if not hasattr(sys, "ps1"):  # a script: nobody is there to see what the training has
            raise
        history.drop_unfinished_row()
        warnings.warn(
            f"stopped after {history.step:,} of {history.config.steps:,} steps", stacklevel=4
        )
    else:
        if history.agent.updates == 0:  # a memory of one's own may forget too soon
            warnings.warn("no update: replay never held learning_starts transitions", stacklevel=4)


def _checked_memory(replay: Replay | Memory, agent: DQNLearner) -> Replay | OneRun:
    """A memory as `train` needs it; ValueError if it does not fit the learner and its settings."""
    config, runs = agent.config, len(agent.seeds)
    memory = replay if isinstance(replay, Replay) and replay.runs is not None else OneRun(replay)
    if isinstance(memory, OneRun) and (runs, config.environments) != (1, 1):
        raise ValueError(
            "replay: must be for one run and one environment without an axis of runs, "
            f"got {runs} and {config.environments}"
        )
    if isinstance(replay, Replay):
        agent.check_partner(replay.sampler)
        settings = {
            "runs": runs,
            "environments": config.environments,
            "n_step": config.n_step,
            "discount": config.discount,
        }
        for name, wanted in settings.items():
            if (own := getattr(replay.storage, name)) != wanted:
                raise ValueError(
                    f"replay: must have the {name} of this training ({wanted}), got {own}"
                )
    _check_that_it_learns(memory, config)
    return memory


def _check_that_it_learns(memory: Replay | OneRun, config: DQNConfig) -> None:
    """Raise ValueError if no step of the training would have an update."""
    starts, every, together = config.learning_starts, config.update_every, config.environments
    if (capacity := getattr(memory, "capacity", starts)) < starts:
        raise ValueError(
            f"replay: must hold learning_starts ({starts}) transitions, got {capacity}"
        )
    rounds = math.ceil((starts - len(memory)) / together)  # until the memory is large enough
    first = max(0, rounds - 1) * together
    least = math.ceil(first / every) * every + 1
    if config.steps < least:
        raise ValueError(
            f"steps: must be at least {least} for an update, with learning_starts ({starts}) and "
            f"update_every ({every}), got {config.steps}"
        )


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

    Atari games are played to their end in Gymnasium's own pipeline, with unclipped scores. An
    episode that does not end in `LONGEST_EPISODE` steps is stopped, with a warning, unless
    ``max_episode_steps`` is larger.

    Args:
        agent: a `DQNLearner`.
        episodes: per run.
        seed: seed of the first environment of the run with seed 0. Each run has ``episodes``
            consecutive seeds, followed by those of the run with the next seed, so a run gets the
            same episodes beside any others. Only the first episode of each environment counts.
        max_episode_steps: time limit; None for the one that the agent was trained under.
        epsilon: share of random actions. None: 0.01 in Atari games, where a policy may otherwise
            loop forever, and 0 elsewhere.

    Raises:
        ValueError: the environment cannot be made, or the agent is one for other observations or
            actions.

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
    seed = whole_number("seed", seed, minimum=0, maximum=LARGEST_SEED)
    first_seeds = [seed + own * episodes for own in agent.seeds]
    seeds = [first + k for first in first_seeds for k in range(episodes)]
    made = spec.module.evaluation_environments(config, seeds)
    with closing(made) as environments, one_thread_if_small(config):
        _check_fit(agent, environments)
        exploration = RandomStreams(first_seeds, "evaluation")
        limit = max(LONGEST_EPISODE, config.max_episode_steps or 0)
        returns = np.zeros(len(seeds))
        running = np.ones(len(seeds), dtype=bool)
        steps = 0
        while running.any() and steps != limit:
            action = epsilon_greedy(agent, environments.observation, epsilon, exploration)
            step = environments.step(action)
            returns += step.reward * running
            running &= ~(step.terminated | step.truncated)
            steps += 1
    if running.any():
        warnings.warn(
            f"{running.sum()} of {len(running)} episodes did not end in {steps:,} steps and were "
            "stopped; give max_episode_steps",
            stacklevel=2,
        )
    return returns.reshape(len(agent.seeds), episodes)


def _check_fit(agent: DQNLearner, environments: Environments) -> None:
    """Raise ValueError unless the agent's network is for these observations and actions."""
    inputs = env_spec(agent.config.env).network_inputs
    seen, shown = agent.observation_shape, environments.observation_shape
    if (inputs(seen), agent.actions) != (inputs(shown), environments.actions):
        raise ValueError(
            f"agent: must be for observations {shown} and {environments.actions} actions, as in "
            f"{agent.config.env!r}, got one for {seen} and {agent.actions}"
        )
