"""The numbers in a notebook's prose, and where each comes from: a cell's output, or its code.

python tools/prose_numbers.py [NOTEBOOK...]   name the numbers without a source; by default all

Numbers that no cell prints have their source listed in tests/data/numbers.toml. This is called by
hand before a notebook is published; it finds slips, and it is wrong at times.

`numbers_in` finds them in Markdown, `printed_numbers` and `written_numbers` in a notebook's outputs
and code, `Sources.hold` looks one up. What is not a claim is passed over: code spans, formulas,
targets of links, pictures, numbering, references ("section 3", "notebook 02"), years, versions, and
names such as float32. Counts up to ten without a unit ("2 actions") are passed over as well: they
would be found anywhere. A number with three significant digits may be printed anywhere in the
notebook, or be a constant of its code. One or two digits must come from a cell at most four away,
or repeat a number that does.
"""

import argparse
import ast
import functools
import gzip
import html
import math
import re
import sys
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import nbformat
import reading_time
from notebook_files import ROOT, read, series

from per_tutorial import DQNConfig

RESULTS = ROOT / "notebooks" / "results"

NEAR = 4  # cells: how far a number of one or two digits may be from its source
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
NUMBER = re.compile(
    r"(?<![A-Za-z_\d.^])(?P<minus>(?<![\w)])[−-])?"
    r"(?P<digits>\d{1,3}(?:[,_]\d{3})+|\d+)(?P<decimals>\.\d+)?"
    r"(?:[eE](?P<exponent>[+-]?\d+))?"
    r"(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|\^[-−]?\d+)?"
    r"(?:\s*[·×]\s*10(?P<ten>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|\^[-−]?\d+))?"
    r"(?![A-Za-z_\d])(?P<scale>[ \u00a0](?:thousand|million|billion)\b)?(?P<percent>\s?%)?"
)
# "73 to 83 %": the first is a percentage, too
UP_TO_PERCENT = re.compile(r"(?:\s(?:to|and|or)\s|–)[\d.,]+\s?%")
READING_TIME = re.compile(r"\bReading time\b[^.;]*?about (\d+) minutes[^.;]*")
INTERVAL = re.compile(r"(?:[\d.,−%]+\s)?\[[−\d.,]+\s?%?,\s[−\d.,]+\s?%?\]")
UNIT = re.compile(
    r"[ \u00a0-]?(?:×|(?:times|seconds?|minutes?|hours?|s|ms|µs|points?|bytes|[KMG]i?B|per cent)\b)"
)
HEDGED = re.compile(
    r"\b(about|around|roughly|nearly|almost|some|close to|approximately) (a )?$|[≈~] ?$"
)
_REFERENCE = (
    r"\b(?:sections?|notebooks?|figures?|fig\.|tables?|equations?|exercises?|algorithms?|mistakes?"
    r"|questions?|experiments?|part|python|version)"
)
_LABEL = r"\d+(?:\.\d+)*"
NOT_PROSE = [
    re.compile(pattern, flags)
    for pattern, flags in [
        (r"^```.*?^```", re.DOTALL | re.MULTILINE),  # fenced code
        (r"(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL),  # code spans
        (r"\$\$.+?\$\$", re.DOTALL),  # formulas
        (r"(?<!\\)\$[^$\n]+(?:\n[^$\n]+)*\$", 0),
        (r"!\[[^\]]*\]\([^)]*\)", 0),  # pictures
        (r"\]\([^)]*\)", 0),  # targets of links
        (r"</?[a-zA-Z!][^>]*>", 0),  # tags
        (READING_TIME.pattern, 0),  # which `problems` compares with the measured one
        (r"https?://\S+|#\d+", 0),  # addresses, and numbers of issues
        (r"^#+\s+\d+(?:\.\d+)*(?:\.| ·)", re.MULTILINE),  # headings' numbers, …
        (r"^\s*(?:\*\*)?\d+[.)](?:\*\*)?(?= )", re.MULTILINE),  # … lists', and exercises'
        (r"\[\d\d(?= ·|\]|\s\s)", 0),  # [03 · Prioritised replay], [01]
        (rf"{_REFERENCE}\s{_LABEL}(?:(?:,|,? and|,? or| to|–)\s?{_LABEL}(?!\w))*", re.IGNORECASE),
        (r"\barXiv[: ]\S+|(?<![\w.,])\d{4}\.\d{4,5}(?!\d)", re.IGNORECASE),
        (r"(?<![\w.,])\d+\.\d+\.\d+", 0),  # versions
        (
            r"(?<![\w.,])(?:19[5-9]\d|20[0-3]\d)(?![\w%,]\d|\d|\.\d)",
            0,
        ),  # years: thousands have commas
    ]
]


@dataclass(frozen=True)
class Number:
    """A number of a text: its value, and the step of its last digit (1.60: 0.01; 3 %: 0.01)."""

    text: str
    value: float
    step: float
    percent: bool
    start: int
    end: int

    @property
    def signed(self):
        """Whether it is written with a minus sign."""
        return self.value < 0


@dataclass(frozen=True)
class Claim(Number):
    """A number of the prose, in the cell with this index (from 0)."""

    cell: int
    unit: bool
    words: str
    interval: int | None  # where the bracket opens: 3.9 [2.0, 5.8] are three of one interval

    @property
    def is_trivial(self):
        """A count up to ten, without a unit."""
        return self.step == 1 and abs(self.value) <= 10 and not self.unit

    @property
    def digits(self):
        """How many significant digits it has; zeros at the end of an integer are none."""
        written = re.sub(r"\D", "", self.text).lstrip("0")
        return len(written if "." in self.text else written.rstrip("0"))

    def __str__(self):
        return f"{self.text} (cell {self.cell}): … {self.words} …"


def _parse(match):
    """(value, step, percent) of a match of NUMBER."""
    decimals = match["decimals"] or ""
    value = Decimal(re.sub(r"[,_]", "", match["digits"]) + decimals)
    step = Decimal(1).scaleb(-max(0, len(decimals) - 1))
    for name, sign in (("power", ""), ("ten", "10")):
        if match[name]:
            exponent = int(match[name].translate(SUPERSCRIPTS).lstrip("^").replace("−", "-"))
            factor = Decimal(10) ** exponent if sign else None
            # 2¹⁶ is exact; of 3.1 · 10⁴ the last digit written is the step.
            value = value * factor if sign else value**exponent
            step = step * factor if sign else min(Decimal(1), value)
    scale = Decimal(1).scaleb(int(match["exponent"] or 0))
    scale *= Decimal(SCALES[match["scale"].strip()] if match["scale"] else 1)
    percent = bool(match["percent"])
    if percent:
        scale /= 100
    sign = -1 if match["minus"] else 1
    return float(sign * value * scale), float(step * scale), percent


def prose(markdown):
    """The text with everything that is not prose blanked out; each character keeps its place."""
    for pattern in NOT_PROSE:
        markdown = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), markdown)
    return markdown


