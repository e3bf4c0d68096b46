"""An examination passes what is right, and has a verdict for whatever else it is given."""

import ctypes
import os
import sys
import time

import numpy as np
import pytest

from per_tutorial.conformance import (
    ADAPTERS,
    QUESTIONS,
    Adapter,
    Drawn,
    ExaminationError,
    Report,
    Verdict,
    examine,
    find_adapter,
    isolation,
)
from per_tutorial.conformance.adapters.ours import Proportional, ReplayAdapter, Uniform
from per_tutorial.conformance.answers import cause_of
from per_tutorial.conformance.harness import BufferHarness
from per_tutorial.conformance.isolation import answers
from per_tutorial.conformance.questions import distribution, numerics
from per_tutorial.replay import PrioritizedReplayBuffer

OURS = ("proportional", "rank", "uniform")


def verdicts(report):
    return {answer.question.name: answer.verdict for answer in report.answers}


# What is right ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_our_buffers_pass_in_less_than_twenty_seconds(name):
    examine(find_adapter(name), questions=["handling"])  # compiles
    began = time.process_time() + sum(os.times()[2:4])
    report = examine(find_adapter(name), seed=1)
    seconds = time.process_time() + sum(os.times()[2:4]) - began
    assert report.passed, str(report)
    assert seconds < 20  # of processor time, in a child process: about 2
    assert len(report.answers) == len(QUESTIONS)
    offered = {name for name, verdict in verdicts(report).items() if verdict is Verdict.HOLDS}
    assert len(offered) > 30


@pytest.mark.slow
@pytest.mark.parametrize("normalize", ["batch", "buffer", "none"])
def test_every_normalisation_is_reported_and_none_is_judged(normalize):
    class Variant(Proportional):
        def make(self, settings):
            return PrioritizedReplayBuffer(
                settings.capacity,
                (2,),
                alpha=settings.alpha,
                seed=settings.seed,
                normalize=normalize,
            )

    weights = [name for name in QUESTIONS if name.startswith("weights-")]
    report = examine(Variant, questions=weights)
    assert report.failures == []
    words = {
        "batch": "by the largest of the minibatch",
        "buffer": "whole buffer",
        "none": "nothing",
    }
    assert words[normalize] in report["weights-normalisation"].measured
    collapsed = "falls from" in report["weights-collapse"].measured
    assert collapsed == (normalize == "buffer")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", OURS)
def test_thousand_seeds_raise_no_false_alarm(name, monkeypatch):
    monkeypatch.setattr(numerics, "UPDATES", 10_000)
    reports = (examine(find_adapter(name), seed, isolate=False) for seed in range(1000))
    assert [report.seed for report in reports if not report.passed] == []


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_the_exponent_is_recovered_within_a_hundredth(alpha):
    class Set(Proportional):
        def make(self, settings):
            return super().make(settings._replace(alpha=alpha if settings.alpha == 0.6 else 1.0))

    for question in ("exponent-small-errors", "exponent-large-errors"):
        answer = examine(Set, questions=[question]).answers[0]
        found = float(answer.measured.split()[1])
        assert abs(found - alpha) <= (0.01 if alpha == 0.6 else 0.02)
        assert (answer.verdict is Verdict.HOLDS) == (alpha == 0.6)


@pytest.mark.slow
def test_the_same_seed_measures_the_same():
    names = ["proportions-full", "weights-undo"]
    first, again = (examine(Proportional, 5, questions=names) for _ in range(2))
    assert first.as_dict() == again.as_dict()
    assert first.as_dict() != examine(Proportional, 6, questions=names).as_dict()
    alone = examine(Proportional, 5, questions=names[1:], isolate=False)
    assert alone["weights-undo"].measured == first["weights-undo"].measured


# Adapters that are broken ------------------------------------------------------------------------


class Fifteen(Adapter):
    """As short as the documentation promises; the buffer behind it is ours."""

    def make(self, settings):
        return PrioritizedReplayBuffer(settings.capacity, (2,), seed=settings.seed)

    def add(self, buffer, transition):
        buffer.add(*transition)

    def sample(self, buffer, batch_size, beta):
        batch = buffer.sample(batch_size, beta)
        return Drawn(batch.observations, batch.weights, keys=batch.indices)

    def update(self, buffer, keys, td_errors):
        buffer.update_priorities(keys, td_errors)


QUICK = ["handling", "proportions-full", "contents", "seeds"]


