"""Reports how long each notebook takes in fast mode, beside the time it is meant to stay under."""

FAST_LIMIT = 60  # seconds, the start of the kernel included


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
