"""What the examination asks, in its order. Each module registers its questions when it is imported."""

from per_tutorial.conformance.questions import (  # noqa: F401, I001  (in the order of reports)
    distribution,
    weights,
    newcomers,
    life_cycle,
    numerics,
    n_step,
    saving,
    bad_input,
)
