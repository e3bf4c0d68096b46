"""In which order the files are tested, what they leave behind, how long each notebook takes."""

import os
import tempfile

import pytest

FAST_LIMIT = 60  # seconds, the start of the kernel included


def pytest_configure(config):
    """Stable-Baselines3 makes a folder for each training; here it makes them in one of ours."""
    # Short, since the names of Ray's sockets begin with it.
    folder = tempfile.TemporaryDirectory(prefix="per-tests-", ignore_cleanup_errors=True)
    os.environ["SB3_LOGDIR"] = folder.name  # kernels and workers inherit it
    config.add_cleanup(folder.cleanup)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    """A notebook's kernel starts here. nbval kills it in the end, so it cannot tidy up itself."""
    with pytest.MonkeyPatch.context() as patch:
        if item.path.suffix == ".ipynb":
            patch.setenv("TMPDIR", os.environ["SB3_LOGDIR"])
        yield


def pytest_collection_modifyitems(items):
    """Begin with the files that have most slow tests, then the notebooks, then the others.

    A file stays with one worker, so what takes long must not come last. Within a file everything
    keeps its place, as the cells of a notebook must.
    """
    slow, place = {}, {}
    for item in items:
        slow[item.path] = slow.get(item.path, 0) + (item.get_closest_marker("slow") is not None)
        place.setdefault(item.path, len(place))

    def rank(item):
        return -slow[item.path], item.path.suffix != ".ipynb", place[item.path]

    items.sort(key=rank)


def pytest_terminal_summary(terminalreporter):
    """Add up the time of each notebook's cells: a figure to read, since machines differ."""
    seconds = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            file = getattr(report, "nodeid", "").partition("::")[0]
            if file.endswith(".ipynb") and hasattr(report, "duration"):
                seconds[file] = seconds.get(file, 0) + report.duration
    if seconds:
        terminalreporter.section(f"notebooks in fast mode (limit {FAST_LIMIT} s)")
    for file, took in sorted(seconds.items()):
        terminalreporter.line(f"{took:6.1f} s  {file}{'  OVER' if took > FAST_LIMIT else ''}")
