"""The exercises as data, a file for each notebook: right answers, inputs, mistakes and their hints.

An exercise is declared by `function_exercise` or `value_exercise` of `checking.declaring` (in
notebook 07 by its checker), and found by its name, which begins with the number of its notebook.
"""
