"""The pages in JavaScript, and where the other pages show them."""

from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "explorables"
TITLES = {
    "cliffwalk": "The Blind Cliffwalk: a race of four ways to replay",
    "sum-tree": "The sum tree: set a leaf, throw a dart",
    "alpha-beta": "α and β on a memory of surprises",
    "when-map": "The map: when does PER help?",
}
# Where a notebook has sliders, the site has a page that needs no kernel: (notebook, cell) → it.
SLIDERS = {
    ("00_blind_cliffwalk", "explorer"): "cliffwalk",
    ("01_segment_tree", "explorer-sliders"): "sum-tree",
    ("03_per_dqn", "explorer-sliders"): "alpha-beta",
    ("09_should_i_use_it", "map-curves"): "when-map",
}


def frame(name, root=""):
    """An explorable inside another page, as HTML.

    Args:
        name: of its folder.
        root: the way from that page to the site's root, such as "../".
    """
    return (
        f'<iframe class="explorable" src="{root}explorables/{name}/index.html" '
        f'title="{escape(TITLES[name])}" loading="lazy"></iframe>'
    )


def all_of_them():
    """All explorables one after the other, as Markdown."""
    return "".join(
        f"## {title}\n\n{frame(name)}\n\n"
        f'<p><a href="explorables/{name}/index.html">On a page of its own</a></p>\n\n'
        for name, title in TITLES.items()
    )