@functools.cache
def numbers_in(markdown, cell=0):
    """The claims in a Markdown text, trivial ones left out, as a tuple."""
    text = prose(markdown)
    found = []
    for match in NUMBER.finditer(text):
        value, step, percent = _parse(match)
        if not percent and UP_TO_PERCENT.match(text, match.end()):
            value, step, percent = value / 100, step / 100, True
        if HEDGED.search(text[: match.start()]) and step == 1 and value:
            # "about 4,800": zeros at the end may be rounded, by 5 % at most
            digits = match["digits"].replace(",", "")
            zeros = len(digits) - len(digits.rstrip("0"))
            step = max(1.0, min(10.0**zeros, abs(value) / 10))
        around = markdown[max(0, match.start() - 40) : match.end() + 25]
        found.append(
            Claim(
                match[0].strip(),
                value,
                step,
                percent,
                match.start(),
                match.end(),
                cell,
                percent or bool(match["scale"]) or bool(UNIT.match(text, match.end())),
                " ".join(around.split()),
                _interval(text, match),
            )
        )
    return tuple(claim for claim in found if not claim.is_trivial)


def _interval(text, match):
    """Where the bracket opens of an interval that the number belongs to; None if it is in none."""
    for interval in INTERVAL.finditer(text):
        if interval.start() <= match.start() and match.end() <= interval.end():
            return interval.start()
    return None


def claims(notebook):
    """The claims of all Markdown cells."""
    return [
        claim
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown"
        for claim in numbers_in(cell.source, index)
    ]


def printed_numbers(text):
    """The numbers of a text that a cell printed."""
    found = []
    start = 0
    for line in text.splitlines(keepends=True):
        for match in NUMBER.finditer(line):
            value, step, percent = _parse(match)
            written, span = match[0].strip(), (start + match.start(), start + match.end())
            found.append(Number(written, value, step, percent, *span))
            if "%" in line and not percent:  # "5 of 30 (17%)", "17 to 23%"
                found.append(Number(written, value / 100, step / 100, True, *span))
        start += len(line)
    return found


