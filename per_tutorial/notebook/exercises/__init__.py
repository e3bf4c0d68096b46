"""The exercises, a file for each notebook: a right answer, the inputs that matter, usual mistakes.

To add one, add an `Exercise` of `per_tutorial.notebook.checking` to `EXERCISES` in the file of its
notebook. `check` finds it by its name. Many references take a step of theirs as an argument, so
that a usual mistake can be written as the right answer with one wrong step.
"""
