"""`python -m per_tutorial`: the command line (see `per_tutorial.cli`)."""

import io
import sys

from per_tutorial.cli import main

if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe on Windows may not encode α
        sys.stdout.reconfigure(errors="replace")
    main()