def output_text(output):
    """What a saved output says in text: no progress bars, no alternative texts, no videos."""
    if output.output_type == "stream":
        return output.text if output.name == "stdout" else ""
    data = output.get("data", {})
    if any(kind.startswith("image/") for kind in data):
        return ""
    if "text/html" in data:
        shown = re.findall(r"<(?:table|pre).*?</(?:table|pre)>", data["text/html"], re.DOTALL)
        return html.unescape(re.sub(r"<[^>]+>", " ", " ".join(shown)))
    text = data.get("text/plain", "")
    return "" if text.startswith("<") else text


def written_numbers(source):
    """The numeric constants of Python code, powers of constants included."""
    lines = (re.sub(r"^\s*[%!].*", "", line) for line in source.splitlines())
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:  # an exercise's code may wait for its reader
        return [number.value for number in printed_numbers(source)]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found.append(float(node.value))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            try:
                found.append(float(ast.literal_eval(node.left) ** ast.literal_eval(node.right)))
            except (ValueError, OverflowError):
                continue
    return found


def agrees(claim, printed):
    """Whether the claim is the printed number, rounded as the claim is written."""
    if claim.percent and not (printed.percent or "." in printed.text):
        return False  # 3 % is not any 3 / 100
    value = printed.value if claim.signed else abs(printed.value)
    return abs(value - claim.value) <= claim.step / 2 * (1 + 1e-6) and (
        printed.step <= claim.step * (1 + 1e-6) or math.isclose(value, claim.value)
    )


class Sources:
    """Where numbers may come from: (cell, number) of all outputs, and of all constants in code."""

    def __init__(self, printed=(), written=()):
        self.printed = list(printed)
        self.written = list(written)

    @classmethod
    def of_notebook(cls, notebook):
        """The sources in a notebook; its last cell, the stamp, counts as none."""
        printed, written = [], []
        for index, cell in enumerate(notebook.cells[:-1]):
            if cell.cell_type == "code":
                written += [(index, value) for value in written_numbers(cell.source)]
                for output in cell.outputs:
                    printed += [(index, found) for found in printed_numbers(output_text(output))]
            else:
                for block in re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL):
                    written += [(index, value) for value in written_numbers(block)]
        return cls(printed, written)

    def in_cell(self, index):
        """The sources in one cell alone."""
        return Sources(
            [(cell, one) for cell, one in self.printed if cell == index],
            [(cell, one) for cell, one in self.written if cell == index],
        )

    def cells(self, claim):
        """The cells that hold the claim, a set.

        What a cell printed may be rounded by the prose; a constant must be equal.
        """
        return {cell for cell, one in self.printed if agrees(claim, one)} | {
            cell
            for cell, value in self.written
            if math.isclose(value if claim.signed else abs(value), claim.value, rel_tol=1e-9)
        }

    def distance(self, claim):
        """How many cells away the nearest source is; None if there is none."""
        return min((abs(cell - claim.cell) for cell in self.cells(claim)), default=None)

    def hold(self, claim, together=()):
        """Whether the claim has a source near enough for how much it says.

        Three significant digits are hardly ever found by chance: they may come from any cell. Fewer
        must stand within `NEAR` cells; with the rest of their interval, if they are part of one.

        Args:
            claim: the number.
            together: the numbers of its interval.
        """
        cells = set.intersection(*(self.cells(one) for one in together or (claim,)))
        digits = sum(one.digits for one in together) or claim.digits
        return bool(cells) and (
            digits >= 3 or min(abs(cell - claim.cell) for cell in cells) <= NEAR
        )


def unsupported(found, sources):
    """The claims that have no source.

    A claim may repeat another one that has a source, digit by digit: a summary does.
    """
    intervals = {}
    for claim in found:
        if claim.interval is not None:
            intervals.setdefault((claim.cell, claim.interval), []).append(claim)
    alone = [claim for claim in found if claim.interval is None]
    held = {claim.text for claim in alone if sources.hold(claim)}
    return [claim for claim in alone if claim.text not in held] + [
        claim
        for together in intervals.values()
        for claim in together
        if not sources.hold(claim, together)
    ]


# Listed sources ---------------------------------------------------------------------------------
#
# tests/data/numbers.toml names the sources of the others. These kinds are looked up, too:
#
#   cell ID              that cell prints the number, or its code has it
#   notebook NN          a cell of that notebook prints it
#   arithmetic: A; B     each number is one of these expressions of Python, rounded as it is written
#   setting NAME         the default of that field of DQNConfig
#   results FILE         the heading of a file of notebooks/results: what was declared, and
#                        the settings
#
# These say what holds the number, and only that the thing is there is tested:
#
#   picture ID           the picture of that cell shows it
#   experiment ID: …     what that cell prints after the change that the prose describes
#   results FILE: …      what can be computed from its rows
#   paper …, link https…, definition: …, measured: …

