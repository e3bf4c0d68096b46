"""Both Atari pipelines show the same frames, and steps are true transitions, life by life."""

import sys

import gymnasium as gym
import numpy as np
import pytest

ale_py = pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from per_tutorial.dqn.environments.atari import (  # noqa: E402
    make_atari_env,
    make_atari_games,
)

gym.register_envs(ale_py)
PLAIN = {"noop_max": 0}  # so that both pipelines begin with the same frame


def play_both(game, steps, **options):
    """Act at random in both pipelines: yields the `Step`, both observations and the reference's
    step.

    Where an episode ends, the reference's is the first observation of the next one.
    """
    options = PLAIN | {"episodic_life": False, "clip_rewards": False} | options
    environments = make_atari_games(game, 1, 0, **options)
    for name in ("episodic_life", "clip_rewards"):
        options.pop(name)
    reference = make_atari_env(game, **options)
    observation, _ = reference.reset(seed=0)
    np.testing.assert_array_equal(environments.observation[0], observation)
    numbers = np.random.default_rng(0)
    for _ in range(steps):
        action = numbers.integers(environments.actions)
        step = environments.step(np.array([action]))
        observation, *expected = reference.step(action)
        lives = reference.unwrapped.ale.lives()
        last = observation
        if expected[1] or expected[2]:
            observation, _ = reference.reset()
        yield step, environments, observation, (last, *expected[:3], lives)
    environments.close()
    reference.close()


@pytest.mark.slow
@pytest.mark.parametrize(("game", "size"), [("Pong", 84), ("MsPacman", 42)])
def test_both_pipelines_are_the_same_to_the_bit(game, size):
    ends = points = 0
    for step, environments, observation, expected in play_both(game, 1000, size=size):
        last, reward, terminated, truncated, _ = expected
        np.testing.assert_array_equal(step.next_observation[0], last)
        np.testing.assert_array_equal(environments.observation[0], observation)
        assert step.reward[0] == reward
        assert (step.terminated[0], step.truncated[0]) == (terminated, truncated)
        ends, points = ends + terminated, points + abs(reward)
    assert ends and points > 2
    assert observation.shape == (4, size, size)


# Lives


@pytest.mark.slow
def test_each_life_is_an_episode():
    """What an agent sees of Breakout, from the frames that the reference shows."""
    seen, lives_before, lost, scores, score = [], 0, 0, [], 0.0
    finished = []
    options = {"episodic_life": True, "clip_rewards": True}
    for step, environments, observation, expected in play_both("Breakout", 700, **options):
        last, reward, over, _, lives = expected
        score += reward
        life_lost = lives < lives_before and not over
        seen = [*seen, last[-1]][-4:] if seen else [*last[-2:]]
        stack = [np.zeros_like(last[0])] * (4 - len(seen)) + seen
        np.testing.assert_array_equal(step.next_observation[0], stack)
        assert step.terminated[0] == (over or life_lost)
        assert step.reward[0] == np.sign(reward)
        if over or life_lost:
            seen = [observation[-1]]
            stack = [np.zeros_like(last[0])] * 3 + seen
        np.testing.assert_array_equal(environments.observation[0], stack)
        lost, lives_before = lost + life_lost, 5 if over else lives
        finished += environments.finished
        if over:
            scores, score = [*scores, score], 0.0
    assert lost > 8 and len(scores) > 2 and max(scores) > 1
    assert [points for _, points, _ in finished] == scores


# How games start and end


@pytest.mark.slow
@pytest.mark.parametrize("game, fire", [("Pong", 1), ("MsPacman", 0)])
def test_games_start_after_a_random_number_of_frames(game, fire):
    environments = make_atari_games(game, 2, 0)
    reference = make_atari_env(game)
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
    environments = make_atari_games("Pong", 2, 0, max_frames=40)
    for t in range(1, 21):
        step = environments.step(np.zeros(2, dtype=np.int64))
        assert not step.terminated.any()
        assert step.truncated.all() == step.truncated.any() == (t in (10, 20))
        assert environments.observation[:, 0].any() == (t not in (1, 2, 10, 11, 12, 20))
        assert step.next_observation[:, 0].any() == (t not in (1, 2, 11, 12))
        assert len(environments.finished) == (2 if t in (10, 20) else 0)


def film(seeds, count=2, steps=40, **options):
    """What each environment shows when the same things are done in all of them."""
    environments = make_atari_games("Breakout", count, seeds, size=21, **options)
    frames = [environments.observation]
    for t in range(steps):
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
    assert film(3) == shown[:2]


# Names and numbers


@pytest.mark.parametrize("name", ["mspacman", "ms_pacman", "MsPacmanNoFrameskip-v4"])
@pytest.mark.slow
def test_a_game_has_several_names(name):
    assert make_atari_games(name, 1, 0).actions == 9
    assert make_atari_env(name).action_space.n == 9


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ({"game": "ALE/Brakout-v5"}, ValueError, "no game 'ALE/Brakout-v5', did you mean 'Breako"),
        ({"game": "xyzzy"}, ValueError, "no game 'xyzzy'$"),
        ({"game": 3}, TypeError, "must be"),
        ({"size": 8.5}, TypeError, "must be"),
        ({"stack": 0}, ValueError, "must be"),
        ({"noop_max": -1}, ValueError, "must be"),
    ],
)
def test_a_wrong_argument_is_named(wrong, error, message):
    (name,) = wrong
    for make, given in (
        (make_atari_games, {"count": 1, "seeds": 0}),
        (make_atari_env, {}),
    ):
        with pytest.raises(error, match=f"^{name}: {message}"):
            make(**{"game": "Pong", **given, **wrong})


def test_without_the_emulator_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    for make in (make_atari_env, lambda game: make_atari_games(game, 1, 0)):
        with pytest.raises(ImportError, match=r'pip install "per_tutorial\[atari\]"'):
            make("Pong")
