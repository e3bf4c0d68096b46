"""An examination for any prioritised replay buffer.

`adapter.py` says what the examination must know of a buffer, `questions/` what it asks,
`examination.py` asks, and `report.py` shows the answers.
"""

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings

__all__ = ["Adapter", "Drawn", "Settings"]
