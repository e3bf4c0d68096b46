"""Try extras in empty environments: what is missing is named, and what is installed works.

    python tools/extras.py examine             one extra
    python tools/extras.py                     all; several bring PyTorch, which takes long

For each, a new environment gets the checkout without extras, and the line below must say what to
install. Then it gets the extra, and the line must work.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRAIN = "-m per_tutorial train --steps 300 --learning-starts 100"
# extra → the words after `python`
TRIED = {
    "examine": ["-m", "per_tutorial", "examine", "uniform", "--check", "handling"],
    "dqn": TRAIN.split(),
    "atari": ["-c", "from per_tutorial import make_atari_env as f; import ale_py, cv2"],
    "minatar": [*TRAIN.split(), "--env", "MinAtar/Breakout-v1"],
    "sb3": ["-c", "from per_tutorial.integrations.sb3 import PrioritizedDQN"],
    "tensorboard": [*TRAIN.split(), "--tensorboard", "runs"],
    "tianshou": ["-c", "from per_tutorial.integrations.tianshou import PrioritizedReplayBuffer"],
    "torchrl": ["-c", "from per_tutorial.integrations.torchrl import PrioritizedSampler"],
    "notebooks": ["-c", "from per_tutorial.notebook import show"],
}


def tried(extra, place):
    """Ends the program with what is wrong, if anything is."""
    python = place / "empty" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]

    def run(words):
        return subprocess.run([python, *words], cwd=place, capture_output=True, text=True)

    subprocess.run([sys.executable, "-m", "venv", "--clear", place / "empty"], check=True)
    subprocess.run([*pip, ROOT], check=True)
    before = run(TRIED[extra])
    if 'pip install "per_tutorial[' not in before.stderr:
        sys.exit(f"{extra}: must say what to install, got {before.stdout}{before.stderr}")
    subprocess.run([*pip, f"{ROOT}[{extra}]"], check=True)
    after = run(TRIED[extra])
    if after.returncode:
        sys.exit(f"{extra}: must work, got {after.stdout}{after.stderr}")
    print(f"{extra}: works", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or TRIED:
        if name not in TRIED:
            sys.exit(f"EXTRA: must be one of {', '.join(TRIED)}, got {name!r}")
        with tempfile.TemporaryDirectory() as folder:
            tried(name, Path(folder))
