"""Build the release, check it, and try it where nothing of the repository is.

python tools/release.py            builds dist/*.whl and dist/*.tar.gz from what git tracks
python tools/release.py --tag v…   first checks that all is ready to be released under this tag,
                                   and with --in OWNER/NAME, in this repository

The trial installs the wheel into an empty environment in a temporary folder, with the versions of
constraints.txt. First the wheel alone, with which the buffers and their files work; then with the
extra `notebooks`, with which the command line, an examination and a notebook in fast mode run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import addresses
from notebook_files import NOTEBOOKS, ROOT

DIST = ROOT / "dist"
NOTEBOOK = "03_per_dqn.ipynb"
PROGRAMS = "Scripts" if os.name == "nt" else "bin"

# What the wheel alone must do, with all that pip installed for it.
BUFFERS = """
from importlib.metadata import distributions
from per_tutorial import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer

installed = {found.metadata["Name"].lower() for found in distributions()}
needed = {"llvmlite", "numba", "numpy", "per_tutorial"}
assert installed - {"pip", "setuptools"} == needed, installed
for kind in (ReplayBuffer, PrioritizedReplayBuffer, RankBasedReplayBuffer):
    buffer = kind(100, (2,), seed=0)
    for k in range(120):
        buffer.add([k, 1], k % 3, 1.0, [k + 1, 1], k % 10 == 9)
    if kind is not ReplayBuffer:
        buffer.update_priorities(buffer.sample(32, beta=0.4).indices, range(32))
    buffer.save("buffer.npz")
    twin = kind(100, (2,), seed=1)
    twin.load("buffer.npz")
    assert (twin.sample(32).indices == buffer.sample(32).indices).all(), kind
"""
# What is tried in the empty environment, as arguments of its Python: with the wheel alone, …
ALONE = (
    ("-c", BUFFERS),
    ("-m", "per_tutorial"),
    ("-m", "per_tutorial", "examine", "proportional", "--quiet"),
)
# … and with the extra `notebooks`.
SHORT = ("--runs", "2", "--steps", "300", "--learning-starts", "100", "--quiet")
TRIALS = (
    ("-m", "per_tutorial", "--help"),
    ("-m", "per_tutorial", "train", "--sampler", "proportional", *SHORT),
    ("-m", "per_tutorial", "evaluate", "long-cartpole", "--episodes", "2"),
    ("-m", "per_tutorial", "study", "hundred-runs", "--fast", "--quiet"),
    ("-m", "per_tutorial", "cliffwalk", "--longest", "4", "--quiet"),
    ("-m", "per_tutorial", "examine", "proportional"),
    ("-m", "jupyter", "execute", NOTEBOOK),
)


def tracked():
    """The names of the files that git tracks and that are there."""
    answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    names = filter(None, answer.stdout.decode().split("\0"))
    return [name for name in names if (ROOT / name).is_file()]


# Before -----------------------------------------------------------------------------------------


def unready(tag, running_in=None):
    """Why this repository, `running_in`, cannot be released under this tag: sentences."""
    reasons = []
    if tag != f"v{addresses.version()}":
        reasons.append(f"the tag is {tag}, and the version {addresses.version()}")
    if not re.fullmatch(r"v\d+\.\d+\.\d+(rc\d+)?", tag):
        reasons.append(f"{tag} is not the tag of a release")
    if addresses.release() != tag:
        reasons.append(f"CHANGELOG.md has {addresses.release()} as the last release")
    if not addresses.is_set():
        reasons.append("the address is not set: make addresses")
    if running_in and (advice := addresses.wrong_place(running_in)):
        reasons.append(advice)
    if names := addresses.disagreeing():
        reasons.append(f"make addresses would change {', '.join(names)}")
    return reasons


# Building ---------------------------------------------------------------------------------------


def absolute_links(text, blob, raw):
    """A page with absolute links into the repository: PyPI shows it, and has no such files."""
    text = re.sub(r"(!\[[^]]*\]\()(?![a-z]+:|#)", rf"\g<1>{raw}/", text)
    return re.sub(r"(?<!!)(\[[^]]*\]\()(?![a-z]+:|#)", rf"\g<1>{blob}/", text)


def export(folder):
    """Copy the tracked files to a folder; the README's links become absolute. Returns the names."""
    names = tracked()
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    tag = f"v{addresses.version()}"
    blob, raw = (f"{addresses.address()}/{kind}/{tag}" for kind in ("blob", "raw"))
    readme = folder / "README.md"
    text = absolute_links(readme.read_text(encoding="utf-8"), blob, raw)
    readme.write_text(text, encoding="utf-8", newline="\n")
    return names


