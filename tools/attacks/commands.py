"""Wrong command lines: each must end soon, in one clear line and a status, no traceback."""

import gzip
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attacks.children import MIB, PATIENCE, in_children

SECONDS = 2.0  # beyond the imports
LONGEST_LINE = 800
WARNING = "python -m per_tutorial: warning: "  # such as of a damaged checkpoint, before the error
IN_A_SHELL = 50  # one command in this many is tried as a shell sees it, too

# What is never right, whatever the command's other words are. {word} stands for a file or a folder
# that `_furnish` makes.
SMALL = (
    "train --runs 1 --steps 60 --hidden 4 --batch-size 4 --learning-starts 20 --episodes 1 --quiet"
)
TRAIN = [
    # numbers out of range
    *(f"--{name} 0" for name in (
        "steps", "runs", "episodes", "capacity", "environments", "hidden", "learning-rate",
        "n-step", "batch-size", "learning-starts", "update-every", "target-update-every", "tau",
        "epsilon-steps", "max-episode-steps", "td-error-clip", "max-grad-norm", "beta-steps",
        "priority-epsilon",
    )),
    *(f"--{name} -1" for name in (
        "steps", "runs", "first-seed", "capacity", "episodes", "alpha", "discount",
        "learning-rate-end",
    )),
    *(f"--{name} nan" for name in (
        "alpha", "discount", "learning-rate", "priority-epsilon", "terminal-reward", "tau",
    )),
    *(f"--{name} inf" for name in (
        "learning-rate", "terminal-reward", "max-grad-norm", "beta-end",
    )),
    "--alpha 2", "--discount 1.5", "--tau 1.5", "--frame-size 3", "--sticky-actions 2",
    "--priority-epsilon 1e308", "--priority-epsilon 1e-300", "--hidden 8 0", "--hidden -1",
    "--checkpoint here --checkpoint-every 0", "--checkpoint here --checkpoint-every -5",
    # numbers that nobody means
    "--capacity 10000000000", "--capacity 1000000000000", f"--capacity {10**30}",
    "--hidden 1000000000", "--hidden 100000 100000 100000", f"--hidden {10**25}",
    "--hidden " + " ".join(["300"] * 100_000),
    "--runs 1000000000", f"--runs {10**30}", f"--first-seed {10**30} --runs {10**30}",
    "--runs 10000000",
    *(f"--{name} {10**30}" for name in (
        "steps", "n-step", "batch-size", "max-episode-steps", "learning-starts", "update-every",
        "epsilon-steps", "target-update-every", "beta-steps",
    )),
    "--batch-size 10000000000 --learning-starts 10000000000 --capacity 10000000000",
    "--episodes 1000000000", f"--episodes {10**30}",
    f"--checkpoint here --checkpoint-every {10**30}",
    "--steps " + "9" * 5000,  # more digits than Python reads
    # settings that do not go together
    "--batch-size 20 --learning-starts 10", "--capacity 10 --learning-starts 20",
    "--n-step 99 --capacity 40", "--environments 2",
    "--env ALE/Pong-v5 --environments 7 --steps 60",
    "--checkpoint-copy copies", "--out same --save same", "--out same --save ./same",
    # names
    "--env Cartpole-v1", "--env nowhere:Maze-v0", "--env ''", "--env ALE/Pongg-v5", "--env ALE/",
    "--env ../x", "--env Pendulum-v1", "--env :", "--env 'a b'",
    "--sampler best", "--loss cubic", "--normalize all", "--beta-schedule x",
    "--epsilon-schedule x", "--precision float16", "--vectorization async",
    # devices
    *(f"--device {name}" for name in (
        "abacus", "hpu", "meta", "mps", "xpu", "cpu:7", "cpu:-1", "cuda:99", "''", "cuda:x", "xla",
        "vulkan", "privateuseone", "mkldnn", "lazy", "fpga",
    )),
    # places
    "--out ''", "--save ''", "--out nowhere/history.csv", "--save nowhere/agent", "--out folder",
    "--save folder", "--out file/history.csv", "--save file/agent", "--checkpoint file",
    "--checkpoint ''", "--checkpoint here --checkpoint-copy nowhere/copies",
    "--checkpoint here --checkpoint-copy ''", "--checkpoint here --checkpoint-copy file",
    "--checkpoint file/here", "--checkpoint here --checkpoint-copy here",
    "--tensorboard file", "--tensorboard ''", "--checkpoint damaged", "--out /proc/history",
    # words that are no options
    "--steps", "--steps many", "--alpha much", "--hidden a b", "--runs 1.5", "--runs 1e3",
    "--steps ''", "--alhpa 0.5", "--double maybe", "--quiet=yes", "more",
]  # fmt: skip
DEVICES = ("hpu", "meta", "mps", "cpu:7", "''", "abacus")
OTHERS = [
    "trian", "--version-of-what", "--", "''",
    "evaluate", "evaluate nobody", "evaluate ../pong", "evaluate ''",
    "evaluate long-cartpole --episodes 0", "evaluate long-cartpole --episodes -3",
    "evaluate long-cartpole --episodes 1000000000", f"evaluate long-cartpole --episodes {10**30}",
    "evaluate long-cartpole --episodes x",
    *(f"evaluate long-cartpole --device {name}" for name in DEVICES),
    "study", "study ablation", "study hundred-runs --processes 0",
    "study hundred-runs --processes -2", "study hundred-runs --processes 1000000",
    f"study hundred-runs --processes {10**30}", "study hundred-runs --processes two",
    "study hundred-runs --out ''", "study hundred-runs --out file",
    "study hundred-runs --out file/results", "study hundred-runs --fast --out without-stacks",
    "study hundred-runs --fast --out empty-file", "study hundred-runs --fast --out heading-list",
    "study hundred-runs --fast --out other-stacks", "study hundred-runs --fast --out null-settings",
    "study hundred-runs --fast --out damaged-stack",
    "study hundred-runs --fast --out folder-as-file",
    *(f"study hundred-runs --fast --processes 1 --device {name}" for name in DEVICES),
    *(f"cliffwalk --longest {value}" for value in ("1", "0", "-5", "x", "1000000", 10**30)),
    "cliffwalk --out ''", "cliffwalk --out nowhere/walks.csv", "cliffwalk --out folder",
    "cliffwalk --out file/walks.csv", "cliffwalk --out text --longest 2",
    "cliffwalk --out /proc/walks.csv", "cliffwalk --out png-is-a-folder --longest 2",
    "cliffwalk --out other-settings --longest 2", "cliffwalk --longest 2.5",
]  # fmt: skip
COMMANDS = [*(f"{SMALL} {words}" for words in TRAIN), *OTHERS]
COUNT = len(COMMANDS)


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Try ``count`` of the command lines, all by default; returns the findings."""
    from per_tutorial.__main__ import main

    _import_everything()
    commands = random.Random(seed).sample(COMMANDS, min(count, COUNT))
    findings = []
    with tempfile.TemporaryDirectory() as place:

        def work(number: int) -> list[str]:
            folder = Path(place, str(number))
            folder.mkdir()
            _furnish(folder)
            return _try(main, shlex.split(commands[number]), folder)

        for number, found, ending in in_children(
            work, len(commands), seconds=PATIENCE, memory=6 * 1024 * MIB
        ):
            for finding in found if ending is None else [ending]:
                findings.append(f"{_shown(commands[number])}\n    {finding}")
    for command in commands[::IN_A_SHELL]:
        with tempfile.TemporaryDirectory() as place:
            _furnish(Path(place))
            words = shlex.split(command)
            done = subprocess.run(
                [sys.executable, "-m", "per_tutorial", *words],
                cwd=place,
                capture_output=True,
                text=True,
                timeout=60,
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            )
            findings += [
                f"{_shown(command)}\n    in a shell: {finding}"
                for finding in judge(words, done.returncode, done.stderr)
            ]
    log(f"commands: {len(commands)} wrong command lines, {len(findings)} findings")
    return findings


def _import_everything() -> None:
    """What commands import when they begin: it shall not count."""
    import matplotlib.figure  # noqa: F401
    import torch.utils.tensorboard  # noqa: F401

    from per_tutorial.dqn import callbacks, training  # noqa: F401
    from per_tutorial.dqn.environments import atari  # noqa: F401
    from per_tutorial.dqn.learner import check_device
    from per_tutorial.experiments.cliffwalk import figures  # noqa: F401
    from per_tutorial.experiments.studies import results, runner  # noqa: F401

    check_device("cpu")
    with suppress(ValueError):
        check_device("meta")  # imports much


def _try(main: Callable[[list[str]], object], words: list[str], folder: Path) -> list[str]:
    """What is wrong about how a command line ends, in this process."""
    os.chdir(folder)
    errors = os.open("stderr", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    os.dup2(errors, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    status: object = 0
    warnings.simplefilter("default")
    start = time.process_time()  # of this process alone: others may be busy
    try:
        main(words)
    except SystemExit as end:
        status = end.code
    except BaseException:
        status = 1
        traceback.print_exc()
    took = time.process_time() - start
    if isinstance(status, str):
        print(status, file=sys.stderr)
    sys.stderr.flush()
    os.close(errors)
    findings = judge(words, status, Path("stderr").read_text(errors="replace", encoding="utf-8"))
    return findings or ([f"it took {took:.1f} s"] if took > SECONDS else [])


def judge(words: list[str], status: object, errors: str) -> list[str]:
    """One clear line, below the usage if argparse shows that; and a status that is not 0."""
    if "Traceback (most recent call last)" in errors:
        return ["a traceback: " + errors.strip().splitlines()[-1][:200]]
    if not status:
        return ["it is accepted"]
    said = re.sub(r"\Ausage:.*\n(?: .*\n)*", "", errors)
    lines = [line for line in said.splitlines() if not line.startswith(WARNING)]
    if len(lines) != 1:
        return [f"{len(lines)} lines: {' | '.join(lines)[:300]}"]
    findings = []
    if len(lines[0]) > LONGEST_LINE + sum(map(len, words)):
        findings.append(f"a line of {len(lines[0])} characters: {lines[0][:100]} …")
    if not re.fullmatch(r"python -m per_tutorial[\w ]*: \S.*\S", lines[0]):
        findings.append(f"an unclear line: {lines[0][:200]!r}")
    return findings


def _furnish(folder: Path) -> None:
    """Files and folders that some of the command lines name."""
    (folder / "folder").mkdir()
    (folder / "png-is-a-folder.png").mkdir()
    (folder / "file").write_text("something else\n", encoding="utf-8")
    (folder / "text").write_text("something else\n", encoding="utf-8")
    (folder / "damaged").mkdir()
    for step in (20, 40):
        (folder / "damaged" / f"step-{step:012d}.npz").write_bytes(b"PK\x03\x04")
    columns = "arm,seed,measure,at,value\n"
    walk = "figure,n,sampler,alpha,run,updates,seconds\n"
    (folder / "other-settings").write_text(
        f'# {{"settings": {{"runs": 3}}, "rows": 0}}\n{walk}', encoding="utf-8"
    )
    headings = {
        "without-stacks": {"rows": 0},
        "heading-list": [],
        "other-stacks": {"rows": 0, "stacks": 3},
        "null-settings": {
            "rows": 0,
            "stacks": [{"arm": "uniform", "seeds": None, "settings": None}],
        },
    }
    name = "hundred-runs-fast"
    for place, heading in headings.items():
        (folder / place).mkdir()
        data = gzip.compress(f"# {json.dumps(heading)}\n{columns}".encode())
        (folder / place / f"{name}.csv.gz").write_bytes(data)
    (folder / "empty-file").mkdir()
    (folder / "empty-file" / f"{name}.csv.gz").write_bytes(b"")
    (folder / "folder-as-file" / f"{name}.csv.gz").mkdir(parents=True)
    (folder / "damaged-stack" / name).mkdir(parents=True)
    for arm in ("uniform", "per"):
        for seeds in ("0-1", "2-2"):
            (folder / "damaged-stack" / name / f"{arm}.seeds-{seeds}.csv").write_text(
                "# null\n", encoding="utf-8"
            )


def _shown(command: str) -> str:
    text = command.replace(SMALL, "train …")
    return text if len(text) < 120 else f"{text[:100]} … ({len(text)} characters)"
