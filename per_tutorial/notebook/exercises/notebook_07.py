"""Notebook 07, broken replay: an adapter and three patients. The examination is the check."""

import inspect
import re
from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.conformance import Adapter, Answer, Drawn, Settings, Transition, Verdict, examine
from per_tutorial.notebook.checking.answers import Hint, Unsolved, is_stub
from per_tutorial.notebook.checking.declaring import CHECKERS
from per_tutorial.notebook.exercises.plain_replay import PlainReplay
from per_tutorial.replay.contracts import Floats

# question, pattern of its answer (a regular expression), hint
Clue = tuple[str, str, str]

ASKED = (
    "handling proportions-full proportions-part-full proportions-wrapped exponent-small-errors "
    "exponent-large-errors alpha-zero sign reach one-transition weights-exponent weights-beta-zero "
    "weights-part-full weights-normalisation weights-collapse newcomers-at-first newcomers-largest "
    "newcomers-forget contents truncation stale-updates seeds zero-errors nan-errors empty"
).split()


def complaint(adapter: Adapter, clues: Sequence[Clue]) -> str | None:
    """What an examination finds wrong, in the words of the first clue that fits, or None."""
    answers = {answer.question.name: answer for answer in examine(adapter, questions=ASKED).answers}
    for name, pattern, sentence in clues:
        if re.search(pattern, _said(answers[name])):
            return f"{sentence} ({name}: {_measured(answers[name])}.)"
    for answer in answers.values():
        if answer.verdict in (Verdict.FAILS, Verdict.INCONCLUSIVE):
            return f"the examination asks: {answer.question.asks} It found: {answer.measured}."
    return None


def _said(answer: Answer) -> str:
    """Verdict and measurement, such as "fails: exponent 1.200 where 0.6 was set"."""
    wrong = answer.verdict is Verdict.NOT_JUDGED  # since another question fails as well
    verdict = Verdict.FAILS if wrong else answer.verdict
    return f"{verdict.value}: {_measured(answer)}"


def _measured(answer: Answer) -> str:
    """What was measured, without the reason why a question was not judged."""
    return re.sub(r"^because \S+ fails \((.*)\)$", r"\1", answer.measured)


# 07.1: an adapter ---------------------------------------------------------------------------------

ADAPTER_CLUES: list[Clue] = [
    ("alpha-zero", "never added", "`observations` should be what `draw` calls `state`."),
    ("handling", "not a Drawn", "`sample` should return a `Drawn`."),
    ("handling", "^fails.*zip", "`push` takes five things: the last one is `terminated`."),
    ("handling", "^fails.*None",
     "something is None: do all methods return or pass on what they should, `keys` as well?"),
    ("handling", "^fails: it raises",
     "a call does not fit: look at the names and arguments of `PlainReplay` and `Drawn`."),
    ("weights-exponent", "^not offered",
     "the weights are missing in `Drawn`: `draw` calls them `weight`."),
    ("alpha-zero", "^fails", "`settings.alpha` does not reach the buffer."),
    ("exponent-small-errors", "exponent 1[.][12]",
     "the buffer is healthy: give it the TD errors as they are, not their squares."),
    ("exponent-small-errors", "exponent 0[.]3",
     "the buffer applies α by itself: give it the TD errors as they are."),
    ("exponent-small-errors", "exponent -?0[.]0",
     "the draws do not follow the errors: does `update` reach `learned`, with the right `keys`?"),
    ("sign", "^fails", "negative TD errors get lost on the way: pass them on as they are."),
    ("weights-exponent", "^fails",
     "`beta` is not passed on to `draw`, or the weights are changed on their way."),
    ("contents", "^not offered",
     "`Drawn` should hold `actions`, `rewards`, `next_observations` and `terminated` as well."),
    ("contents", "^fails",
     "what was stored does not come back: compare the order of `push` and the names in `Drawn`."),
    ("truncation", "^fails",
     "`done` means that nothing follows. After a time limit something would have: pass "
     "`terminated` alone."),
    ("truncation", "^not offered",
     "`Drawn` should hold `next_observations` and `terminated` as well."),
    ("seeds", "^fails|^inconclusive|^not", "`settings.seed` does not reach the buffer."),
    ("proportions-wrapped", "^fails",
     "`keys` should be what `draw` calls `number`: once the ring wraps around, it is no longer the "
     "slot."),
]  # fmt: skip


def made_by(adapter: Any) -> PlainReplay:
    """The buffer of an adapter that can be examined; raises a `Hint` about any other."""
    for name in ("make", "add", "sample", "update"):
        if not callable(getattr(adapter, name, None)):
            raise Hint(f"the adapter has no method `{name}`.")
    try:
        buffer = adapter.make(Settings(4))
    except Exception as error:  # noqa: BLE001  (an answer may raise anything)
        raise Hint(
            f"`make` stopped with {type(error).__name__}: {error}. Are the arguments in the order "
            "`PlainReplay(capacity, alpha, seed)`?"
        ) from None
    if is_stub(buffer):
        raise Unsolved
    if not hasattr(adapter, "time_limit"):
        raise Hint("the class should begin with `class PlainAdapter(Adapter)`.")
    if inspect.isclass(buffer):
        raise Hint("`make` returns the class; return a buffer, made with capacity, alpha and seed.")
    if not isinstance(buffer, PlainReplay):
        returned = type(buffer).__name__
        raise Hint(f"`make` should return a `PlainReplay`; yours returns a {returned}.")
    return buffer


