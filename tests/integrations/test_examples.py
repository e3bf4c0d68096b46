"""Every script in `examples/` runs from beginning to end, in short."""

import ast
import importlib.util
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from counting import COUNTING, CountingEnv, assert_true_transitions

EXAMPLES = Path(__file__).parents[2] / "examples"
# What each needs, and its options for a short run.
SHORT = {
    "apex_ray": ("ray", ["--actors", "1", "--total-updates", "50", "--learning-starts", "200"]),
    "per_dqn": ("torch", ["--total-timesteps", "400", "--learning-starts", "100"]),
    "sb3_dqn": ("stable_baselines3", ["--steps", "1200"]),
    "sb3_sac": ("stable_baselines3", ["--steps", "150"]),
    "tianshou_dqn": ("tianshou", ["--steps", "200"]),
    "torchrl_dqn": ("torchrl", ["--steps", "300"]),
}


def imported(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tried():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHORT)


@pytest.mark.parametrize("name", SHORT)
def test_its_help_can_be_printed_on_windows(name):
    """A pipe there takes cp1252, which has no Greek letters."""
    code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    shown = ast.get_docstring(ast.parse(code))
    if "description=__doc__.partition" in code:
        shown = shown.partition("\n")[0]
    (shown + "".join(re.findall(r'help="(.*?)"', code))).encode("cp1252")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name == "apex_ray" else [])
        for name in SHORT
    ],
)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    library, options = SHORT[name]
    pytest.importorskip(library, exc_type=ImportError)
    if library == "ray":
        without_agents(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *options, "--seed", "2"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.search(r"\d", last) and "nan" not in last


def without_agents(monkeypatch):
    """Start Ray without the agents for its dashboard, which take seconds and which nobody needs.

    A node waits 15 s for them, which is not enough where other tests run beside it. It gives up
    when one ends, so in their place something waits.
    """
    from ray._private import services

    start = services.start_ray_process
    agents = ("--dashboard_agent_command", "--runtime_env_agent_command")
    ports = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port")
    ports = [*ports, "dashboard_agent_listen_port"]  # as if they had said where they listen

    def start_without(command, process_type, *args, **options):
        if process_type == "raylet":
            command = [word for word in command if not word.startswith(agents)]
            command += [f"{agent}=sleep 300" for agent in agents]
            command += [f"--{name}={1025 + number}" for number, name in enumerate(ports)]
        return start(command, process_type, *args, **options)

    monkeypatch.setattr(services, "start_ray_process", start_without)


@pytest.fixture
def page_and_stored(monkeypatch):
    """The page, and a list of what its buffer will be given."""
    page, stored = imported("per_dqn"), []
    add = page.PrioritizedReplayBuffer.add
    monkeypatch.setattr(
        page.PrioritizedReplayBuffer,
        "add",
        lambda self, *fields: (stored.append(fields), add(self, *fields))[1],
    )
    return page, stored


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.slow
def test_the_page_stores_true_transitions_and_changes_priorities(num_envs, page_and_stored):
    page, stored = page_and_stored
    args = page.Args(
        total_timesteps=402, num_envs=num_envs, learning_starts=60, batch_size=32, buffer_size=300
    )
    network, buffer, returns = page.train(args)
    assert len(stored) == 402 and len(buffer) == 300
    for environment in range(num_envs):
        mine = stored[environment::num_envs]
        for now, after in zip(mine, mine[1:], strict=False):
            over = now[4] or now[5]
            assert np.array_equal(now[3], after[0]) != over
    assert sum(bool(step[4] or step[5]) for step in stored) == len(returns)
    assert len(set(buffer.probabilities())) > 50
    assert all(bool(weights.isfinite().all()) for weights in network.parameters())


def test_the_page_bootstraps_where_time_ran_out(page_and_stored):
    page, stored = page_and_stored
    page.train(page.Args(env_id="MountainCar-v0", total_timesteps=205, learning_starts=1000))
    observation, _, _, true_next, terminated, truncated = stored[199]
    assert (bool(terminated), bool(truncated)) == (False, True)
    assert np.abs(true_next - observation).max() < 0.1  # not where the next episode begins
    assert not np.array_equal(true_next, stored[200][0])


def test_the_page_copies_what_an_environment_overwrites(page_and_stored, monkeypatch):
    page, stored = page_and_stored
    seen = np.zeros(3, np.float32)  # the array of every observation

    def show(env):
        seen[:] = env.episode, env.steps, env.action
        return seen

    monkeypatch.setattr(CountingEnv, "_observation", show)
    page.train(page.Args(env_id=COUNTING, total_timesteps=40, learning_starts=1000, seed=0))
    assert_true_transitions(stored, seed=0)


# Ape-X: its parts, without a cluster --------------------------------------------------------------


@pytest.fixture
def apex():
    pytest.importorskip("ray", exc_type=ImportError)
    return imported("apex_ray")


def acted(apex, monkeypatch, **settings):
    """The steps of an actor's environment, and what its memory was sent."""
    steps, sent = [], []

    class Memory:
        class add:  # noqa: N801
            remote = staticmethod(lambda transitions, errors: sent.append((transitions, errors)))

    monkeypatch.setattr(apex.ray, "get", lambda _: len(sent))
    actor = apex.Actor(apex.Args(**settings), 0)
    reset, step = actor.env.reset, actor.env.step
    monkeypatch.setattr(actor.env, "step", lambda action: steps.append(step(action)) or steps[-1])
    begun = [actor.observation]

    def noted_reset():
        begun.append(reset())
        return begun[-1]

    monkeypatch.setattr(actor.env, "reset", noted_reset)
    for _ in range(4):
        actor.act(actor.network.state_dict(), Memory)
    return actor, steps, sent


def test_an_actor_sends_each_step_once_as_a_window_with_its_own_td_error(apex, monkeypatch):
    actor, steps, sent = acted(apex, monkeypatch, n_step=3, gamma=0.5, base=1.0)
    sent_steps = np.concatenate([transitions["steps"] for transitions, _ in sent])
    rewards = np.concatenate([transitions["rewards"] for transitions, _ in sent])
    following = np.concatenate([transitions["next_observations"] for transitions, _ in sent])
    ends = np.concatenate([transitions["terminated"] for transitions, _ in sent])
    lasts = np.flatnonzero([step[2] or step[3] for step in steps])
    assert len(lasts) > 3  # a random policy falls soon
    # A step's window goes two steps further, but not beyond its episode.
    last = np.array([lasts[np.searchsorted(lasts, i)] if i <= lasts[-1] else len(steps) - 1
                     for i in range(len(sent_steps))])  # fmt: skip
    end = np.minimum(np.arange(len(sent_steps)) + 2, last)
    np.testing.assert_array_equal(sent_steps, end - np.arange(len(sent_steps)) + 1)
    assert len(steps) - len(sent_steps) in (0, 1, 2)  # windows that are still open
    np.testing.assert_array_equal(rewards, 2 - 0.5 ** (sent_steps - 1.0))  # 1 + γ + γ²
    np.testing.assert_array_equal(following, [steps[i][0] for i in end])
    np.testing.assert_array_equal(ends, [steps[i][2] for i in end])
    for transitions, errors in sent:
        with torch.no_grad():
            values, after = (
                actor.network(torch.as_tensor(transitions[name])).numpy()
                for name in ("observations", "next_observations")
            )
        promised = values[np.arange(len(errors)), transitions["actions"]]
        open_end = 0.5 ** transitions["steps"] * after.max(axis=1) * ~transitions["terminated"]
        np.testing.assert_allclose(errors, transitions["rewards"] + open_end - promised, rtol=1e-5)
