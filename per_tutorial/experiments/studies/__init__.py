"""Studies: declared before they run, run in stacks of runs, read as results."""
