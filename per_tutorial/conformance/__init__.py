"""An examination for any prioritised replay buffer.

```python
from per_tutorial.conformance import Adapter, Drawn, examine

print(examine(MyAdapter))  # or any class with make, add, sample and update
```

`adapter.py` says what the examination must know of a buffer, `questions/` holds what it asks, a
file a subject, `examination.py` asks, and `report.py` shows the answers. `adapters/` has those of
this package; those of other libraries are in the repository, in `tools/examined/adapters/`.
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
