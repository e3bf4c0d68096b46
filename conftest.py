"""The order of the tests on several workers, and how long each notebook takes in fast mode."""

FAST_LIMIT = 60  # seconds, the start of the kernel included

# A file stays with one worker. What takes longest starts first, so that no worker ends long after
# the others. All other files follow as they were found.
LONGEST_FIRST = (
    "test_site.py",
    "test_browser.py",
    "test_explorables.py",
    "test_notebook_07.py",
    "test_mutants.py",
    "test_studies_on_ray.py",
    "test_apex_on_ray.py",
    "test_pixels.py",
    "test_checkpoints.py",
    "05_atari_per.ipynb",
    "test_training.py",
    "04_d3qn_per.ipynb",
    "test_attack.py",
    "test_compiled.py",
    "test_examination.py",
    "test_sb3_algorithms.py",
    "test_examples.py",
    "test_release.py",
    "test_known_bugs.py",
    "test_runner.py",
    "test_atari.py",
    "06_your_own_agent.ipynb",
    "02_uniform_dqn.ipynb",
    "03_per_dqn.ipynb",
    "test_contracts.py",
    "test_rank_based.py",
    "test_interrupts.py",
    "test_learner.py",
)


def pytest_collection_modifyitems(items):
    """Sort the files; within a file everything keeps its place, as the cells of a notebook must."""
    rank = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


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
