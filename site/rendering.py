"""What Sphinx must be told to show these pages: formulas, alternative texts, badges, docstrings.

Formulas become MathML when the site is built. Browsers draw it themselves, so no script has to be
loaded, and a screen reader can read it. The font they need comes with the package ziamath.
"""

import re
from importlib.resources import files

from docutils import nodes
from fontTools import subset
from math_core import LatexToMathML
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.logging import getLogger

log = getLogger(__name__)

# Formulas -----------------------------------------------------------------------------------------

CONVERTER = LatexToMathML()
# The converter knows colours by name only. These stand for the colours of a formula on their way
# through it, and no formula may use them itself.
STAND_INS = ("Apricot", "Bittersweet", "Cerulean", "Dandelion", "Emerald", "Fuchsia", "Goldenrod")


def mathml(latex, display):
    """A formula as MathML, whose colours are CSS variables: dark pages give them lighter values.

    Raises:
        math_core.LatexError: the formula is wrong, or uses what the converter doesn't know.
    """
    colors = list(dict.fromkeys(re.findall(r"\\color\{#(\w{6})\}", latex)))
    for color, name in zip(colors, STAND_INS[: len(colors)], strict=True):
        latex = latex.replace(rf"\color{{#{color}}}", rf"\textcolor{{{name}}}")
    html = CONVERTER.convert_with_local_state(latex, displaystyle=display)
    for color, name in zip(colors, STAND_INS, strict=False):
        html = html.replace(shade_of(name), f"color:var(--symbol-{color}, #{color});")
    return html


def shade_of(name):
    """The CSS by which the converter writes a colour that it knows."""
    html = CONVERTER.convert_with_local_state(rf"\textcolor{{{name}}}{{x}}", displaystyle=False)
    return re.search(r'style="([^"]*)"', html)[1]


def visit_math(translator, node):
    """Write a formula between words."""
    translator.body.append(converted(node, display=False))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    """Write a formula that stands alone."""
    translator.body.append(f'<div class="formula">{converted(node, display=True)}</div>\n')
    raise nodes.SkipNode


def converted(node, display):
    """The MathML of a node; one that can't be converted is a warning, and so ends the build."""
    try:
        return mathml(node.astext(), display)
    except ValueError as error:
        log.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def write_math_font(app):
    """Write STIX Two Math, less the signs that no formula needs."""
    options = subset.Options(flavor="woff", layout_features=["ssty"], notdef_outline=True)
    with files("ziamath") as package:
        font = subset.load_font(package / "fonts" / "STIXTwoMath-Regular.ttf", options)
    subsetter = subset.Subsetter(options)
    # Latin, Greek, punctuation, arrows, operators, large brackets and mathematical letters.
    blocks = [(0x20, 0x17F), (0x370, 0x3FF), (0x2010, 0x2057), (0x2061, 0x2064), (0x20D0, 0x20DC)]
    blocks += [(0x2100, 0x214F), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2308, 0x230B)]
    blocks += [(0x239B, 0x23E1), (0x27E8, 0x27E9), (0x1D434, 0x1D467), (0x1D49C, 0x1D4B5)]
    blocks += [(0x1D6A4, 0x1D6A5), (0x1D6E2, 0x1D71B)]
    subsetter.populate(unicodes=[sign for a, b in blocks for sign in range(a, b + 1)])
    subsetter.subset(font)
    folder = app.outdir / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, folder / "math.woff", options)


# Notebooks ----------------------------------------------------------------------------------------


class AlternativeTexts(SphinxPostTransform):
    """Give pictures in outputs the alternative text that lies beside them as text: `[text]`."""

    default_priority = 3  # before myst-nb chooses one form of each output

    def run(self, **_):
        for bundle in self.document.findall(nodes.container):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            forms = {form.get("mime_type"): form for form in bundle.children}
            if "image/png" in forms and "text/plain" in forms:
                text = forms["text/plain"].astext().strip().removeprefix("[").removesuffix("]")
                for image in forms["image/png"].findall(nodes.image):
                    image["alt"] = text


class Badges(SphinxPostTransform):
    """In place of a picture from Colab's server: a button, and one that downloads the notebook."""

    default_priority = 3

    def run(self, **_):
        for image in list(self.document.findall(nodes.image)):
            link = image.parent
            if "colab-badge" not in image["uri"] or not isinstance(link, nodes.reference):
                continue
            link["classes"].append("button")
            link.replace(image, nodes.Text("Open in Colab"))
            name = self.env.docname.rpartition("/")[2]
            download = nodes.raw(
                "",
                f' <a class="button" download href="../_sources/notebooks/{name}.ipynb">'
                "Download the notebook</a>",
                format="html",
            )
            link.parent.insert(link.parent.index(link) + 1, download)


# Docstrings ---------------------------------------------------------------------------------------


def escape_marks(app, what, name, value, options, lines):
    """Keep |δ|, (*shape) and (**settings) in a docstring: reStructuredText reads them as marks."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = line.split("``")
            parts[::2] = [
                re.sub(r"\||(?<!\w)\*+(?=\w+[^*]*\))", escaped, part) for part in parts[::2]
            ]
            lines[number] = "``".join(parts)


def escaped(found):
    """The signs that were found, each with a backslash before it."""
    return "".join("\\" + sign for sign in found[0])


def setup(app):
    """Connect all this with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.add_post_transform(AlternativeTexts)
    app.add_post_transform(Badges)
    app.connect("builder-inited", write_math_font)
    app.connect("autodoc-process-docstring", escape_marks, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
