"""What "auto" becomes: chosen on this machine, and kept by every file."""

import os
import platform
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import torch
from killed_trainings import Dying, Killed
from plain_dqn import needs_compiler
from safetensors import safe_open
from safetensors.torch import save_file
from small import ACTIONS, INPUTS, LEARNER_CONFIG, TINY_CONFIG, random_batch
from torch.utils._python_dispatch import TorchDispatchMode

from per_tutorial.dqn import autotune
from per_tutorial.dqn import learner as learner_module
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.studies.declared import STUDIES

PIXELS = DQNConfig(env="ALE/Pong-v5", frame_size=20, hidden=(8,))
SHAPE = (4, 20, 20)
LONG = TINY_CONFIG.replace(steps=100_000, compiled="auto")


@pytest.fixture
def faster(monkeypatch):
    """Makes a precision the faster one of this machine."""

    def set_faster(name, times=2.0):
        seconds = (1.0, times) if name == "float32" else (times, 1.0)
        monkeypatch.setattr(autotune, "precision_seconds", lambda *_: seconds)

    return set_faster


# Precision


def test_auto_is_the_default_and_is_float32_on_any_machine_unless_from_pixels(monkeypatch):
    monkeypatch.delattr(autotune, "precision_seconds")  # is not asked
    assert DQNConfig().precision == "float32"
    assert DQNConfig().replace(precision="auto").precision == "float32"
    assert DQNLearner(DQNConfig(), (INPUTS,), ACTIONS, [0]).choices == []
    assert PIXELS.precision == "auto"
    assert PIXELS.replace(precision="bfloat16").precision == "bfloat16"


@pytest.mark.parametrize("name, other", [("float32", "bfloat16"), ("bfloat16", "float32")])
def test_from_pixels_the_faster_precision_is_chosen_and_said(name, other, faster):
    faster(name, 7.25)
    agent = DQNLearner(PIXELS, SHAPE, ACTIONS, [0, 1])
    assert agent.config == PIXELS.replace(precision=name)
    assert agent.online.in_bfloat16 == agent.target.in_bfloat16 == (name == "bfloat16")
    assert agent.choices == [f"precision: {name}, 7.2 times as fast as {other} here"]


def test_what_is_declared_is_not_measured(monkeypatch):
    monkeypatch.delattr(autotune, "precision_seconds")
    for name in ("float32", "bfloat16"):
        agent = DQNLearner(PIXELS.replace(precision=name), SHAPE, ACTIONS, [0])
        assert (agent.config.precision, agent.choices) == (name, [])


def test_both_precisions_are_timed_forward_and_back_and_the_answer_is_kept(monkeypatch):
    timed = []

    def forward_and_back(network, observations):
        q_values = network(observations)
        assert q_values.shape == (3, 16, ACTIONS)
        timed.append(network.in_bfloat16)
        return 1.1 if network.in_bfloat16 else 1.0

    monkeypatch.setattr(autotune, "_forward_and_back", forward_and_back)
    config = PIXELS.replace(batch_size=16, hidden=(5,))
    for _ in range(2):
        assert autotune.precision_seconds(config, SHAPE, ACTIONS, runs=3) == (1.0, 1.1)
    assert timed == [False, True] * (1 + autotune.BENCHMARK_ROUNDS)


def test_a_device_without_bfloat16_computes_in_float32(monkeypatch):
    def forward_and_back(network, observations):
        if network.in_bfloat16:
            raise RuntimeError("not here")
        return 1.0

    monkeypatch.setattr(autotune, "_forward_and_back", forward_and_back)
    assert autotune.choose(PIXELS.replace(hidden=(6,)), SHAPE, 2).config.precision == "float32"


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available(),
    reason="only oneDNN on x86 can be told to leave instructions out",
)
def test_without_instructions_for_bfloat16_it_is_float32():
    """bfloat16 is emulated there, and an update takes several times as long."""
    script = (
        "from per_tutorial import DQNConfig, DQNLearner\n"
        "config = DQNConfig(env='ALE/Pong-v5', frame_size=42, hidden=(512,))\n"
        "print(DQNLearner(config, (4, 42, 42), 6, seeds=[0]).config.precision)"
    )
    older = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(
        command, env=os.environ | older, capture_output=True, text=True, timeout=120
    )
    assert result.stdout == "float32\n", result.stderr


