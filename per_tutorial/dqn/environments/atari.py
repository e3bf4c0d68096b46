"""Atari 2600 games, the way DQN plays them (Mnih et al. 2015; notebook 05).

Two pipelines make the agent's observations. Training uses ale-py's C++ `AtariVectorEnv`, many games
at once (`training_environments`). Explanations and evaluations use Gymnasium's wrappers, which can
be read, inspected and rendered (`make_atari_env`). Both repeat an action for 4 frames, take the
maximum of the last two, shrink it to 84×84 in grey, and show the last 4 such frames. For the same
actions they give the same frames, bit for bit. They differ from each other, or from their defaults,
in this:

- **Start.** Both press FIRE for one frame if the game has that button, then do nothing for a random
  number of frames, each drawn from its own generator. Including FIRE, the C++ pipeline plays
  max(1, U) frames before the first observation, Gymnasium's 1 + U', with U uniform in 0 … 29 and U'
  in 1 … 30 (without the button: U and U').
- **Time limit.** 108,000 frames end a game in both; only Gymnasium's counts those of the start.
- **Padding.** Frames before a game's first are black; Gymnasium's default repeats the first one.
- **Lives.** `AtariVectorEnv(episodic_life=True)` starts a new game whenever a life is lost, so an
  agent sees only first lives, and with `life_loss_info=True` the last observation of a life is
  missing. Here the emulators play whole games, and `AtariEnvironments` makes each life an episode:
  it is terminated while the game goes on, without another FIRE but with a new stack. An episode of
  `make_atari_env` is a game, since the score of a game is what counts.
- **Rewards** are clipped to [−1, 1] for learning, but not in scores or in `make_atari_env`.

This is what wrappers usually do with the v4 environments (`PongNoFrameskip-v4`). `ALE/Pong-v5` in
Gymnasium has sticky actions (0.25), which repeat the previous action now and then: do not compare
scores of the two.
"""

import difflib
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments.gymnasium_envs import Environments, Step
from per_tutorial.replay.random_streams import seeds_for

FRAME_SKIP = 4  # frames in a step
MAX_FRAMES = 108_000  # half an hour of play


class AtariEnvironments(Environments):
    """Games whose steps are transitions; with ``episodic_life``, each life is an episode.

    Attributes:
        observation: what the agents see now, (environments, stack, size, size) uint8.
        finished: the games, not the lives, that ended with the last step, as (environment, score in
            the game's own points, steps).
    """

    def __init__(
        self,
        vector_env: gym.vector.VectorEnv,
        seeds: Any,
        *,
        episodic_life: bool,
        clip_rewards: bool,
    ) -> None:
        super().__init__(vector_env, seeds)
        self.episodic_life = episodic_life
        self.clip_rewards = clip_rewards

    def _begin(self, seeds: Any) -> None:
        # The emulators take seeds of 31 bits, and no list.
        super()._begin((np.asarray(seeds, dtype=np.uint32) >> 1).astype(np.int32))
        count = self.vector_env.num_envs
        self._lives = np.zeros(count, dtype=np.int32)  # not known before the first step
        self._depths = np.ones(count, dtype=np.int64)  # frames of each stack that are not padding

    def _transitions(
        self,
        observation: NDArray,
        reward: NDArray,
        terminated: NDArray,
        truncated: NDArray,
        info: dict[str, Any],
    ) -> Step:
        step = super()._transitions(observation, reward, terminated, truncated, info)
        over = terminated | truncated
        # Some games show 0 lives for a moment before they are over: that is one end, not two.
        lost = (info["lives"] < self._lives) & (info["lives"] > 0) & ~over & self.episodic_life
        self._lives = info["lives"]

        stack = self.observation_shape[0]
        self._depths = np.minimum(self._depths + 1, stack)
        for row in np.flatnonzero(self._depths < stack):
            step.next_observation[row, : stack - self._depths[row]] = 0
        ended = over | lost
        if ended.any():
            self.observation = np.where(
                over[:, None, None, None], self.observation, step.next_observation
            )
            self.observation[lost, :-1] = 0
            self._depths[ended] = 1
        reward = reward.astype(np.float32)
        return step._replace(
            reward=reward.clip(-1, 1) if self.clip_rewards else reward, terminated=terminated | lost
        )


