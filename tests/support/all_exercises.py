"""All exercises that ask for a function or a value, and the mistakes that they know."""

from functools import partial
from importlib import import_module
from pkgutil import iter_modules

from per_tutorial.notebook import exercises
from per_tutorial.notebook.checking.comparing import one_by_one
from per_tutorial.notebook.checking.declaring import CHECKERS, FunctionExercise, ValueExercise

for module in iter_modules(exercises.__path__):
    import_module(f"{exercises.__name__}.{module.name}")

EXERCISES = {
    name: checker
    for name, checker in CHECKERS.items()
    if isinstance(checker, FunctionExercise | ValueExercise)
}
NAMES = sorted(EXERCISES)
VALUES = [name for name in NAMES if isinstance(EXERCISES[name], ValueExercise)]


def known_mistakes(name):
    """Each wrong answer of an exercise's tables, with its hint."""
    exercise = EXERCISES[name]
    if name in VALUES:
        yield from one_by_one(exercise.mistakes)
        return
    for place, part in enumerate(exercise.each_part):
        for wrong, hint in one_by_one(part.mistakes, partial(exercise.right_part, place)):

            def answer(*given, place=place, wrong=wrong):
                if not exercise.parts:
                    return wrong(*given)
                results = list(exercise.right(*given))
                results[place] = wrong(*given)
                return tuple(results)

            yield answer, part.intro + hint
