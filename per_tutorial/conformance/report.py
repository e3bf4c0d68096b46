"""The findings of an examination, as a table for a terminal or a notebook."""

import html
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from per_tutorial.conformance.answers import BASIS, KINDS, Answer, Kind, Verdict

WIDTH = 110  # of a table in a terminal
_BASELESS = f"because {BASIS} fails ("  # a table in a terminal says it only once

_COLORS = {
    Verdict.HOLDS: "#1b7837",
    Verdict.FAILS: "#b2182b",
    Verdict.NOT_JUDGED: "#8c510a",
    Verdict.INCONCLUSIVE: "#8c510a",
    Verdict.NOT_OFFERED: "#666666",
    Verdict.REPORTED: "#2166ac",
}


class Report(NamedTuple):
    """The answers to all questions.

    Attributes:
        name: of the examined buffer.
        versions: of Python and the packages that matter.
        seed: of the examination.
        answers: in the order of the questions.
        seconds: duration of the examination.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> report = examine(find_adapter("proportional"), questions=["handling"], isolate=False)
        >>> report.passed, report["handling"].verdict.value
        (True, 'holds')
    """

    name: str
    versions: Mapping[str, str]
    seed: int
    answers: Sequence[Answer]
    seconds: float

    @property
    def failures(self) -> list[Answer]:
        """The answers that say "fails"."""
        return [answer for answer in self.answers if answer.verdict is Verdict.FAILS]

    @property
    def passed(self) -> bool:
        """Whether nothing failed and nothing was inconclusive."""
        return not self.failures and all(
            a.verdict is not Verdict.INCONCLUSIVE for a in self.answers
        )

    @property
    def by_kind(self) -> dict[Kind, list[Answer]]:
        """The answers by kind of question (`KINDS`), without kinds that were not asked."""
        of = {kind: [one for one in self.answers if one.question.kind == kind] for kind in KINDS}
        return {kind: answers for kind, answers in of.items() if answers}

    def __getitem__(self, key: Any) -> Any:
        """The answer to a question by its name, or a field by its position."""
        if isinstance(key, str):
            return {answer.question.name: answer for answer in self.answers}[key]
        return tuple.__getitem__(self, key)

    def summary(self) -> str:
        """The number of answers with each verdict, such as "40 holds, 1 fails"."""
        return _counted(self.answers)

    def _headings(self) -> dict[Kind, str]:
        """For each kind of question, what it asks and the counts of its verdicts."""
        return {
            kind: f"{kind}: {KINDS[kind]} {_counted(answers)}"
            for kind, answers in self.by_kind.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """The report without its duration, as JSON can store it."""
        return {
            "name": self.name,
            "versions": dict(self.versions),
            "seed": self.seed,
            "answers": {
                answer.question.name: [answer.verdict.value, answer.measured]
                for answer in self.answers
            },
            "failures": {
                kind: [one.question.name for one in answers if one.verdict is Verdict.FAILS]
                for kind, answers in self.by_kind.items()
            },
        }

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        lines = [f"{self.name} ({versions}), seed {self.seed}, {self.seconds:.1f} s"]
        first = max((len(answer.question.name) for answer in self.answers), default=0) + 2
        second = max(len(verdict.value) for verdict in Verdict) + 2
        for kind, heading in self._headings().items():
            lines += ["", heading]
            shown = [one for one in self.by_kind[kind] if not one.measured.startswith(_BASELESS)]
            for answer in shown:
                head = f"{answer.question.name:{first}}{answer.verdict.value:{second}}"
                lines += textwrap.wrap(
                    answer.measured,
                    WIDTH,
                    initial_indent=head,
                    subsequent_indent=" " * (first + second),
                ) or [head]
            if rest := len(self.by_kind[kind]) - len(shown):
                lines.append(f"{rest} more not judged, because {BASIS} fails")
        for answer in self.failures:
            lines += ["", f"{answer.question.name}: {answer.question.asks}"]
            text = f"Section {answer.question.section}. {answer.question.effect}"
            lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
        return "\n".join([*lines, "", self.summary()])

    def _repr_html_(self) -> str:
        rows = []
        for kind, heading in self._headings().items():
            title = f"<th colspan='5' style='text-align:left'>{html.escape(heading)}</th>"
            rows += [f"<tr>{title}</tr>", *map(_row, self.by_kind[kind])]
        heads = ("question", "verdict", "measured", "section", "what it does to an agent")
        return (
            f"<p><b>{html.escape(self.name)}</b>: {html.escape(self.summary())}</p>"
            "<table style='text-align:left'><thead><tr>"
            + "".join(f"<th style='text-align:left'>{head}</th>" for head in heads)
            + "</tr></thead><tbody style='text-align:left'>"
            + "".join(rows)
            + "</tbody></table>"
        )


def _counted(answers: Sequence[Answer]) -> str:
    counts = Counter(answer.verdict for answer in answers)
    return ", ".join(f"{counts[one]} {one.value}" for one in Verdict if counts[one])


def _row(answer: Answer) -> str:
    return (
        "<tr>"
        f"<td title='{html.escape(answer.question.name, quote=True)}'>"
        f"{html.escape(answer.question.asks)}</td>"
        f"<td style='color:{_COLORS[answer.verdict]};white-space:nowrap'>"
        f"<b>{answer.verdict.value}</b></td>"
        f"<td>{html.escape(answer.measured)}</td>"
        f"<td>{html.escape(answer.question.section)}</td>"
        f"<td>{html.escape(answer.question.effect)}</td></tr>"
    )
