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
TRAIN = "-m per_tutorial train --steps 300 --learning-starts 100".split()
# extra → the words after `python`
TRIED = {
    "examine": "-m per_tutorial examine uniform --check handling".split(),
    "dqn": TRAIN,
    "atari": ["-c", "from per_tutorial import make_atari_env as f; import ale_py, cv2"],
    "minatar": [*TRAIN, "--env", "MinAtar/Breakout-v1"],
    "sb3": ["-c", "from per_tutorial.integrations.sb3 import PrioritizedDQN"],
    "tensorboard": [*TRAIN, "--tensorboard", "runs"],
    "tianshou": ["-c", "import per_tutorial.integrations.tianshou"],
    "torchrl": ["-c", "from per_tutorial.integrations.torchrl import PrioritizedSampler"],
    "notebooks": ["-c", "from per_tutorial.notebook import show"],
}


def tried(extra, place):
    """The results of its line before and after the extra is installed in a new environment."""
    subprocess.run([sys.executable, "-m", "venv", "empty"], cwd=place, check=True)
    python = Path(place, "empty", "bin", "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    for what in (ROOT, f"{ROOT}[{extra}]"):
        subprocess.run([*pip, what], check=True)
        yield subprocess.run([python, *TRIED[extra]], cwd=place, capture_output=True, text=True)


if __name__ == "__main__":
    for extra in sys.argv[1:] or TRIED:
        with tempfile.TemporaryDirectory() as place:
            before, after = tried(extra, place)
        if 'pip install "per_tutorial[' not in before.stderr or after.returncode:
            sys.exit(f"{extra}:\n{before.stderr}\n{after.stdout}{after.stderr}")
        print(f"{extra}: works", flush=True)