def test_what_an_adapter_does_not_offer_is_not_held_against_it():
    report = examine(Fifteen, questions=[*QUICK, "n-step-tail", "edges", "saved-priorities"])
    assert verdicts(report) == {
        "handling": Verdict.HOLDS,
        "proportions-full": Verdict.HOLDS,
        "contents": Verdict.NOT_OFFERED,
        "seeds": Verdict.HOLDS,
        "n-step-tail": Verdict.NOT_OFFERED,
        "edges": Verdict.NOT_OFFERED,
        "saved-priorities": Verdict.NOT_OFFERED,
    }


class Raises(Fifteen):
    def sample(self, buffer, batch_size, beta):
        raise KeyError("weights\nand more")


class Returns(Fifteen):
    def __init__(self, what):
        self.what = what

    def sample(self, buffer, batch_size, beta):
        drawn = super().sample(buffer, batch_size, beta)
        return self.what(drawn)


class Exits(Fifteen):
    def add(self, buffer, transition):
        sys.exit("bye")


class Recurses(Fifteen):
    def sample(self, buffer, batch_size, beta):
        return self.sample(buffer, batch_size, beta)


class NeverEnds(Fifteen):
    time_limit = 0.2

    def sample(self, buffer, batch_size, beta):
        while True:
            pass


class NeverEndsOnce(Proportional):
    """In one question only: it is asked with another capacity than the others."""

    time_limit = 2.0

    def make(self, settings):
        while settings.capacity == 21:
            pass
        return super().make(settings)


class Waits(NeverEnds):
    def sample(self, buffer, batch_size, beta):
        time.sleep(1000)


class HangsOutsidePython(NeverEnds):
    """With the interpreter's lock held, as compiled code may."""

    def sample(self, buffer, batch_size, beta):
        ctypes.PyDLL(None).sleep(1000)


class Crashes(Fifteen):
    def update(self, buffer, keys, td_errors):
        ctypes.string_at(0)


SHAPES = {
    "weights have the shape (32, 1)": lambda d: d._replace(weights=np.asarray(d.weights)[:, None]),
    "observations have the shape (31, 2)": lambda d: d._replace(observations=d.observations[1:]),
    "sample returned a tuple": tuple,
    "sample returned a NoneType": lambda drawn: None,
    "observations are no array of numbers": lambda d: d._replace(observations="some"),
    "weights are no array of numbers": lambda d: d._replace(weights=[[1.0], 2.0]),
    "weights have the shape ()": lambda d: d._replace(weights=1.0),
}

NEVER_ADDED = {
    "never added: [0.0, 0.0]": lambda d: d._replace(observations=d.observations * 0),
    "never added: [nan, ": lambda d: d._replace(observations=d.observations * np.nan),
    "never added: [1.5, ": lambda d: d._replace(observations=d.observations * 0 + 1.5),
    "never added: [1e+30": lambda d: d._replace(observations=np.full((len(d.keys), 2), 1e30)),
}


@pytest.mark.parametrize("message", SHAPES)
def test_wrong_shapes_get_a_verdict(message):
    report = examine(Returns(SHAPES[message]), questions=QUICK[:2])
    assert verdicts(report) == {"handling": Verdict.FAILS, "proportions-full": Verdict.NOT_JUDGED}
    assert message in report["handling"].measured


@pytest.mark.parametrize("message", NEVER_ADDED)
def test_what_was_never_stored_gets_a_verdict(message):
    adapter = Returns(NEVER_ADDED[message])
    report = examine(adapter, questions=["handling", "only-stored", "reach"])
    assert [answer.verdict.value for answer in report.answers] == ["holds", "fails", "not judged"]
    assert message in report["only-stored"].measured


