"""The README: short, with a row for each notebook, and with numbers that were measured."""

import json
import re

import addresses
import nbformat
import pytest
from notebook_files import ROOT, series

from benchmarks.harness import ratios

README = (ROOT / "README.md").read_text(encoding="utf-8")
PARTS = {"I · Understand": range(6), "II · Use": range(6, 8), "III · Beyond": range(8, 100)}


def rows():
    """(part, file name, title) of each row of the table of notebooks."""
    part, found = None, []
    for line in README.splitlines():
        if heading := re.match(r"\| \*\*(.+)\*\* \|", line):
            part = heading[1]
        elif row := re.match(r"\| \[(.+?)\]\(notebooks/(.+?)\)", line):
            assert addresses.colab_badge(row[2]) in line
            found.append((part, row[2], row[1]))
    return found


def test_each_notebook_has_a_row_with_its_badge_in_its_part():
    assert [name for _, name, _ in rows()] == [path.name for path in series()]
    for part, name, title in rows():
        number = name.partition("_")[0]
        assert int(number) in PARTS[part], name
        assert title.startswith(f"{number} · ")
        opening = nbformat.read(ROOT / "notebooks" / name, as_version=4).cells[0].source
        assert opening.startswith(f"# {number} · ")
    shown = re.findall(r"^\| \*\*(.+)\*\* \|", README, re.MULTILINE)
    assert shown == list(dict.fromkeys(part for part, *_ in rows())), "an empty part"


def test_it_is_two_screens_long():
    assert len(README.splitlines()) <= 89 + len(series())  # a row for each notebook


PAGES = [
    page for page in addresses.pages() if page.parent.name != "site"
]  # its builder checks its own


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?![a-z]+:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def times(name, key, **wanted):
    """What was measured of each contestant, round by round."""
    data = json.loads((ROOT / "docs" / f"{name}.json").read_text(encoding="utf-8"))
    if not wanted:
        return data[key]
    (cell,) = (cell for cell in data["cells"] if wanted.items() <= cell.items())
    return cell[key]


def number(pattern):
    """The number in the README that the group of the pattern matches."""
    (found,) = re.findall(pattern, " ".join(README.split()))
    return float(found)


def test_the_numbers_of_replay_are_those_that_were_measured():
    cell = {"rows": "4 floats", "kind": "prioritized", "size": 10**6, "batch": 32}
    measured = times("replay_speed", "times", operation="step", **cell)
    ours = measured["per_tutorial"]
    assert number(r"\*\*([\d.]+) µs\*\*") == round(sorted(ours)[len(ours) // 2], 1)
    bare = ratios(ours, measured["bare gather and write"])[0]
    assert number(r"takes ([\d.]+) times as long as NumPy alone") == round(bare, 1)
    assert number(r"([\d.]+) times as fast as tianshou") == round(
        ratios(measured["tianshou"], ours)[0], 1
    )
    assert number(r"([\d.]+) times as fast as cpprb") == round(
        ratios(measured["cpprb"], ours)[0], 1
    )


@pytest.mark.parametrize(
    "pattern, contestant",
    [
        (r"\*\*([\d.]+) times\*\* the frames", "1 run, proportional"),
        (r"([\d.]+) times when compiled", "1 run, proportional, compiled"),
        (r"side by side: ([\d.]+) and", "100 runs, proportional"),
        (r"side by side: [\d.]+ and ([\d.]+) times", "100 runs, proportional, compiled"),
    ],
)
def test_the_numbers_of_training_are_those_that_were_measured(pattern, contestant):
    seconds = times("training_speed", "seconds")
    runs = int(contestant.partition(" ")[0])
    per_frame = [each / runs for each in seconds[contestant]]
    assert number(pattern) == round(
        ratios(seconds["Stable-Baselines3 DQN, 1 run"], per_frame)[0], 1
    )
