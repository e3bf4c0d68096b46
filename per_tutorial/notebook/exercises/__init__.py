"""The exercises' checkers, a file for each notebook, and the mistakes that they know.

A function `@checks("NN.K")` in `notebook_NN` is found by the exercise's name (`notebook/checking`).
"""
