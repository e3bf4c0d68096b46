"""The notebooks' exercises: `check` says whether an answer is right, or what probably went wrong.

| file | what it holds |
|---|---|
| `checking` | `check`, and the register of checkers, one for each exercise |
| `answers` | calls an answer and reads what it returns, whatever it does |
| `comparing` | compares an answer with the right one, and finds the mistake that explains it |
| `tensors` | the same for torch: arguments, results and gradients |
| `trees` | sum trees, right and wrong, for the checkers of notebook 01 |
| `notebook_00` … `notebook_05` | the checkers, and the mistakes that they know |
"""

from per_tutorial.notebook.exercises.checking import check

__all__ = ["check"]