def make_atari_games(
    game: str,
    count: int,
    seeds: int | Sequence[int],
    *,
    size: int = 84,
    stack: int = 4,
    noop_max: int = 30,
    episodic_life: bool = True,
    clip_rewards: bool = True,
    max_frames: int = MAX_FRAMES,
) -> AtariEnvironments:
    """`AtariEnvironments`: ``count`` for each run, those of the first run first.

    Args:
        game, size, stack, noop_max, max_frames: as in `make_atari_env`.
        count: environments for each run.
        seeds: ints, one run each, or a single int. An environment depends on its run's seed alone.
        episodic_life: whether an episode ends when a life is lost.
        clip_rewards: whether rewards are clipped to [−1, 1]; scores never are.
    """
    rom = _game(game).kwargs["game"]
    count, size = whole_number("count", count), whole_number("size", size)
    from ale_py.vector_env import AtariVectorEnv

    # With consecutive seeds, a run's second game would be the next run's first.
    game_seeds = np.concatenate(
        [
            np.random.SeedSequence(seed).generate_state(count)
            for seed in seeds_for(seeds, np.size(seeds))
        ]
    )
    vector_env = AtariVectorEnv(
        rom,
        len(game_seeds),
        img_height=size,
        img_width=size,
        stack_num=whole_number("stack", stack),
        noop_max=whole_number("noop_max", noop_max, minimum=0),
        reward_clipping=False,
        repeat_action_probability=0.0,
        max_num_frames_per_episode=whole_number("max_frames", max_frames),
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    return AtariEnvironments(
        vector_env, game_seeds, episodic_life=episodic_life, clip_rewards=clip_rewards
    )


class FireReset(gym.Wrapper):
    """Press FIRE for one frame after a reset: some games wait for it."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        self.env.reset(seed=seed, options=options)
        fire = self.get_wrapper_attr("get_action_meanings")().index("FIRE")
        observation, _, _, _, info = self.env.step(fire)
        return observation, info


def make_atari_env(
    game: str,
    *,
    size: int = 84,
    stack: int = 4,
    noop_max: int = 30,
    max_frames: int = MAX_FRAMES,
    render_mode: str | None = None,
) -> gym.Env:
    """One game as a Gymnasium environment, made of Gymnasium's own wrappers.

    Its rewards are not clipped, its episodes are whole games, and its actions are not sticky.

    Args:
        game: any game of ale-py: "Pong", "MsPacman" or "ms_pacman", or an id such as "ALE/Pong-v5",
            in which only the game's name counts.
        size: height and width of a frame in pixels; 84 as in the paper, smaller is faster.
        stack: frames in an observation.
        noop_max: a game begins with a random number of frames, at most this.
        max_frames: frames after which a game is truncated.
        render_mode: "rgb_array" renders the coloured screen.

    Raises:
        ImportError: ale-py is missing.
        ValueError: there is no such game, or a number is out of its range.

    Example:
        >>> from per_tutorial import make_atari_env
        >>> game = make_atari_env("Pong", size=42)
        >>> observation, facts = game.reset(seed=0)
        >>> observation.shape
        (4, 42, 42)
    """
    env = gym.make(
        _game(game).id,
        frameskip=1,  # `AtariPreprocessing` skips
        repeat_action_probability=0.0,
        max_num_frames_per_episode=whole_number("max_frames", max_frames),
        render_mode=render_mode,
    )
    if "FIRE" in env.get_wrapper_attr("get_action_meanings")():
        env = FireReset(env)
    env = gym.wrappers.AtariPreprocessing(
        env,
        noop_max=whole_number("noop_max", noop_max, minimum=0),
        screen_size=whole_number("size", size),
    )
    return gym.wrappers.FrameStackObservation(
        env, whole_number("stack", stack), padding_type="zero"
    )


def training_environments(config: DQNConfig, seeds: Sequence[int]) -> AtariEnvironments:
    """``config.environments`` for each seed, with clipped rewards and lives as episodes."""
    return make_atari_games(config.env, config.environments, seeds, **_game_options(config))


def evaluation_environments(config: DQNConfig, seeds: Sequence[int]) -> Environments:
    """One game for each seed, in Gymnasium's own pipeline: `make_atari_env`, side by side."""
    make = partial(make_atari_env, config.env, **_game_options(config))
    games = SyncVectorEnv([make] * len(seeds), autoreset_mode=AutoresetMode.SAME_STEP)
    return Environments(games, list(seeds))


def film_environment(config: DQNConfig) -> gym.Env:
    """A game that renders its coloured screen."""
    return make_atari_env(config.env, **_game_options(config), render_mode="rgb_array")


def _game_options(config: DQNConfig) -> dict[str, Any]:
    """The arguments of a game that these settings choose, of both pipelines."""
    options = {"size": config.frame_size}
    if config.max_episode_steps is not None:
        options["max_frames"] = FRAME_SKIP * config.max_episode_steps
    return options


def _game(name: str) -> gym.envs.registration.EnvSpec:
    """Gymnasium's registration of a game, or a ValueError with the closest names."""
    try:
        import ale_py
    except ImportError as error:
        raise ImportError('Atari games need ale-py: pip install "per_tutorial[atari]"') from error
    gym.register_envs(ale_py)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Warning)  # no greeting with every game
    if not isinstance(name, str):
        raise TypeError(f"game: must be a name, got {name!r}")
    specs = {spec.name.lower(): spec for spec in gym.registry.values() if spec.namespace == "ALE"}
    key = re.sub(r"^ALE/|(NoFrameskip)?-v\d+$", "", name).replace("_", "").lower()
    if key not in specs:
        close = [specs[match].name for match in difflib.get_close_matches(key, specs, n=3)]
        hint = f", did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(f"game: no game {name!r}{hint}")
    return specs[key]
