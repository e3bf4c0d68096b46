"""Sphinx's settings. What isn't said here is as Sphinx, MyST-NB and the theme have it."""

import re
import tomllib
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

import per_tutorial

PYPROJECT = Path(per_tutorial.__file__).parents[1] / "pyproject.toml"

project = "Prioritized experience replay"
author = copyright = "The per_tutorial authors"
version = release = per_tutorial.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
exclude_patterns = ["_extra", "_doctrees"]
nb_execution_mode = "off"  # notebooks are shown as they were published
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

suppress_warnings = ["ref.python"]  # an attribute's name is that of several classes
default_role = "literal"
add_module_names = False
autodoc_typehints = "none"  # docstrings say what is meant, with shapes and units
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # other libraries write theirs in other styles
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["site.css", "site.js"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = "favicon.svg"
html_theme_options = {
    "repository_url": tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["urls"]["Repository"],
    "use_repository_button": True,
    "show_toc_level": 2,
    # The sidebar has the search; a bar above the page would show it twice.
    **dict.fromkeys(["navbar_start", "navbar_center", "navbar_end", "navbar_persistent"], []),
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def escape_marks(app, what, name, value, options, lines):
    """Keep |δ|, (*shape) and (**settings) in a docstring: reStructuredText reads them as marks."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [
                re.sub(r"\||(?<!\w)\*+(?=\w+[^*]*\))", escaped, part) for part in parts[::2]
            ]
            lines[number] = "``".join(parts)


def escaped(found):
    """The signs that were found, each with a backslash before it."""
    return "".join(f"\\{sign}" for sign in found[0])


def write_formula(page, node):
    """Write a formula as MathML: browsers draw it offline and without a script."""
    text = node.astext().replace(r"\arg", r"\mathrm{arg}")  # the one name that is not known
    block = isinstance(node, nodes.math_block)
    formula = latex2mathml.converter.convert(text, display="block" if block else "inline")
    page.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app):
    """Connect this with Sphinx."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-docstring", escape_marks, priority=400)  # before napoleon's
