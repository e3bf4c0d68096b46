"""How long a notebook takes to read, measured and not promised.

python tools/reading_time.py [NOTEBOOK...]   minutes of each section

Words are read at 130 a minute, lines of code at 15, printed words at 200; a picture takes 45
seconds, a folded cell (tagged `hide-input`) 5. With these rates the tool agrees, within an eighth,
with what nine readers needed for nine pages. Exercises, solutions and appendices are not part
of the main text.
"""

import argparse
import re
from pathlib import Path

from notebook_files import read, series

WORDS_A_MINUTE = 130
LINES_A_MINUTE = 15
PRINTED_WORDS_A_MINUTE = 200
MINUTES_A_PICTURE = 0.75
MINUTES_A_FOLDED_CELL = 1 / 12
# Sections that one does, or skips
APART = ("exercise", "appendix", "explorer", "try it", "your turn")


def words(markdown):
    """How many words a Markdown text has; a formula on a line of its own counts as one."""
    text = re.sub(r"<details>.*?</details>", "", markdown, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", " formula ", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>|\]\([^)]*\)|!\[[^\]]*\]", " ", text)
    return len(re.findall(r"[^\s|]*\w[^\s|]*", text))


def code_lines(source):
    """How many lines of code a reader meets: no blank ones, no comments."""
    lines = (line.strip() for line in source.splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def is_folded(cell):
    """Whether the cell's code is folded away under its title."""
    return "hide-input" in cell.metadata.get("tags", [])


def minutes_of(cell):
    """Minutes that a reader spends on a cell and on what it shows."""
    if cell.cell_type == "markdown":
        return words(cell.source) / WORDS_A_MINUTE
    lines = code_lines(cell.source) / LINES_A_MINUTE
    took = MINUTES_A_FOLDED_CELL if is_folded(cell) else lines
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            took += MINUTES_A_PICTURE
        took += len(output.get("text", "").split()) / PRINTED_WORDS_A_MINUTE
    return took


def sections(notebook):
    """{heading: minutes}, in order; what comes before the second heading belongs to the title."""
    minutes = {}
    heading = ""
    for cell in notebook.cells:
        found = re.search(r"^#{1,2} (.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and found:
            heading = found[1]
        minutes[heading] = minutes.get(heading, 0) + minutes_of(cell)
    return minutes


def main_text(notebook):
    """{heading: minutes} of the main text: without exercises and appendices."""
    return {
        heading: took
        for heading, took in sections(notebook).items()
        if not any(word in heading.lower() for word in APART)
    }


def total(notebook):
    """Minutes of the main text, to the next five."""
    return max(5, 5 * round(sum(main_text(notebook).values()) / 5))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    for path in parser.parse_args().notebooks or series():
        notebook = read(path)
        counted = main_text(notebook)
        print(f"{path.name}: about {total(notebook)} minutes")
        for heading, took in sections(notebook).items():
            print(f"{took:6.1f}  {heading}{'' if heading in counted else '  (apart)'}")


if __name__ == "__main__":
    main()
