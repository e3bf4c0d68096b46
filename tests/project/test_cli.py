"""The command line: made from `DQNConfig`, and plain about what is wrong."""

import dataclasses
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from types import SimpleNamespace
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest
from notebook_files import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from small import TINY, TINY_CONFIG

from per_tutorial.cli import COMMANDS, main
from per_tutorial.cli.examine import examine
from per_tutorial.cli.files import save_results
from per_tutorial.common.lazy import ADDRESS, EXTRAS
from per_tutorial.conformance.checks import BATCH, CAPACITY
from per_tutorial.dqn import checkpoints, recording, training
from per_tutorial.dqn.callbacks import TensorBoard
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.studies import results as results_module
from per_tutorial.studies import runner
from per_tutorial.studies.declared import STUDIES
from per_tutorial.studies.results import load_study, report
from per_tutorial.studies.study import METRICS, Study


def run(*arguments):
    command = [sys.executable, "-m", "per_tutorial", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def complaint(*words):
    """The one line that a command ends in: printed to stderr, and the status is 1."""
    with pytest.raises(SystemExit) as caught:
        main([*words])
    program, _, line = caught.value.code.partition(": ")
    assert program == "python -m per_tutorial" and "\n" not in line
    return line


def unwrapped(text):
    """Without white space and frames, since lines are broken anywhere."""
    return "".join(text.replace("│", "").split())


@pytest.mark.slow
def test_help_lists_every_setting_with_its_explanation_and_default():
    result = run("train", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    text = unwrapped(result.stdout)
    source = inspect.getsource(DQNConfig)
    for field in dataclasses.fields(DQNConfig):
        assert f"--{field.name.replace('_', '-')}" in text
        default = field.default
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        pattern = rf"^    {field.name}: [^\n]*\n    \"\"\"(.*?)\"\"\""
        explained = re.search(pattern, source, re.M | re.S)[1]
        assert unwrapped(f"{explained}(default: {shown})") in text.replace(".(def", "(def")


@pytest.mark.slow
def test_alone_it_shows_what_one_can_do_with_three_examples():
    result = run()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == run("--help").stdout
    assert re.findall(r"• (\w+)", result.stdout) == list(COMMANDS)
    lines = re.findall(r"^python -m per_tutorial (\w+)", result.stdout, re.MULTILINE)
    assert lines == ["train", "evaluate", "examine"]


@pytest.fixture
def trained_with(monkeypatch):
    """What `train` was called with, instead of a training: (config, seeds)."""
    calls = []

    def train(config, seeds, callbacks, checkpoints):
        assert checkpoints is None
        calls.append((config, list(seeds)))
        return SimpleNamespace(seeds=seeds, step=config.steps, agent=SimpleNamespace(seeds=seeds))

    def evaluate(agent, episodes):
        return np.zeros((len(agent.seeds), episodes))

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setattr(training, "evaluate", evaluate)
    return calls


def test_settings_of_every_kind_reach_the_training(trained_with):
    settings = {
        "env": "ALE/Pong-v5",  # which several environments may feed
        "environments": 4,
        "max_episode_steps": 50,
        "terminal_reward": -7.5,
        "discount": 0.91,
        "learning_rate_end": 2.5e-5,
        "tau": 0.015,
        "kappa": 0.125,
        "max_grad_norm": 11.0,
        "loss": "huber",
    }
    words = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    main(["train", *words, "--double", "--hidden", "33", "17"])
    expected = DQNConfig(**settings, double=True, hidden=(33, 17))
    assert trained_with == [(expected, list(range(10)))]


def test_a_training_writes_its_history_and_prints_what_the_agents_reach(tmp_path, capsys):
    path = tmp_path / "history.csv"
    main([*TINY, "--out", str(path), "--episodes", "3"])
    history = training.train(TINY_CONFIG, [4, 5])
    history.save(tmp_path / "same.csv")
    assert path.read_bytes() == (tmp_path / "same.csv").read_bytes()

    printed = capsys.readouterr().out
    greedy = training.evaluate(history.agent, episodes=3).mean(axis=1)
    for seed, value in zip((4, 5), greedy, strict=True):
        assert f"seed {seed}: greedy return {value:.1f}\n" in printed
    assert "over 2 runs, the mean of 3 episodes each" in printed
    assert f"median {np.median(greedy):.1f}" in printed
    assert f"lowest {greedy.min():.1f}" in printed
    assert "proportional 100%" in printed
    assert "150/150 steps" in printed
    mean_return = np.mean([value for _, _, value, _ in history.episodes[-100:]])
    assert f"return {mean_return:.1f}" in printed


@pytest.mark.slow
def test_a_training_writes_its_checkpoints_and_its_scalars(tmp_path):
    pytest.importorskip("tensorboard")
    kept, scalars = tmp_path / "kept", tmp_path / "scalars"
    options = "--checkpoint", str(kept), "--checkpoint-every", "70", "--tensorboard", str(scalars)
    with mock.patch.object(checkpoints, "write_arrays", wraps=checkpoints.write_arrays) as written:
        main([*TINY, "--quiet", *options])
    assert written.call_count > 1  # 10,000 steps apart, there would only be the one at the end
    assert [path.name for path in kept.iterdir()] == [checkpoints.NAME]
    assert sorted(folder.name for folder in scalars.iterdir()) == ["seed-4", "seed-5"]


def test_a_history_that_cannot_be_written_does_not_cost_the_agent(tmp_path):
    def full(path):
        raise OSError("No space left")

    agent = SimpleNamespace(save=lambda path: path.write_bytes(b"agent"))
    with pytest.raises(OSError, match="^No space left$"):
        save_results(SimpleNamespace(save=full, agent=agent), "history.csv", tmp_path / "agent")
    assert (tmp_path / "agent").read_bytes() == b"agent"


def test_tensorboard_shows_the_mean_return_of_the_last_hundred_episodes(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    history = History(TINY_CONFIG, [4, 5], {})
    history.step = TINY_CONFIG.steps
    history.episodes = [(k % 2, k, float(k), 1) for k in range(300)]
    TensorBoard(tmp_path)(history)
    for run in range(2):
        events = EventAccumulator(str(tmp_path / f"seed-{history.seeds[run]}"))
        events.Reload()
        _, values = history.returns(run)
        expected = [values[max(0, k - 99) : k + 1].mean() for k in range(150)]
        shown = [event.value for event in events.Scalars("charts/mean_return_100")]
        np.testing.assert_allclose(shown, expected, rtol=1e-6)


# Playing again


def test_what_was_saved_is_played_again_and_both_commands_are_named(tmp_path, capsys):
    path = str(tmp_path / "my agent.safetensors")
    main([*TINY, "--quiet", "--save", path])
    first, second, summary, play, film = capsys.readouterr().out.splitlines()  # no progress bar
    assert first.startswith("seed 4: ") and second.startswith("seed 5: ")
    assert summary.startswith("greedy return over 2 runs")
    assert play.endswith(f"python -m per_tutorial evaluate '{path}'")
    assert film.endswith(f"python -m per_tutorial evaluate '{path}' --video episode.mp4")

    main(["evaluate", path, "--episodes", "3"])
    lines = capsys.readouterr().out.splitlines()
    returns = training.evaluate(DQNLearner.load(path), 3)
    for seed, line, row in zip((4, 5), lines, returns, strict=True):
        assert line.startswith(f"seed {seed}: mean return {row.mean():.1f}, 95 % interval [")


@pytest.mark.slow
def test_an_episode_of_a_saved_agent_is_filmed(tmp_path, capsys):
    videos = pytest.importorskip("per_tutorial.notebook.videos")
    path, film = str(tmp_path / "agent.safetensors"), str(tmp_path / "episode.mp4")
    DQNLearner(TINY_CONFIG.replace(max_episode_steps=7), (4,), actions=2, seeds=[7]).save(path)
    main(["evaluate", path, "--episodes", "2", "--video", film])
    said = capsys.readouterr().out.splitlines()[-1]
    length = float(re.fullmatch(rf"{re.escape(film)}: an episode of seed 7, return (\d+)", said)[1])
    assert length == 7  # a pole takes longer to fall
    assert len(list(videos.read_frames(film))) == pytest.approx(length + 1, abs=1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "agent.safetensors",
        "episode.mp4",
    ]


def test_the_film_of_a_game_ends_at_the_time_limit_of_the_settings(tmp_path, monkeypatch):
    pytest.importorskip("ale_py")
    agents, films = [], []
    monkeypatch.setattr(
        training, "evaluate", lambda *given: agents.append(given[0]) or [np.ones(2)]
    )
    monkeypatch.setattr(recording, "record_episode", lambda *given, **_: films.append(given) or 0.0)
    path = str(tmp_path / "agent.safetensors")
    config = TINY_CONFIG.replace(env="ALE/Pong-v5", frame_size=36, max_episode_steps=10)
    DQNLearner(config, (4, 36, 36), actions=6, seeds=[7]).save(path)
    main(["evaluate", path, "--video", "film.mp4", "--precision", "bfloat16"])
    assert agents[0].config.precision == "bfloat16"
    ((_, game, _),) = films
    game.reset(seed=0)
    ends = [any(game.step(0)[2:4]) for _ in range(10)]
    game.close()
    assert any(ends)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("nobody", "AGENT: must be a file of `train --save`, got 'nobody'"),
        ("long-cartpole --video nowhere/a.mp4", "--video: there is no folder for 'nowhere/a.mp4'"),
        ("long-cartpole --video a.gif", "--video: must end in .mp4, got 'a.gif'"),
        ("long-cartpole --video .mp4", "--video: must end in .mp4, got '.mp4'"),
        ("{}/gone --video {}/a.mp4", "env: 'tests/Gone-v0' cannot be made: "),
        (
            "{}/walk --video {}/a.mp4",
            "env: 'per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0' draws",
        ),
        ("{}/text", "path: '{}/text' holds no agent, "),
        ("long-cartpole --episodes 1", "--episodes: must be at least 2, got 1"),
    ],
)
def test_what_cannot_be_played_ends_in_one_clear_line(arguments, message, tmp_path):
    (tmp_path / "text").write_text("no agent\n", encoding="utf-8")
    walk = "per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0"
    for name, env in (("walk", walk), ("gone", "tests/Gone-v0")):
        DQNLearner(TINY_CONFIG.replace(env=env), (8,), actions=2, seeds=[0]).save(tmp_path / name)
    line = complaint("evaluate", *arguments.format(tmp_path, tmp_path).split())
    assert line.startswith(message.format(tmp_path))


def test_a_film_that_cannot_be_written_costs_no_evaluation(tmp_path, monkeypatch):
    DQNLearner(TINY_CONFIG, (4,), actions=2, seeds=[7]).save(tmp_path / "agent")
    monkeypatch.setattr(training, "evaluate", pytest.fail)
    monkeypatch.setitem(sys.modules, "moviepy", None)
    words = "evaluate", f"{tmp_path}/agent", "--video", f"{tmp_path}/film.mp4"
    line = complaint(*words)
    assert line.startswith("evaluate needs moviepy, ") and "per_tutorial[video]" in line
    monkeypatch.undo()
    monkeypatch.setattr(training, "evaluate", pytest.fail)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    assert "/nowhere/ffmpeg" in complaint(*words)
    missing = mock.Mock(side_effect=RuntimeError("no ffmpeg"))
    monkeypatch.setattr("imageio_ffmpeg.get_ffmpeg_version", missing)
    assert complaint(*words) == "--video: no ffmpeg"


# Without the extras


def without(modules, code):
    """The last line a fresh Python prints that runs ``code`` and cannot import ``modules``."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({sorted(modules)!r}))"
    command = [sys.executable, "-c", f"{hide}\n{code}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return (result.stdout + result.stderr).splitlines()[-1]


@pytest.mark.slow
def test_a_missing_extra_is_named_by_commands_and_by_names():
    everything = {module for modules in EXTRAS.values() for module in modules}
    command = "from per_tutorial.cli import main; main(['{}'])"
    examined = command.format("examine', 'rank")
    for code, missing, needs, extra in (
        (command.replace("'{}'", ""), everything, "the command line needs tyro", "dqn"),
        (command.format("train"), everything, "train needs tyro", "dqn"),
        (examined, everything, "examine needs tyro", "examine"),
        (examined, {"scipy"}, "examine needs scipy", "examine"),
        ("import per_tutorial; per_tutorial.train", {"torch"}, "train needs torch", "dqn"),
        ("from per_tutorial import train", {"torch"}, "train needs torch", "dqn"),
        ("import per_tutorial.conformance", {"scipy"}, "conformance needs scipy", "examine"),
        ("import per_tutorial.cliffwalk", everything, "cliffwalk needs gymnasium", "dqn"),
        ("import per_tutorial.after_per", everything, "after_per needs torch", "dqn"),
        ("from per_tutorial.notebook import show", {"PIL"}, "show needs PIL", "notebooks"),
        ("import per_tutorial.integrations.sb3", {"sb3_contrib"}, "sb3 needs sb3_contrib", "sb3"),
        ("import per_tutorial.integrations.torchrl", everything, "needs torchrl", "torchrl"),
        ("import per_tutorial.integrations.tianshou", everything, "needs tianshou", "tianshou"),
    ):
        install = f'not installed: pip install "per_tutorial[{extra}] @ git+{ADDRESS}"'
        assert f"{needs}, which is {install}" in without(missing, code)
    code = (
        "import per_tutorial; print(per_tutorial.PrioritizedReplayBuffer(8, (2,), seed=0).capacity)"
    )
    assert without(everything, code) == "8"


def test_the_extras_named_are_those_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    called = {"PIL": "pillow", "cv2": "opencv-python-headless"}
    for extra, modules in EXTRAS.items():
        brought = {
            canonicalize_name(Requirement(line).name)
            for line in declared["optional-dependencies"][extra]
        }
        assert {canonicalize_name(called.get(module, module)) for module in modules} <= brought


# Studies


@pytest.fixture
def small_study(monkeypatch):
    """A declared study of two arms, among the others."""
    arms = {"plain": TINY_CONFIG.replace(sampler="uniform"), "prioritised": TINY_CONFIG}
    study = Study(
        name="small",
        question="Is it the one or the other?",
        arms=arms,
        comparisons=(("prioritised", "plain"),),
        metric="greedy score",
        failed_below=15,
    )
    monkeypatch.setitem(STUDIES, "small", study)
    return study


@pytest.fixture
def studied_with(small_study, monkeypatch):
    """What `run_study` was called with, instead of a study: (study, folder, processes)."""
    calls = []

    def run_study(study, folder, *, processes, progress):
        calls.append((study, folder, processes))

    monkeypatch.setattr(runner, "run_study", run_study)
    monkeypatch.setattr(results_module, "report", lambda results: "")
    return calls


@pytest.mark.slow
def test_a_study_states_its_question_and_metric_and_reports_every_arm_and_comparison(
    small_study, tmp_path, capsys
):
    main(["study", "small", "--fast", "--processes", "1", "--out", str(tmp_path)])
    printed, progress = capsys.readouterr()
    question, metric, parts, stop, *rest = printed.splitlines()
    assert question == small_study.question
    assert parts == "4 parts, 1 at once. Their duration is shown as soon as the first is finished."
    assert stop.startswith("Ctrl-C stops it: finished parts stay")
    assert metric == f"Metric: greedy score, {METRICS['greedy score']}."
    results = load_study("small-fast", tmp_path)
    assert rest == report(results).splitlines()
    text = "\n".join(rest)
    assert "plain  " in text and "prioritised  " in text and "prioritised − plain  " in text
    total = sum(config["steps"] * len(results.seeds) for config in results.arms.values())
    assert f"100%|██████████| {total / 1000:.2f}k" in progress

    main(["study", "small", "--fast", "--processes", "1", "--out", str(tmp_path), "--quiet"])
    again, progress = capsys.readouterr()
    assert (again, progress) == (printed, "")


def test_a_recorded_study_says_how_long_it_takes(studied_with, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    main(["study", "ablation-acrobot", "--processes", "2", "--quiet"])
    assert "16 parts, 2 at once. Where they were recorded, all took 35" in capsys.readouterr().out


def test_options_of_a_study(small_study, studied_with):
    main(["study", "small", "--quiet"])
    main("study small --quiet --device cuda --out elsewhere".split())
    main("study small --quiet --device cuda --processes 3 --fast".split())
    assert studied_with == [
        (small_study, "results", os.cpu_count()),
        (small_study.on("cuda"), "elsewhere", 1),
        (small_study.fast().on("cuda"), "results", 3),
    ]


# Examinations

BROKEN = """
from per_tutorial.conformance.adapters import Proportional

class SquaredErrors(Proportional):
    name = "squared"

    def update(self, buffer, keys, td_errors):
        buffer.update_priorities(keys, td_errors**2)
"""


@pytest.mark.slow
def test_an_examination_prints_its_report(capsys):
    main(["examine", "uniform", "--seed", "3"])
    printed = capsys.readouterr().out
    assert printed.startswith("per_tutorial, uniform (") and "seed 3" in printed
    assert "failed" not in printed
    main(["examine", "uniform", "--check", "reach", "--capacity", "32", "--json"])
    results = json.loads(capsys.readouterr().out)["results"]
    assert list(results) == ["reach"] and results["reach"][0] == "passed"


def test_the_command_and_the_function_examine_the_same_buffers():
    given = {name: one.default for name, one in inspect.signature(examine).parameters.items()}
    assert (given["capacity"], given["batch_size"]) == (CAPACITY, BATCH)


@pytest.mark.slow
def test_an_adapter_in_a_file_is_examined_and_a_failure_is_the_exit_status(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(BROKEN, encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["examine", f"{tmp_path}/mine.py:SquaredErrors"])
    assert caught.value.code == 1
    assert "FAILED exponent" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("proportionel", "NAME: must be one of proportional, rank, uniform, "),
        ("nowhere.py:Mine", "NAME: no file 'nowhere.py'"),
        ("{}/mine.py:Theirs", "NAME: '{}/mine.py' has no class 'Theirs'"),
        ("{}/fails.py:Mine", "NAME: '{}/fails.py' cannot be run: ZeroDivisionError"),
        ("{}/mine.py:Named", "Named.__init__() missing 1 required"),
        (
            "{}/mine.py:Empty",
            "adapter: Empty lacks make, add, sample, update; a buffer needs an ada",
        ),
        ("{}/needs.py:Mine", "No module named 'nowhere'"),
        ("uniform --seed -1", "seed: must be at least 0, got -1"),
    ],
)
def test_what_cannot_be_examined_ends_in_one_clear_line(arguments, message, tmp_path):
    methods = "make = add = sample = update = print"
    named = (
        f"class Named:\n    {methods}\n    def __init__(self, name): pass\n\nclass Empty: pass\n"
    )
    (tmp_path / "mine.py").write_text(named, encoding="utf-8")
    (tmp_path / "fails.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "needs.py").write_text("import nowhere\n", encoding="utf-8")
    line = complaint("examine", *arguments.format(tmp_path).split())
    assert line.startswith(message.format(tmp_path, tmp_path))


# What is wrong


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--sampler best", "sampler: must be one of 'uniform', 'proportional'"),
        (
            "--env Cartpole-v1",
            "env: 'Cartpole-v1' cannot be made: Environment `Cartpole` doesn't exist",
        ),
        ("--device abacus", "device: 'abacus' cannot be used"),
        ("--runs 0", "--runs: must be at least 1, got 0"),
        ("--episodes 0", "--episodes: must be at least 1, got 0"),
        ("--first-seed -1", "seeds: must be at least 0, got -1"),
        ("--out nowhere/history.csv", "--out: there is no folder for 'nowhere/history.csv'"),
        ("--steps 9 --out a.csv --save a.csv", "--save: must not be the file of --out, 'a.csv'"),
        (
            "--env nowhere:Maze-v0",
            "env: 'nowhere:Maze-v0' cannot be made: No module named 'nowhere'",
        ),
    ],
)
def test_a_wrong_value_ends_in_one_clear_line(arguments, message):
    assert complaint("train", *arguments.split()).startswith(message)


@pytest.mark.parametrize(
    "error, status",
    [
        (KeyboardInterrupt(), 130),
        (lambda *_, **__: SimpleNamespace(step=100), 130),  # as `train` returns it in a notebook
        (ValueError("env: is odd"), "python -m per_tutorial: env: is odd"),
    ],
)
def test_an_interrupt_is_a_status_and_an_error_a_line(error, status, monkeypatch):
    monkeypatch.setattr(training, "train", mock.Mock(side_effect=error))
    with pytest.raises(SystemExit) as caught:
        main(["train"])
    assert caught.value.code == status


def test_a_setting_that_the_sampler_has_not_is_named(trained_with):
    with pytest.warns(UserWarning, match="^--alpha: no effect with --sampler uniform$"):
        main(["train", "--sampler", "uniform", "--alpha", "0.5"])
    with warnings.catch_warnings(action="error"):
        main(["train", "--sampler", "rank", "--alpha", "0.5"])
        main(["train", "--loss", "huber", "--kappa", "0.5"])


def test_an_unknown_study_is_answered_by_those_most_alike():
    for name in STUDIES:
        assert f"such as {name}" in complaint("study", name + "z")


MINE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
gymnasium.register('tests/Mine-v0', CartPoleEnv, max_episode_steps=5)
"""


def test_the_commands_that_are_printed_work_for_an_environment_of_ones_own(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "my_envs.py").write_text(MINE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    path = str(tmp_path / "agent.safetensors")
    main([*TINY, "--quiet", "--env", "my_envs:tests/Mine-v0", "--save", path])
    play, _ = capsys.readouterr().out.splitlines()[-2:]
    gym.registry.pop("tests/Mine-v0")
    sys.modules.pop("my_envs")
    words = shlex.split(play.partition("python -m per_tutorial ")[2])
    main([*words, "--episodes", "2"])
    assert "mean return" in capsys.readouterr().out
