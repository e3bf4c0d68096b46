"""Sphinx's settings. Nothing on a page comes from elsewhere: no font, no script, no picture."""

import sys
import tomllib
from pathlib import Path
from typing import Generic, TypeVar

import numpy.typing

import per_tutorial

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(per_tutorial.__file__).parents[1]


class ArrayLike:
    """Stands for NumPy's type of this name, a union that fills three lines of the reference."""


class NDArray(Generic[TypeVar("Scalar")]):
    """Likewise: NumPy's is an alias, and the reference would show what it is an alias of."""


for _kind in (ArrayLike, NDArray):  # before autodoc imports a module whose hints name them
    _kind.__module__ = "numpy.typing"
    setattr(numpy.typing, _kind.__name__, _kind)

_project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
_repository = _project["urls"]["Repository"]

project = _project["name"]
author = _project["authors"][0]["name"]
version = release = per_tutorial.__version__
html_title = "Prioritized experience replay"
copyright = author

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_nb",
    "rendering",
]
exclude_patterns = ["_extra", "_generated", "_doctrees"]
default_role = "py:obj"

# Notebooks are shown as they were published.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block", "attrs_inline", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_inherit_docstrings = False  # other libraries write theirs in other styles
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_copy_source = True
html_show_sourcelink = False
html_last_updated_fmt = None
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "repository_url": _repository,
    "use_repository_button": True,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "home_page_in_toc": False,
    "show_toc_level": 2,
    "search_bar_text": "Search",
    "footer_content_items": ["copyright.html"],
    "logo": {"text": html_title},
    # The sidebar has all of it; a second bar above the page would show it twice.
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