def build(source, out):
    """Build wheel and sdist of an exported tree; returns the paths of both."""
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", out, source], check=True)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


# Contents ---------------------------------------------------------------------------------------


def members(path):
    """The names of the files in a wheel or an sdist, without the sdist's own folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(path) as sdist:
        files = {member.name for member in sdist.getmembers() if member.isfile()}
    return {name.partition("/")[2] for name in files}


def wrong_contents(names, package):
    """What is missing among the files of a wheel or an sdist, and what has no business there.

    Args:
        names: the files of the wheel or sdist.
        package: the files that git tracks below `per_tutorial/`.
    """
    metadata = re.compile(r"[^/]+\.(dist-info|egg-info)/")
    frame = {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    wrong = [f"without {name}" for name in sorted(set(package) - names)]
    for name in sorted(names - set(package) - frame):
        if not metadata.match(name):
            wrong.append(f"with {name}")
    if not any(name.endswith("LICENSE") for name in names):
        wrong.append("without LICENSE")
    return wrong


# The trial --------------------------------------------------------------------------------------


def try_out(wheel, folder, constraints):
    """Install a wheel in a new environment in `folder`, and run everything there."""
    python = folder / "environment" / PROGRAMS / "python"
    work = folder / "work"
    work.mkdir()
    shutil.copy(NOTEBOOKS / NOTEBOOK, work)
    shutil.copytree(NOTEBOOKS / "results", work / "results")  # they are not in the wheel
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"PER_TUTORIAL_FAST": "1", "OMP_NUM_THREADS": "1"}

    def run(*arguments):
        print("$ python", *(str(word).partition("\n")[0] or "…" for word in arguments), flush=True)
        subprocess.run([python, *arguments], cwd=work, env=environment, check=True)

    def install(*what):
        run("-m", "pip", "install", "--quiet", "--constraint", constraints, *what)

    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    install(wheel)
    where = subprocess.run(
        [python, "-c", "import per_tutorial; print(per_tutorial.__file__)"],
        cwd=work,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    if not Path(where.stdout.strip()).resolve().is_relative_to(folder.resolve()):
        raise RuntimeError(f"the package that was tried is another one: {where.stdout}")
    for arguments in ALONE:
        run(*arguments)
    install(f"{wheel}[notebooks]", "nbclient", "ipykernel")
    for arguments in TRIALS:
        run(*arguments)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tag", help="the tag under which this will be released")
    parser.add_argument(
        "--in", dest="running_in", metavar="OWNER/NAME", help="where a workflow runs"
    )
    options = parser.parse_args()
    if options.tag and (reasons := unready(options.tag, options.running_in)):
        sys.exit(f"not ready: {'; '.join(reasons)}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = export(folder / "source")
        built = build(folder / "source", DIST)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=True)
        package = [name for name in names if name.startswith("per_tutorial/")]
        for path in built:
            if wrong := wrong_contents(members(path), package):
                sys.exit(f"{path.name} is {', '.join(wrong)}")
        try_out(built[0], folder, ROOT / "constraints.txt")
    print("ready:", *(path.relative_to(ROOT) for path in built))


if __name__ == "__main__":
    main()
