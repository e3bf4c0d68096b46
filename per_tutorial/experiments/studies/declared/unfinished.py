"""ReaPER with unfinished episodes as in the paper, against ReaPER with ours, and against PER.

Ours takes R = 1 for every step of a running episode. In the paper R is the sum of the errors so
far, divided by the largest sum of any episode. Both have the authors' exponents, as in `after_per`.
"""

import dataclasses

from per_tutorial.experiments.studies.declared.after_per import AFTER_PER_STUDIES
from per_tutorial.experiments.studies.study import Study


def _unfinished(study: Study) -> Study:
    """The world of `study` at the full learning rate, with new seeds."""
    per, reaper = study.arms["per"], study.arms["reaper"]
    return dataclasses.replace(
        study,
        name=study.name.replace("after", "unfinished"),
        question="Does ReaPER learn better if it treats unfinished episodes as its paper does?",
        arms={
            "per": per,
            "reaper": reaper,
            "conservative": reaper.replace(unfinished="conservative"),
        },
        comparisons=(("conservative", "reaper"), ("conservative", "per"), ("reaper", "per")),
        seeds=range(560, 590),
    )


UNFINISHED_STUDIES = tuple(_unfinished(study) for study in AFTER_PER_STUDIES)
