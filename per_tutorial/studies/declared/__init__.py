"""The studies, declared: what is compared, over how many runs, judged by what. A file a subject."""

from per_tutorial.studies.declared import ablations, after_per, cartpole, minatar, pong, sb3

SUBJECTS = (ablations, cartpole, pong, sb3, after_per, minatar)
STUDIES = {study.name: study for subject in SUBJECTS for study in subject.STUDIES}
