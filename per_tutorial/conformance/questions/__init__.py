"""The questions of the examination: a module registers its own when it is imported."""

# ruff: noqa: F401, I001  (in the order of reports: what others depend on comes first)
import per_tutorial.conformance.questions.basics
import per_tutorial.conformance.questions.distribution
import per_tutorial.conformance.questions.weights
import per_tutorial.conformance.questions.new_transitions
import per_tutorial.conformance.questions.life_cycle
import per_tutorial.conformance.questions.numerics
import per_tutorial.conformance.questions.n_step
import per_tutorial.conformance.questions.saving
import per_tutorial.conformance.questions.robustness
