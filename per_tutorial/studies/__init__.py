"""Studies: declared before they run, run in parts, read as results."""