KINDS = (
    "cell", "notebook", "arithmetic", "setting", "picture", "experiment", "results",
    "paper", "link", "definition", "measured",
)  # fmt: skip


def covered_by(snippet, notebook, found):
    """The claims that lie within a snippet of the prose; line breaks count as spaces."""
    pattern = re.compile(r"\s+".join(map(re.escape, snippet.split())))
    places = {
        (index, match.span())
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown"
        for match in pattern.finditer(cell.source)
    }
    return [
        claim
        for claim in found
        if any(
            cell == claim.cell and a <= claim.start and claim.end <= b for cell, (a, b) in places
        )
    ]


def complaint(source, covered, notebook, sources):
    """What is wrong with a listed source of these claims; None if nothing is."""
    kind = next((kind for kind in KINDS if source.startswith(kind)), None)
    if kind is None:
        return f"{source!r}: begins with none of {', '.join(KINDS)}"
    name, _, words = (part.strip() for part in source.removeprefix(kind).partition(":"))
    if kind in ("cell", "picture", "experiment"):
        return _wrong_cell(kind, name, covered, notebook, sources)
    if kind == "notebook":
        (path,) = (path for path in series() if path.name.startswith(name))
        return _missing(covered, Sources(Sources.of_notebook(read(path)).printed).distance)
    if kind == "results":
        return _wrong_results(name, words, covered)
    if kind in ("arithmetic", "setting"):
        values = [getattr(DQNConfig(), name)] if kind == "setting" else _values(words)
        exact = [Number(".", value, 0.0, False, 0, 0) for value in values]
        return _missing(covered, lambda claim: any(agrees(claim, one) for one in exact))
    if kind == "link":
        return None if source.startswith("link https://") else f"{source!r}: no address"
    return f"{source!r}: say more" if len(source.split()) < 4 else None


def _wrong_cell(kind, name, covered, notebook, sources):
    index = next((i for i, cell in enumerate(notebook.cells) if cell.id == name), None)
    if index is None:
        return f"there is no cell {name!r}"
    if kind == "cell":
        return _missing(covered, sources.in_cell(index).distance)
    outputs = notebook.cells[index].get("outputs", [])
    if kind == "picture" and not any("image/png" in each.get("data", {}) for each in outputs):
        return f"cell {name!r} shows no picture"
    return None


def _wrong_results(name, words, covered):
    if not (RESULTS / name).is_file():
        return f"notebooks/results has no {name}"
    if words:
        return None
    heading = Sources([(0, one) for one in printed_numbers(_heading(RESULTS / name))])
    return _missing(covered, heading.distance)


def _values(expressions):
    return [eval(each, {"__builtins__": {}}, vars(math)) for each in expressions.split(";")]


def _heading(path):
    """The first line of a file of results: what was declared, and the settings of each arm."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return file.readline()


def _missing(covered, is_there):
    missing = [str(claim) for claim in covered if is_there(claim) in (None, False)]
    return f"not there: {'; '.join(missing)}" if missing else None


def problems(notebook, listed, sources=None):
    """All that is wrong with the numbers of a notebook, a sentence each.

    Args:
        notebook: with its outputs.
        listed: {snippet of the prose: source}, from tests/data/numbers.toml.
        sources: where the other numbers may come from; the notebook's own unless given.
    """
    sources = Sources.of_notebook(notebook) if sources is None else sources
    found = claims(notebook)
    told = []
    at_listed = set()
    for snippet, source in listed.items():
        covered = covered_by(snippet, notebook, found)
        if not covered:
            told.append(f"numbers.toml: the prose has no number in {snippet!r} any more")
        elif wrong := complaint(source, covered, notebook, sources):
            told.append(f"numbers.toml, {snippet!r}: {wrong}")
        at_listed.update(covered)
    promised = READING_TIME.search(notebook.cells[0].source)
    if promised and int(promised[1]) != reading_time.total(notebook):
        told.append(
            f"the reading time is {reading_time.total(notebook)} minutes, not {promised[1]}"
        )
    others = [claim for claim in found if claim not in at_listed]
    return told + [f"no cell near prints {claim}" for claim in unsupported(others, sources)]


def page(markdown):
    """A page of Markdown as a notebook of one cell."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(markdown)])


def main():
    """Print what is wrong; the exit status is 1 if something is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all of the series")
    listed = tomllib.loads((ROOT / "tests/data/numbers.toml").read_text(encoding="utf-8"))
    status = 0
    for path in parser.parse_args().notebooks or series():
        for problem in problems(read(path), listed.get(path.stem, {})):
            print(f"{path.name}: {problem}")
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