def test_a_study_says_if_what_it_declares_is_slow_here(faster):
    pytest.importorskip("ale_py")
    config = STUDIES["pong"].arms["per"]
    faster("float32", 7.25)
    assert autotune.slow_precision(config) == (
        "precision: bfloat16 takes 7.2 times as long as float32 here; "
        "it is kept because the settings ask for it"
    )
    assert autotune.slow_precision(config.replace(precision="float32")) is None
    faster("bfloat16")
    assert autotune.slow_precision(config) is None


# Compiling


def test_a_short_training_is_not_compiled_and_no_compiler_is_looked_for(monkeypatch):
    monkeypatch.delattr(autotune, "why_not_compiled")
    agent = DQNLearner(TINY_CONFIG.replace(compiled="auto"), (INPUTS,), ACTIONS, [0])
    assert agent.config == TINY_CONFIG
    assert agent.choices == ["compiled: no, it takes longer than it would save in 130 updates"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "reason, compiled, line",
    [
        (None, True, "compiled: yes, for 99,980 updates"),
        ("there is no C++ compiler", False, "compiled: no, there is no C++ compiler"),
    ],
)
def test_a_long_training_is_compiled_where_it_can_be(reason, compiled, line, monkeypatch):
    monkeypatch.setattr(autotune, "why_not_compiled", lambda device: reason)
    agent = DQNLearner(LONG, (INPUTS,), ACTIONS, [0])
    assert agent.config == LONG.replace(compiled=compiled)
    assert agent.choices == [line]
    assert isinstance(agent._step, learner_module.CompiledStep) == compiled


def test_updates_count_and_those_from_pixels_gain_more(monkeypatch):
    monkeypatch.setattr(autotune, "why_not_compiled", lambda device: None)

    def is_compiled(config):
        return autotune.choose(config.replace(compiled="auto"), SHAPE, ACTIONS).config.compiled

    assert is_compiled(LONG) and not is_compiled(LONG.replace(update_every=2))
    pixels = PIXELS.replace(precision="float32", steps=20_000)
    assert is_compiled(pixels) and not is_compiled(pixels.replace(steps=9_000))
    assert not is_compiled(DQNConfig(steps=20_000))
    board = autotune.choose(pixels.replace(compiled="auto"), (4, 10, 10), ACTIONS)
    assert not board.config.compiled


def test_what_compiling_needs_is_named(monkeypatch, tmp_path):
    why_not_compiled = autotune.why_not_compiled.__wrapped__  # without what was found before
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert why_not_compiled("cpu") == "there is no C++ compiler"
    monkeypatch.setenv("CXX", sys.executable)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert why_not_compiled("cpu") == "there is no Python.h, which the C++ compiler needs"
    (tmp_path / "Python.h").touch()

    def compile_nothing(function):
        raise RuntimeError("not today")

    monkeypatch.setattr(torch, "compile", compile_nothing)
    assert why_not_compiled("cpu") == "a test compilation failed (RuntimeError)"
    assert why_not_compiled("mps") == "compiling on 'mps' is untested"


@pytest.mark.slow
@needs_compiler
def test_with_a_compiler_the_test_compilation_succeeds():
    assert autotune.why_not_compiled("cpu") is None


# What is written holds the choice


def test_histories_and_agents_hold_the_choice(tmp_path, faster, capsys):
    pytest.importorskip("ale_py")
    faster("bfloat16")
    config = PIXELS.replace(
        steps=60, learning_starts=40, capacity=100, batch_size=8, compiled="auto", update_every=10
    )
    history = train(config, seeds=0)
    assert capsys.readouterr().out.splitlines() == [
        "precision: bfloat16, 2.0 times as fast as float32 here",
        "compiled: no, it takes longer than it would save in 2 updates",
    ]
    history.save(tmp_path / "history.csv")
    history.agent.save(tmp_path / "agent.safetensors")
    faster("float32")
    chosen = config.replace(precision="bfloat16", compiled=False)
    loaded = DQNLearner.load(tmp_path / "agent.safetensors")
    assert history.config == History.load(tmp_path / "history.csv").config == chosen
    assert loaded.config == history.agent.config == chosen
    asked = DQNLearner.load(tmp_path / "agent.safetensors", precision="auto")
    assert asked.config.precision == "float32"