def check_adapter(answer: object) -> str | None:
    adapter: Any = answer() if isinstance(answer, type) else answer
    buffer = made_by(adapter)
    one = np.ones(2, np.float32)
    adapter.add(buffer, Transition(one, 0, 0.0, one, False, False))
    if not len(buffer):
        return "nothing is stored: `add` should call `push` of the buffer."
    if buffer.capacity != 4:
        return f"`settings.capacity` was 4, but the buffer has {buffer.capacity} slots."
    healthy = PlainReplay(4).epsilon
    if buffer.epsilon != healthy:
        return "`make` changes ε. The buffer is healthy: leave it as it is."
    epsilon = adapter.epsilon
    if not isinstance(epsilon, Real) or abs(float(epsilon) - healthy) > 1e-3 * healthy:
        return (
            "`epsilon` of the adapter should be the ε that `PlainReplay` adds to |δ|: its "
            "`self.epsilon`. Without it, the examination takes ε to be 0."
        )
    return complaint(adapter, ADAPTER_CLUES)


CHECKERS["07.1"] = check_adapter


# 07.2 to 07.4: patients ---------------------------------------------------------------------------


class PatientAdapter(Adapter):
    """The adapter of a patient, a subclass of `PlainReplay`."""

    epsilon = 1e-6

    def __init__(self, patient: type[PlainReplay]) -> None:
        self.patient = patient

    def make(self, settings: Settings) -> PlainReplay:
        return self.patient(settings.capacity, settings.alpha, settings.seed)

    def add(self, buffer: PlainReplay, transition: Transition) -> None:
        buffer.push(*transition[:5])

    def sample(self, buffer: PlainReplay, batch_size: int, beta: float) -> Drawn:
        drawn = buffer.draw(batch_size, beta)
        fields = ("state", "weight", "number", "action", "reward", "next_state", "done")
        return Drawn(*(drawn[name] for name in fields))

    def update(self, buffer: PlainReplay, keys: Any, td_errors: Floats) -> None:
        buffer.learned(keys, td_errors)


class BrokenReplay(PlainReplay):
    """The patients' methods as the cells of the exercises have them."""

    def priority(self, td_errors: NDArray) -> NDArray:
        return td_errors**2 + self.epsilon

    def newcomer(self) -> float:
        return self.epsilon

    def weights(self, P: NDArray, beta: float) -> NDArray:
        smallest = self.leaves.min() / self.leaves.sum()
        return (P / smallest) ** -beta / len(P)

    def probabilities(self) -> NDArray:
        leaves = self.leaves[: len(self)].copy()
        leaves[-1] = 0.0
        return leaves / leaves.sum()

    def slots_of(self, numbers: NDArray) -> NDArray:
        return numbers % self.capacity


def refuse_untouched(patient: type[PlainReplay], methods: Sequence[str]) -> None:
    """Raise if a method is a stub, or if all are unchanged except for spaces and comments."""
    for method in vars(patient).values():
        if inspect.isfunction(method) and method.__code__.co_consts[-1:] == (...,):
            raise Unsolved
    if all(_code(getattr(patient, one)) == _code(getattr(BrokenReplay, one)) for one in methods):
        raise Hint("not solved yet. Repair the class and run the cell again.")


def _code(method: Any) -> tuple | None:
    code = getattr(method, "__code__", None)
    return code and (code.co_code, code.co_consts, code.co_names, code.co_varnames)


def check_patient(answer: object, methods: Sequence[str], clues: Sequence[Clue]) -> str | None:
    """None if a subclass of `PlainReplay` with these methods is healthy, else a hint."""
    if isinstance(answer, PlainReplay):
        answer = type(answer)
    if not (isinstance(answer, type) and issubclass(answer, PlainReplay)):
        raise Hint("the class is asked for, a subclass of `PlainReplay`: give `check` its name.")
    if answer is PlainReplay:
        raise Hint("that is the healthy buffer; the patient is the class in this cell.")
    for name in ("draw", "push", "learned"):
        if getattr(answer, name) is not getattr(PlainReplay, name):
            raise Hint(f"`{name}` is healthy: leave it, and repair the methods in the cell.")
    refuse_untouched(answer, methods)
    for name in methods:
        method = getattr(answer, name)
        names = method.__code__.co_names if inspect.isfunction(method) else ()
        if method is getattr(PlainReplay, name) or {"super", "PlainReplay"} & set(names):
            raise Hint(f"`{name}` is borrowed from the healthy buffer: write it in this class.")
    return complaint(PatientAdapter(answer), clues)


