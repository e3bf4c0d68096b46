"""Atari 2600 games, the way DQN plays them (Mnih et al. 2015; notebook 05).

Two pipelines make the agent's observations. Training uses ale-py's C++ `AtariVectorEnv`, many games
at once (`training_environments`). Evaluations and films use Gymnasium's wrappers, which can be read
and rendered (`make_atari_env`). Both repeat an action for 4 frames, take the maximum of the last
two, shrink it to 84×84 in grey, and show the last 4 such frames. For the same actions they give the
same frames, bit for bit. They differ from each other, or from their defaults, in this:

- **Start.** Both press FIRE for one frame if the game has that button, then do nothing for a random
  number of frames: in all 1 to 29 frames in C++, and 2 to 31 in Gymnasium (without FIRE 0 to 29 and
  1 to 30).
- **Time limit.** 108,000 frames end a game in both; only Gymnasium's counts those of the start.
- **Padding.** Frames before a game's first are black; Gymnasium's default repeats the first one.
- **Lives.** `AtariVectorEnv(episodic_life=True)` starts a new game whenever a life is lost, so an
  agent would see only first lives. Here the emulators play whole games, and `AtariEnvironments`
  makes each life an episode: it is terminated while the game goes on, without another FIRE but with
  a new stack. An episode of `make_atari_env` is a game, since the score of a game is what counts.
- **Rewards** are clipped to [−1, 1] for learning, but not in scores or in `make_atari_env`.

This is what wrappers usually do with the v4 environments (`PongNoFrameskip-v4`). `ALE/Pong-v5` in
Gymnasium has sticky actions (0.25), which repeat the previous action now and then: do not compare
scores of the two.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.lazy import missing_extra
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments.gymnasium_envs import Environments, Step

FRAME_SKIP = 4  # frames in a step
MAX_FRAMES = 108_000  # half an hour of play
NOOP_MAX = 30  # a game begins after a random number of frames, at most these
STACK = 4  # frames in an observation


class AtariEnvironments(Environments):
    """Games whose steps are transitions: each life is an episode, rewards are clipped.

    Attributes:
        observation: what the agents see now, (environments, stack, size, size) uint8.
        finished: the games, not the lives, that ended with the last step, as (environment, score in
            the game's own points, steps).
    """

    def _begin(self, seeds: Any) -> None:
        # The emulators take seeds of 31 bits, and no list.
        super()._begin((np.asarray(seeds, dtype=np.uint32) >> 1).astype(np.int32))
        count = self.vector_env.num_envs
        self._lives = np.zeros(count, dtype=np.int32)  # not known before the first step
        self._depths = np.ones(count, dtype=np.int64)  # frames of each stack that are not padding

    def _transitions(self, *happened: Any) -> Step:
        step = super()._transitions(*happened)
        lives, over = happened[-1]["lives"], step.terminated | step.truncated
        # Some games show 0 lives for a moment before they are over: that is one end, not two.
        lost = (lives < self._lives) & (lives > 0) & ~over
        self._lives = lives

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
        reward = step.reward.astype(np.float32).clip(-1, 1)
        return step._replace(reward=reward, terminated=step.terminated | lost)


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
    stack: int = STACK,
    noop_max: int = NOOP_MAX,
    max_frames: int = MAX_FRAMES,
    render_mode: str | None = None,
) -> gym.Env:
    """One game as a Gymnasium environment, made of Gymnasium's own wrappers.

    Its rewards are not clipped, its episodes are whole games, and its actions are not sticky.

    Args:
        game: any game of ale-py, such as "Pong" or "MsPacman", or an id such as "ALE/Pong-v5".
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
    """``config.environments`` games for each seed, those of the first seed first."""
    rom, options = _game(config.env).kwargs["game"], _game_options(config)
    from ale_py.vector_env import AtariVectorEnv

    # With consecutive seeds, a run's second game would be the next run's first.
    drawn = [np.random.SeedSequence(seed).generate_state(config.environments) for seed in seeds]
    vector_env = AtariVectorEnv(
        rom,
        len(seeds) * config.environments,
        img_height=options["size"],
        img_width=options["size"],
        stack_num=STACK,
        noop_max=NOOP_MAX,
        reward_clipping=False,
        repeat_action_probability=0.0,
        max_num_frames_per_episode=options["max_frames"],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    return AtariEnvironments(vector_env, np.concatenate(drawn))


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
    limit = config.max_episode_steps
    frames = MAX_FRAMES if limit is None else FRAME_SKIP * limit
    return {"size": config.frame_size, "max_frames": frames}


def _game(name: str) -> gym.envs.registration.EnvSpec:
    """Gymnasium's registration of a game, or a ValueError with the closest name."""
    try:
        import ale_py
    except ImportError as error:
        raise missing_extra(error, "an Atari game", "atari") from error
    gym.register_envs(ale_py)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Warning)  # no greeting with every game
    try:
        return gym.spec(name if name.startswith("ALE/") else f"ALE/{name}-v5")
    except gym.error.Error as error:
        raise ValueError(f"game: no game {name!r}: {error}") from None
