"""Build the release from what is committed, check it, and try it where nothing else of this is.

python tools/release.py [TAG]    TAG, such as v0.2.0: first check that all is ready to be released
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST, PAGES = ROOT / "dist", ROOT / "notebooks"
BUFFER = """from per_tutorial import PrioritizedReplayBuffer
buffer = PrioritizedReplayBuffer(100, (2,), seed=0)
buffer.add([1, 2], 0, 1.0, [3, 4], True)
buffer.update_priorities(buffer.sample(1, beta=0.4).indices, [1.0])"""
TRAIN = "train --sampler proportional --steps 300 --learning-starts 100".split()


def unready(tag):
    """What must be otherwise before this is released under the tag: lines of text."""
    version = tag.removeprefix("v")
    wanted = {
        "per_tutorial/__init__.py": [f'__version__ = "{version}"'],
        "CHANGELOG.md": [f"## [{version}] - 20"],
        "CITATION.cff": [f"version: {version}\n"],
    }
    for path in PAGES.glob("*.ipynb"):  # it was run with this version, and clones the tag
        wanted[f"notebooks/{path.name}"] = [f'"per_tutorial": "{version}"', rf"BRANCH = \"{tag}\""]
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in wanted}
    missing = [(name, line) for name in wanted for line in wanted[name] if line not in texts[name]]
    return [f"{name}: must hold {line.strip()}" for name, line in missing]


def export(folder):
    """Write the committed files to a folder; the README's links become whole, for PyPI."""
    subprocess.run(["git", "archive", "--output", f"{folder}.tar", "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(f"{folder}.tar") as archive:
        archive.extractall(folder, filter="data")
    pyproject = (folder / "pyproject.toml").read_text(encoding="utf-8")
    home = re.search(r'^Repository = "(.+)"', pyproject, re.MULTILINE)[1]
    text = (folder / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?![a-z]+:)", rf"\g<1>{home}/raw/HEAD/", text)
    text = re.sub(r"(\]\()(?![a-z]+:|#)", rf"\g<1>{home}/blob/HEAD/", text)
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")


def main(tag=None):
    """Build into `dist`, check and try; ends with what is wrong if anything is."""
    if tag and (reasons := unready(tag)):
        sys.exit("\n".join(reasons))
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        export(source)
        subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, source], check=True)
        (wheel,), built = DIST.glob("*.whl"), DIST.iterdir()
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=True)
        # The trial, in an empty environment: the wheel alone, then with what the notebooks need
        subprocess.run([sys.executable, "-m", "venv", "empty"], cwd=place, check=True)
        shutil.copy(PAGES / "01_segment_tree.ipynb", place)
        python = Path(place) / "empty" / "bin" / "python"
        pip = ["-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
        subprocess.run([python, *pip, wheel], cwd=place, check=True)
        subprocess.run([python, "-c", BUFFER], cwd=place, check=True)
        extras = [f"{wheel}[notebooks]", "nbclient", "ipykernel"]
        subprocess.run([python, *pip, *extras], cwd=place, check=True)
        subprocess.run([python, "-m", "per_tutorial", *TRAIN], cwd=place, check=True)
        page = ["-m", "jupyter", "execute", "01_segment_tree.ipynb"]
        subprocess.run([python, *page], cwd=place, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