@pytest.mark.parametrize("name, env", [("precision", "ALE/Pong-v5"), ("compiled", "CartPole-v1")])
def test_an_agent_whose_file_leaves_a_choice_open_is_refused(name, env, tmp_path):
    """A file need not be trusted: it must not make this machine measure or compile."""
    config = DQNConfig(env=env, frame_size=20, hidden=(8,), precision="float32")
    shape = SHAPE if env.startswith("ALE") else (4,)
    path = tmp_path / "agent.safetensors"
    DQNLearner(config, shape, ACTIONS, [0]).save(path)
    with safe_open(path, framework="pt") as file:
        facts, tensors = file.metadata(), {each: file.get_tensor(each) for each in file.keys()}
    value = {"precision": '"precision": "float32"', "compiled": '"compiled": false'}[name]
    assert value in facts["config"]
    facts["config"] = facts["config"].replace(value, f'"{name}": "auto"')
    save_file(tensors, path, facts)
    with pytest.raises(ValueError, match="holds no agent .precision, compiled: must be"):
        DQNLearner.load(path)


@pytest.mark.slow
def test_a_training_goes_on_with_what_was_chosen_when_it_began(tmp_path, faster):
    pytest.importorskip("ale_py")
    config = PIXELS.replace(steps=60, learning_starts=20, capacity=100, batch_size=8)
    faster("bfloat16")
    with pytest.raises(Killed):
        train(config, seeds=0, checkpoints=Dying(tmp_path, [30], every=30))
    faster("float32")
    damaged = tmp_path / "step-000000000040.npz"  # as if it had been written last
    damaged.write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="is damaged"):
        history = train(config, seeds=0, checkpoints=Checkpoints(tmp_path))
    assert history.config.precision == "bfloat16"
    assert history.agent.online.in_bfloat16
    assert train(config, seeds=0).config.precision == "float32"  # one that begins anew


def test_with_nothing_to_go_on_from_the_settings_stay_open(tmp_path):
    config = PIXELS.replace(compiled="auto")
    assert Checkpoints(tmp_path / "new").resolve_auto(config) == config
    assert not (tmp_path / "new").exists()


# Devices without float64, such as Apple's


class NoFloat64(TorchDispatchMode):
    """Refuses to bring numbers of 64 bits to the device "meta", or to compute with them there."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        results = result if isinstance(result, (tuple, list)) else [result]
        for each in results:
            if isinstance(each, torch.Tensor) and each.device.type == "meta":
                assert each.dtype != torch.float64, function
        return result


def on_meta(monkeypatch):
    monkeypatch.setattr(learner_module, "check_device", lambda device: None)
    return DQNLearner(
        LEARNER_CONFIG.replace(device="meta", double=True), (INPUTS,), ACTIONS, [5, 6]
    )


def test_no_number_of_64_bits_is_sent_to_the_device(monkeypatch):
    with NoFloat64():
        learner = on_meta(monkeypatch)
        batch = random_batch(np.random.default_rng(0))
        wide = {
            name: getattr(batch, name).astype(np.float64)
            for name in ("observations", "rewards", "next_observations", "weights")
        }
        for each in (batch, batch._replace(**wide)):
            tensors = learner._on_device(each)
            assert {tensor.device.type for tensor in tensors} == {"meta"}
            learner._step(tensors)
        learner.update_target(0.5)


def test_the_watch_over_the_device_notices_64_bits(monkeypatch):
    with NoFloat64(), pytest.raises(AssertionError):
        torch.from_numpy(np.ones(3)).to("meta")
