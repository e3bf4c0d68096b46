"""The studies, declared: what is compared, over how many runs, judged by what. A file a subject."""

from per_tutorial.studies.declared import ablations, cartpole, pong, tuned

SUBJECTS = (ablations, cartpole, pong, tuned)
STUDIES = {study.name: study for subject in SUBJECTS for study in subject.STUDIES}
