"""`python -m per_tutorial`: the command line, whose commands are in `per_tutorial.cli`."""

import io
import sys

from per_tutorial.cli import main

if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe on Windows may know no α
        sys.stdout.reconfigure(errors="replace")
    main()