CHECKERS["07.2"] = partial(check_patient, methods=["priority", "newcomer"], clues=[
    ("handling", "contain NaN",
     "probabilities are NaN. What does the very first newcomer get, when nothing was stored yet?"),
    ("handling", "scalar index|subscriptable|NoneType",
     "it stops with an error: `priority` should return an array, with a number for each TD error."),
    ("handling", "^fails", "it stops with an error."),
    ("alpha-zero", "ZeroDivision",
     "with α = 0 it stops with an error. `self.largest` has the largest priority so far; the "
     "leaves only know what is stored now."),
    ("newcomers-at-first", "^fails.* 0[^.]*times|^fails.* 0[.][0-9]+ times|^fails.*e-",
     "newcomers still wait behind all others: they should get the largest priority so far."),
    ("exponent-large-errors", "^fails: exponent 1[.][12]",
     "the exponent is twice what was set: the priority is still a square."),
    ("exponent-small-errors", "^fails: exponent 1[.][12]",
     "the exponent is doubled for small errors: that is the Huber loss. The priority is |δ| + ε."),
    ("exponent-large-errors", "^fails: exponent 0[.]3",
     "α is applied twice: `learned` raises the priority to α by itself."),
    ("exponent-large-errors", "^fails: exponent -?0[.]0", "the priority should grow with |δ|."),
    ("sign", "^fails|^inconclusive",
     "the absolute value is missing: a bad surprise is a surprise, too."),
    ("newcomers-largest", "^fails: 0",
     "newcomers are drawn less often than with the largest priority so far."),
    ("newcomers-largest", "^fails",
     "newcomers are drawn more often than with the largest priority so far."),
    ("zero-errors", "^fails|^reported",
     "ε is missing: a transition whose error was once 0 never comes again."),
])  # fmt: skip


CHECKERS["07.3"] = partial(check_patient, methods=["weights"], clues=[
    ("weights-exponent", "^not offered",
     "`weights` returns nothing: return one weight for each transition of the minibatch."),
    ("handling", "^fails: weights",
     "there should be one finite weight for each transition of the minibatch."),
    ("weights-part-full", "weight is 0",
     "before the buffer is full, all weights are 0: empty slots have no smallest priority."),
    ("weights-part-full", "^fails",
     "something goes wrong before the buffer is full: only filled slots may count."),
    ("weights-exponent", "exponent -0[.]4[^.]*[.]?[^.]* where -1",
     "β is always the same: use the argument."),
    ("weights-exponent", "exponent 0[.]0", "the weights are all the same: they correct nothing."),
    ("weights-exponent", "exponent 0[.]|exponent 1[.]",
     "the sign of β is wrong: what is drawn more often should weigh less."),
    ("weights-beta-zero", "^fails", "with β = 0 all weights should be equal. Is β the exponent?"),
    ("weights-exponent", "^fails", "β is the exponent of N · P, with a minus."),
    ("weights-normalisation", "whole buffer",
     "divide by the largest weight of the minibatch, not of the whole buffer."),
    ("weights-normalisation", "^(?!reported: by the largest of the minibatch)",
     "the largest weight of a minibatch should be 1: divide by the largest, and by nothing else."),
])  # fmt: skip


RING_CLUES: list[Clue] = [
    ("one-transition", "same size|not sum",
     "`probabilities` should return `len(self)` numbers whose sum is 1."),
    ("one-transition", "contain NaN|cannot be empty",
     "the newest is still left out: with a single transition stored, nothing is left to draw."),
    ("handling", "^fails: it raises",
     "it stops with an error. `slots_of` should return an array: a slot for each number, −1 where "
     "it is gone."),
    ("reach", "^fails", "one slot is still never drawn."),
    ("exponent-large-errors", "^fails: exponent 0[.]3",
     "α is applied twice: `self.leaves` holds p^α already."),
    ("exponent-large-errors", "^fails: exponent -?0[.]0",
     "no priority arrives: `slots_of` says −1 for what is still stored."),
    ("stale-updates", "^fails",
     "a late priority still goes to the transition that replaced its own: return −1 where the "
     "number is no longer stored."),
    ("proportions-full", "^fails",
     "some transitions that are still stored don't get their priority. Which is the oldest one?"),
]  # fmt: skip


def check_third_patient(answer: object) -> str | None:
    mistake = check_patient(answer, ["probabilities", "slots_of"], RING_CLUES)
    patient: PlainReplay = (answer if isinstance(answer, type) else type(answer))(4)
    if mistake and mistake.startswith("no priority arrives"):
        patient.added, patient.leaves = 4, np.arange(1.0, 5.0)
        if np.ptp(patient.probabilities()) < 0.1:
            return "all are equally likely: `probabilities` should follow `self.leaves`."
    if mistake is None:
        for number in range(6):
            patient.push(number, 0, 0.0, number, False)
        slots = patient.slots_of(np.arange(6))  # 4 of them are stored: 2 to 5
        if np.shape(slots) != (6,):
            return "`slots_of` should return a slot for each number, −1 where it is gone."
        if np.any(np.asarray(slots)[:2] >= 0):
            return (
                "a late priority still goes to the transition that replaced its own. With 4 slots "
                f"and 6 added, numbers 0 and 1 are gone; `slots_of` returns "
                f"{np.asarray(slots)[:2]} for them."
            )
    return mistake


CHECKERS["07.4"] = check_third_patient
