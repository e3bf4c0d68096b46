"""PAL against LAP over a sweep of learning rates.

PAL's λ is that of a minibatch, so its mean step is not quite LAP's, and one learning rate says
little about which is better. Both have α = 0.6, and κ of the size of the rewards, as in
`equal_alpha`.
"""

import dataclasses

from per_tutorial.experiments.studies.declared.after_per import AFTER_PER_STUDIES
from per_tutorial.experiments.studies.declared.equal_alpha import equal_alpha_methods
from per_tutorial.experiments.studies.study import Study

SHARES = {"quarter": 0.25, "half": 0.5, "once": 1.0, "twice": 2.0, "four": 4.0}  # of the rate η


def _step_sizes(study: Study) -> Study:
    """The world of `study` at five learning rates, with runs of other seeds."""
    base, changes = study.arms["uniform"], equal_alpha_methods()
    arms = {
        f"{method}-{words}": base.replace(
            learning_rate=base.learning_rate * share, **changes[f"{method}-6"]
        )
        for words, share in SHARES.items()
        for method in ("lap", "pal")
    }
    return dataclasses.replace(
        study,
        name=study.name.replace("after", "step-sizes"),
        question="Is PAL as good as LAP at some learning rate, or at all of them?",
        arms=arms,
        comparisons=tuple((f"pal-{words}", f"lap-{words}") for words in SHARES),
        seeds=range(530, 560),
    )


STEP_SIZE_STUDIES = tuple(_step_sizes(study) for study in AFTER_PER_STUDIES)
