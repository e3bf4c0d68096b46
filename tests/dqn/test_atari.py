"""Both Atari pipelines show the same frames, and steps are true transitions, life by life."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from per_tutorial.dqn.config import DQNConfig  # noqa: E402
from per_tutorial.dqn.environments import atari  # noqa: E402
from per_tutorial.dqn.environments.atari import make_atari_env  # noqa: E402


def games(game, count, seeds, **settings):
    config = DQNConfig(env=f"ALE/{game}-v5", environments=count, **settings)
    return atari.training_environments(config, seeds)


LIVES = {"Pong": 0, "MsPacman": 3, "Breakout": 5}


@pytest.mark.slow
@pytest.mark.parametrize(("game", "size"), [("Pong", 84), ("MsPacman", 42), ("Breakout", 84)])
def test_both_pipelines_are_the_same_to_the_bit_and_each_life_is_an_episode(
    game, size, monkeypatch
):
    """What an agent sees of random play, from the frames that the reference shows."""
    monkeypatch.setattr(atari, "NOOP_MAX", 0)  # so that both begin with the same frame
    environments, reference = (
        games(game, 1, [0], frame_size=size),
        make_atari_env(game, size=size, noop_max=0),
    )
    observation, _ = reference.reset(seed=0)
    np.testing.assert_array_equal(environments.observation[0], observation)
    numbers = np.random.default_rng(0)
    seen, lives_before, lost, scores, score, finished = [], 0, 0, [], 0.0, []
    for _ in range(1000):
        action = numbers.integers(environments.actions)
        step = environments.step(np.array([action]))
        observation, reward, terminated, truncated, _ = reference.step(action)
        last, lives, score = observation, reference.unwrapped.ale.lives(), score + reward
        if terminated:
            observation, _ = reference.reset()
        life_lost = lives < lives_before and not terminated
        seen = [*seen, last[-1]][-4:] if seen else [*last[-2:]]
        stack = [np.zeros_like(last[0])] * (4 - len(seen)) + seen
        np.testing.assert_array_equal(step.next_observation[0], stack)
        assert (step.terminated[0], step.truncated[0]) == (terminated or life_lost, truncated)
        assert step.reward[0] == np.sign(reward)
        if terminated or life_lost:
            seen = [observation[-1]]
            stack = [np.zeros_like(last[0])] * 3 + seen
        np.testing.assert_array_equal(environments.observation[0], stack)
        lost, lives_before = lost + life_lost, LIVES[game] if terminated else lives
        finished += environments.finished
        if terminated:
            scores, score = [*scores, score], 0.0
    assert [points for _, points, _ in finished] == scores != []
    assert max(map(abs, scores)) > 1
    assert lost >= 2 * len(scores) or game == "Pong"
    assert observation.shape == (4, size, size)
    environments.close()


def test_a_life_that_is_shown_as_0_before_its_game_is_over_ends_once():
    """As some games do."""
    over, shown = iter([False, False, False, True]), np.zeros((1, 4, 2, 2), np.uint8)
    lives = iter([3, 2, 0, 0])

    def step(_):
        ended, left = np.array([next(over)]), np.array([next(lives)])
        info = {"lives": left, "final_obs": shown}
        return shown.copy(), np.zeros(1), ended, np.zeros(1, bool), info

    fake = SimpleNamespace(
        metadata={"autoreset_mode": AutoresetMode.SAME_STEP},
        single_action_space=Discrete(2),
        num_envs=1,
        reset=lambda seed: (shown.copy(), {}),
        step=step,
    )
    environments = atari.AtariEnvironments(fake, [0])
    ends = [environments.step(np.zeros(1, int)).terminated.item() for _ in range(4)]
    assert ends == [False, True, False, True]


# How games start and end


@pytest.mark.slow
@pytest.mark.parametrize("game, fire", [("Pong", 1), ("MsPacman", 0)])
def test_games_start_after_a_random_number_of_frames(game, fire):
    environments, reference = games(game, 2, [0]), make_atari_env(game)
    first, expected = [], []
    for t in range(60):
        seeds = {"seed": np.array([1, 2])} if t == 0 else {}
        first.extend(environments.vector_env.reset(**seeds)[1]["episode_frame_number"])
        reference.reset(seed=0 if t == 0 else None)
        expected.append(reference.unwrapped.ale.getEpisodeFrameNumber())
    assert (min(first), max(first)) == (fire, 29)
    assert (min(expected), max(expected)) == (fire + 1, fire + 30)
    assert len(set(first)) > 20 and len(set(expected)) > 20


def test_a_time_limit_truncates():
    environments = games("Pong", 2, [0], max_episode_steps=10)
    for t in range(1, 21):
        step = environments.step(np.zeros(2, dtype=np.int64))
        assert not step.terminated.any()
        assert step.truncated.all() == step.truncated.any() == (t in (10, 20))
        assert environments.observation[:, 0].any() == (t not in (1, 2, 10, 11, 12, 20))
        assert step.next_observation[:, 0].any() == (t not in (1, 2, 11, 12))
        assert len(environments.finished) == (2 if t in (10, 20) else 0)


def film(seeds):
    """What each environment shows when the same things are done in all of them."""
    environments = games("Breakout", 2, seeds, frame_size=21)
    frames = [environments.observation]
    for t in range(40):
        environments.step(np.full(len(frames[0]), t % environments.actions))
        frames.append(environments.observation)
    environments.close()
    return [shown.tobytes() for shown in np.stack(frames, axis=1)]


@pytest.mark.slow
def test_environments_depend_on_their_runs_seed_alone():
    shown = film([3, 4])  # by chance, no two of them begin after as many frames
    assert len(set(shown)) == 4
    assert film([3, 4]) == shown
    others = film([1, 4])
    assert others[2:] == shown[2:]
    assert not set(others[:2]) & set(shown[:2])
    assert film([3]) == shown[:2]


# Names and numbers


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ({"game": "ALE/Brakout-v5"}, ValueError, "no game 'ALE/Brakout-v5': .* mean: `Breakout`"),
        ({"game": "ms_pacman"}, ValueError, "no game 'ms_pacman': .* mean: `MsPacman`"),
        ({"size": 8.5}, TypeError, "must be"),
        ({"stack": 0}, ValueError, "must be"),
        ({"noop_max": -1}, ValueError, "must be"),
    ],
)
def test_a_wrong_argument_is_named(wrong, error, message):
    (name,) = wrong
    with pytest.raises(error, match=f"^{name}: {message}"):
        make_atari_env(**{"game": "Pong"} | wrong)


def test_without_the_emulator_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    for make in (make_atari_env, lambda game: games(game, 1, [0])):
        with pytest.raises(
            ImportError, match=r'needs ale_py, .*pip install "per_tutorial\[atari\]'
        ):
            make("Pong")
