"""Ctrl-C at a chosen place: a trace function raises KeyboardInterrupt inside the package."""

import sys
from pathlib import Path

import toy_samplers

import per_tutorial

INTERRUPTED = (str(Path(per_tutorial.__file__).parent), toy_samplers.__file__)
SPARED = ("arguments.py", "fields.py")  # which only look at what a call was given


def interrupted(call, after):
    """Call, and interrupt it before the ``after``-th line of the package; whether it was."""
    left = after

    def enter(frame, event, argument):
        file = frame.f_code.co_filename
        if file.startswith(INTERRUPTED) and not file.endswith(SPARED):
            return count

    def count(frame, event, argument):
        nonlocal left
        left -= event == "line"
        if left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return count

    previous = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(previous)
    return False
