"""The measurements on two pages: speed, and what the studies found.

In the repository the tables of speed are a file a benchmark. Here they stand at the end of the page
about speed, folded, and links lead there.
"""

import re

SPEED = "speed.md"
TABLES = ("replay", "training", "agents", "methods", "minatar", "gpu")
LONG = 8  # rows: longer tables are folded


def gather(folder):
    """Move the pages of tables to the end of the page about speed, in a copy of docs/.

    Returns:
        {file name of a page that is gone: the name that a link to its tables has now}
    """
    pages = [folder / f"{name}_speed.md" for name in TABLES]
    pages = [page for page in pages if page.exists()]
    parts = ["\n## All tables\n"]
    for page in pages:
        title, _, rest = page.read_text("utf-8").partition("\n")
        heading = title.removeprefix("# ")
        parts.append(f"({page.stem})=\n### {heading}\n\n{folded('The tables', flat(rest))}")
        page.unlink()
    with (folder / SPEED).open("a", encoding="utf-8") as speed:
        speed.write("\n".join(parts))
    return {page.name: page.stem for page in pages}


def flat(text):
    """Markdown whose headings are bold lines: sections must not begin inside what is folded."""
    return re.sub(r"^#+ (.+)$", r"**\1**", text.strip(), flags=re.MULTILINE)


def folded(summary, text):
    """Markdown that is shown when its summary is clicked."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>\n"


def fold_long_tables(text):
    """Markdown in which each table of many rows is folded; its heading line says what it holds."""

    def fold(table):
        lines = table[0].strip().split("\n")
        if len(lines) - 2 <= LONG:
            return table[0]
        columns = [cell.strip() for cell in lines[0].strip("| ").split("|")]
        names = ", ".join(re.sub(r"[*`]", "", name) for name in columns if name)
        return folded(f"Table of {len(lines) - 2} rows: {names}", table[0].strip())

    return re.sub(r"(?:^\|.*\n)+", fold, text, flags=re.MULTILINE)


def redirected(text, gone):
    """Markdown whose links to the pages in ``gone`` lead to where their tables are now."""
    for page, name in gone.items():
        text = re.sub(rf"\]\((?:\.\./)?(?:docs/)?{re.escape(page)}\)", f"](#{name})", text)
    return text