@pytest.mark.slow
@pytest.mark.parametrize(
    "adapter, message",
    [
        (Raises, "it raises KeyError: 'weights"),
        (Exits, "it raises SystemExit: bye"),
        (Recurses, "it calls itself without end"),
        (NeverEnds, "it did not end within 0.6 s"),
        (Waits, "it did not end within 0.6 s"),
        (HangsOutsidePython, "it did not end within 0.6 s"),
        (Crashes, "the process died (SIGSEGV)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_adapter_gets_a_verdict_and_no_traceback(adapter, message, capfd):
    report = examine(adapter, questions=QUICK[:2])
    assert report["handling"].measured.startswith(message)
    assert report["proportions-full"].verdict is Verdict.NOT_JUDGED
    assert report["proportions-full"].measured.startswith("because handling fails (")
    assert "\n" not in report["handling"].measured
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_after_a_question_that_never_ends_the_others_are_asked_as_usual():
    names = ["handling", "proportions-odd-capacity", "weights-exponent", "seeds"]
    examine(Proportional, questions=names, isolate=False)  # compiles
    report = examine(NeverEndsOnce, questions=names)
    found = [answer.verdict.value for answer in report.answers]
    assert found == ["holds", "fails", "holds", "holds"]


@pytest.mark.slow
def test_an_examination_of_what_never_ends_ends(monkeypatch):
    class Never(NeverEnds):
        time_limit = 0.5

    monkeypatch.setattr(isolation, "SHORTEST_AFTER_SILENCE", 0.05)
    began = sum(os.times()[2:4])  # processor time of child processes
    report = examine(Never)
    assert [answer.question.name for answer in report.failures] == ["handling"]
    not_judged = [a for a in report.answers if a.verdict is Verdict.NOT_JUDGED]
    assert len(not_judged) > 30
    assert sum(os.times()[2:4]) - began < 13


class Silent:
    """The end of a pipe on which an answer comes in the ``answers``-th wait."""

    def __init__(self, answers=99):
        self.answers, self.waited = answers, []

    def poll(self, seconds):
        self.waited.append(seconds)
        return len(self.waited) == self.answers


@pytest.mark.parametrize(
    "times, waits",
    [([None] * 2, 2), (["1 0"] * 2, 2), (["1 0", "2 0", "2 0"], 3)],
    ids=["unknown", "idle", "busy, then idle"],
)
def test_a_child_is_taken_for_idle_after_twice_the_limit(times, waits, monkeypatch):
    """Also where its processor time cannot be read, as on macOS."""
    used, silent = iter(times), Silent()
    monkeypatch.setattr(isolation, "_processor_time", lambda pid: next(used))
    assert not isolation._is_there(silent, 1, isolation._Patience(2.0))
    assert silent.waited == waits * [isolation.FIRST * 2.0]


def test_an_answer_in_the_second_wait_counts_where_processor_time_is_unknown(monkeypatch):
    monkeypatch.setattr(isolation, "_processor_time", lambda pid: None)
    assert isolation._is_there(Silent(answers=2), 1, isolation._Patience(2.0))


@pytest.mark.slow
def test_the_first_question_may_take_longer_for_a_buffer_that_compiles_itself():
    class Compiles(Fifteen):
        time_limit = 1.0
        compiled = False

        def make(self, settings):
            until = time.process_time() + 1.5 * self.time_limit
            while not Compiles.compiled and time.process_time() < until:
                pass
            Compiles.compiled = True
            return super().make(settings)

    examine(Fifteen, questions=QUICK[:2], isolate=False)  # compiles what is ours
    report = examine(Compiles, questions=QUICK[:2])
    assert set(verdicts(report).values()) == {Verdict.HOLDS}


def test_without_isolation_the_answers_are_the_same():
    apart, together = (examine(Fifteen, questions=QUICK, isolate=flag) for flag in (True, False))
    assert apart.as_dict() == together.as_dict()


@pytest.mark.slow
def test_without_fork_questions_run_in_threads(monkeypatch):
    monkeypatch.delattr(os, "fork")
    names = [*QUICK[:2]]
    report = examine(Fifteen, questions=names)
    assert set(verdicts(report).values()) == {Verdict.HOLDS}

    class Sleeps(NeverEnds):
        def sample(self, buffer, batch_size, beta):
            time.sleep(0.8)
            raise ValueError("too late")

    report = examine(Sleeps, questions=names)
    assert report["handling"].measured == "it did not end within 0.6 s"


class MakesNothing(Fifteen):
    def make(self, settings):
        return None

    def add(self, buffer, transition):
        pass


class Swaps(Fifteen):
    """Weights and keys in each other's place, as in a call by position."""

    def sample(self, buffer, batch_size, beta):
        batch = buffer.sample(batch_size, beta)
        return Drawn(batch.observations, batch.indices, batch.weights)


@pytest.mark.parametrize("adapter", [MakesNothing, Swaps])
def test_nothing_holds_where_the_adapter_is_broken(adapter):
    names = ["handling", "seeds", "empty", "stale-updates", "large-minibatch"]
    report = examine(adapter, questions=names, isolate=False)
    expected = dict.fromkeys(names, Verdict.NOT_JUDGED) | {"handling": Verdict.FAILS}
    assert verdicts(report) == expected
    assert str(report).count("because handling fails") == 2  # once for each kind of question


@pytest.mark.parametrize("adapter, question", [(MakesNothing, "empty"), (Swaps, "stale-updates")])
def test_a_refusal_is_none_where_everything_is_refused(adapter, question):
    answer = examine(adapter, questions=[question], isolate=False)[question]
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert "as well" in answer.measured


# What it is called with, and what it returns -----------------------------------------------------


def test_an_adapter_may_be_any_object_that_has_the_methods():
    class Own:
        make, add, sample, update = Fifteen.make, Fifteen.add, Fifteen.sample, Fifteen.update
        name, distribution, epsilon, n_step = "own", "proportional", 0, False
        time_limit, packages = 5.0, ()
        replacement = seeded = copies_added = copies_drawn = True
        priorities = Adapter.priorities

    assert examine(Own(), questions=QUICK[:1]).passed


class Bare:
    make, add, sample, update = Fifteen.make, Fifteen.add, Fifteen.sample, Fifteen.update


def test_a_plain_class_needs_nothing_but_the_four_methods():
    report = examine(Bare, questions=QUICK)
    assert report.name == "Bare"
    assert report["seeds"].verdict is Verdict.HOLDS


def test_an_object_that_lacks_a_description_hears_what_it_lacks():
    with pytest.raises(TypeError, match="Bare lacks name, distribution, epsilon.*give the class"):
        examine(Bare())


@pytest.mark.parametrize(
    "attributes, kind, message",
    [
        ({"distribution": "ranks"}, ValueError, "Described.distribution: must be one of 'propo"),
        ({"epsilon": -1e-6}, ValueError, "Described.epsilon: must be .*, got -1e-06"),
        ({"time_limit": 0}, ValueError, "Described.time_limit: must be greater than 0, got 0"),
        ({"packages": "ray"}, TypeError, "Described.packages: must be a tuple of .*, got 'ray'"),
        ({"packages": (np,)}, TypeError, "Described.packages: must be a tuple of names"),
        ({"__init__": lambda self, n: None}, TypeError, "Described cannot be made without argum"),
    ],
)
def test_a_wrong_description_is_refused(attributes, kind, message):
    with pytest.raises(kind, match=message):
        examine(type("Described", (Bare,), attributes))


# Exceptions of the examination's own code --------------------------------------------------------


@pytest.mark.parametrize("mode", ["processes", "threads", "here"])
def test_an_exception_of_the_examination_itself_is_an_error_and_no_verdict(mode, monkeypatch):
    def broken(*arguments):
        raise ModuleNotFoundError("No module named 'scipy'")

    monkeypatch.setattr(distribution, "worst_misfit", broken)
    if mode == "threads":
        monkeypatch.delattr(os, "fork")
    message = "itself failed in the question 'proportions-full'.*No module named 'scipy'.*line"
    with pytest.raises(ExaminationError, match=message):
        examine(Fifteen, questions=QUICK, isolate=mode != "here")


@pytest.mark.parametrize("question", ["empty", "nan-errors", "stale-updates", "large-minibatch"])
def test_it_is_not_taken_for_a_refusal_of_the_buffer_either(question, monkeypatch):
    def broken(self, observations):
        raise ValueError("a mistake of our own")

    monkeypatch.setattr(BufferHarness, "serials", broken)
    adapter = type("Generous", (Fifteen,), {"sample": one_of_nothing})
    with pytest.raises(ExaminationError, match="a mistake of our own"):
        examine(adapter, questions=[question], isolate=False)


def one_of_nothing(self, buffer, batch_size, beta):
    return Drawn(np.zeros((batch_size, 2)))


@pytest.mark.parametrize("method", ["make", "add", "sample", "update", "priorities"])
@pytest.mark.parametrize("error", [KeyError("name"), ValueError("bad"), SystemExit(2)])
def test_an_exception_of_the_adapter_is_a_verdict_wherever_it_comes_from(method, error):
    def raises(*arguments):
        raise error

    adapter = type("Raising", (Fifteen,), {method: raises})
    report = examine(adapter, questions=["proportions-full"], isolate=False)
    assert report["proportions-full"].verdict is Verdict.FAILS
    assert report["proportions-full"].measured.startswith(f"it raises {type(error).__name__}")


@pytest.mark.parametrize("isolate", [True, False])
def test_a_library_that_is_not_installed_is_no_verdict_either(isolate):
    class Missing(Fifteen):
        def make(self, settings):
            import nowhere  # noqa: F401

    with pytest.raises(ImportError, match="No module named 'nowhere'"):
        examine(Missing, questions=QUICK, isolate=isolate)


# One cause, one failure --------------------------------------------------------------------------


def test_every_question_comes_after_those_that_it_depends_on():
    names = list(QUESTIONS)
    for name, question in QUESTIONS.items():
        assert all(names.index(need) < names.index(name) for need in question.needs), name
    assert cause_of("saved-largest", {"handling": Verdict.FAILS}) == "handling"
    assert cause_of("handling", {"saved-largest": Verdict.FAILS}) is None


def test_an_epsilon_that_the_adapter_does_not_name_is_not_denied():
    questions = ["zero-errors", "single-precision-errors"]
    silent = examine(Fifteen, questions=questions, isolate=False)  # the buffer adds 1e-6
    assert silent["zero-errors"].measured.startswith("the adapter names no ε")
    assert "or an ε that the adapter does not name" in silent["single-precision-errors"].measured

    class Named(Fifteen):
        epsilon = 1e-6

    named = examine(Named, questions=questions, isolate=False)
    assert [answer.verdict for answer in named.answers] == [Verdict.HOLDS, Verdict.HOLDS]


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="adapter: object lacks make, add, sample, update"):
        examine(object())
    with pytest.raises(ValueError, match="questions: must be one of .*, got 'exponents'"):
        examine(Fifteen, questions=["exponents"])
    with pytest.raises(ValueError, match="seed: must be at least 0, got -1"):
        examine(Fifteen, -1)
    with pytest.raises(ValueError, match="NAME: must be one of"):
        find_adapter("nobody")


def test_every_question_says_what_it_is_about():
    for name, question in QUESTIONS.items():
        assert question.asks.endswith("?"), name
        assert question.effect.endswith("."), name
        assert question.section and 0 <= question.false_alarm < 1e-5


def test_a_report_puts_robustness_apart_from_the_algorithm():
    class Takes(Fifteen):
        def update(self, buffer, keys, td_errors):
            buffer.update_priorities(keys, np.nan_to_num(td_errors, nan=1e9))

    report = examine(Takes, questions=["nan-errors", "handling", "empty"], isolate=False)
    assert report["nan-errors"].verdict is Verdict.REPORTED
    assert list(report.by_kind) == ["algorithm", "robustness"]
    names = [[answer.question.name for answer in kind] for kind in report.by_kind.values()]
    assert names == [["handling"], ["nan-errors", "empty"]]
    lines = [line.split()[0] for line in str(report).splitlines() if line[:1].strip()]
    assert lines[1:6] == ["algorithm:", "handling", "robustness:", "nan-errors", "empty"]
    page = report._repr_html_()
    assert page.count("<tr>") == 1 + 2 + 3 and "robustness: does it withstand" in page
    assert "1 holds, 1 reported" in page
    assert examine(Raises, questions=["handling", "empty"]).as_dict()["failures"] == {
        "algorithm": ["handling"],
        "robustness": [],
    }


def test_what_is_robustness():
    of = {"nan-errors", "infinite-errors", "empty", "large-minibatch", "stale-updates"}
    of |= {"arrays-added", "arrays-drawn"}
    assert {name for name, each in QUESTIONS.items() if each.kind == "robustness"} == of
    assert {each.kind for each in QUESTIONS.values()} == {"algorithm", "robustness"}


def test_a_report_as_text_as_html_and_as_data():
    seen = []
    report = examine(Raises, 3, questions=["handling", "edges"], progress=seen.append)
    assert isinstance(report, Report)
    assert report.failures == [report["handling"]] and not report.passed
    assert seen == list(report.answers)
    text = str(report)
    assert text.startswith("Raises (python ") and text.endswith("1 fails, 1 not offered")
    assert QUESTIONS["handling"].effect[:40] in text
    page = report._repr_html_()
    assert "&#x27;weights" in page and "<script" not in page
    assert report.as_dict()["answers"]["edges"] == ["not offered", "the adapter has no `find`"]


def test_a_report_may_be_empty():
    report = examine(Fifteen, questions=[], isolate=False)
    assert str(report).startswith("Fifteen (python ")
    assert "Fifteen" in report._repr_html_() and len(report.answers) == 0


def test_every_adapter_names_an_importable_module():
    from importlib.util import find_spec

    for home in ADAPTERS.values():
        module, _, _ = home.partition(":")
        assert find_spec(f"per_tutorial.conformance.adapters.{module}") is not None
    assert issubclass(type(find_adapter("uniform")), ReplayAdapter)
    assert list(answers([], Uniform(), 0, True)) == []
