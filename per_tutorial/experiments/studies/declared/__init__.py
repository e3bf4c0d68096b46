"""The studies, declared: what is compared, over how many runs, judged by what. A file a subject."""

from per_tutorial.experiments.studies.declared.after_per import AFTER_PER_STUDIES
from per_tutorial.experiments.studies.declared.broken import BROKEN_STUDIES
from per_tutorial.experiments.studies.declared.conditions import CARTPOLE_CONDITIONS
from per_tutorial.experiments.studies.declared.equal_alpha import (
    AGAIN_CLIFFWALK,
    EQUAL_ALPHA_STUDIES,
    THRESHOLD_CARTPOLE,
)
from per_tutorial.experiments.studies.declared.lunarlander import LUNARLANDER
from per_tutorial.experiments.studies.declared.minatar import (
    LONG_MINATAR_STUDIES,
    MINATAR_STUDIES,
    PER_ON_PUBLISHED,
    PUBLISHED_BASE_STUDIES,
    PUBLISHED_STUDIES,
    RATE_STUDIES,
    UPDATES_STUDY,
)
from per_tutorial.experiments.studies.declared.sb3 import SB3_STUDIES
from per_tutorial.experiments.studies.declared.series import SERIES_STUDIES

STUDIES = {
    study.name: study
    for study in (
        *SERIES_STUDIES,
        CARTPOLE_CONDITIONS,
        *BROKEN_STUDIES,
        *SB3_STUDIES,
        *AFTER_PER_STUDIES,
        *EQUAL_ALPHA_STUDIES,
        AGAIN_CLIFFWALK,
        THRESHOLD_CARTPOLE,
        LUNARLANDER,
        *MINATAR_STUDIES,
        *LONG_MINATAR_STUDIES,
        UPDATES_STUDY,
        *PUBLISHED_STUDIES,
        *RATE_STUDIES,
        *PUBLISHED_BASE_STUDIES,
        PER_ON_PUBLISHED,
    )
}
