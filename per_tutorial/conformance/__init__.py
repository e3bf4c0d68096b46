"""An examination for any prioritised replay buffer.

```python
from per_tutorial.conformance import Adapter, Drawn, examine

print(examine(MyAdapter))  # or any class with make, add, sample and update
```

`adapter.py` defines what the examination needs to know of a buffer, `questions/` holds the
questions by subject, `examination.py` asks them, and `report.py` shows the answers. `adapters/` has
this package's adapters; those of other libraries are in the repository, in
`tools/examined/adapters/`.
"""

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.conformance.adapters import ADAPTERS, find_adapter
from per_tutorial.conformance.answers import (
    QUESTIONS,
    Answer,
    ExaminationError,
    Fault,
    Question,
    Verdict,
)
from per_tutorial.conformance.examination import examine, false_alarm_rate
from per_tutorial.conformance.report import Report
from per_tutorial.replay.contracts import Transition

__all__ = [
    "ADAPTERS",
    "QUESTIONS",
    "Adapter",
    "Answer",
    "Drawn",
    "ExaminationError",
    "Fault",
    "Question",
    "Report",
    "Settings",
    "Transition",
    "Verdict",
    "examine",
    "false_alarm_rate",
    "find_adapter",
]
