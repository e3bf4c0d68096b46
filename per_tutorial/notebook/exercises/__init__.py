"""The exercises as data, a file for each notebook: right answers, inputs, mistakes and their hints.

An exercise is declared by `function_exercise` of `checking.declaring`, or by its checker in
`CHECKERS`, and found by its name, which begins with the number of its notebook.
"""
