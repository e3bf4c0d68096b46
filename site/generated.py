"""Pages that follow from something else: the API reference, tables of studies, the citation."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import yaml
from explorable_pages import all_of_them
from sphinx.pycode import ModuleAnalyzer

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
# The modules with a public `__all__`, in the reference's order: module → page, title, opening.
PUBLIC = {
    "per_tutorial.replay": (
        "replay",
        "Replay",
        "Which experiences to keep and which to replay. It needs NumPy and numba only.",
    ),
    "per_tutorial": (
        "dqn",
        "An agent",
        "A DQN agent that learns from what is replayed, for one run or a stack of runs.",
    ),
    "per_tutorial.conformance": (
        "conformance",
        "Conformance",
        "An examination for any prioritised replay buffer, yours included.",
    ),
    "per_tutorial.integrations": (
        "integrations",
        "Integrations",
        "The same replay inside other libraries' agents.",
    ),
}
# The part of the reference that a name belongs to follows from the module that defines it.
SECTIONS = {
    "buffers": "Buffers",
    "replay": "Buffers",
    "contracts": "What parts must do, and what they hand out",
    "segment_tree": "Trees",
    "samplers": "Samplers: which experiences are replayed",
    "storages": "Storages: which experiences are kept",
    "registry": "By name",
    "training": "Train and evaluate",
    "history": "Train and evaluate",
    "checkpoints": "Train and evaluate",
    "config": "Settings",
    "learner": "The agent",
    "networks": "The agent",
    "worlds": "Atari",
    "examination": "The examination",
    "adapter": "How the examination knows a buffer",
    "adapters": "How the examination knows a buffer",
    "checks": "The checks",
}
LIBRARIES = {"sb3": "Stable-Baselines3"}  # others are called as their module is


def write_pages(source):
    """Write all of them into the folder that Sphinx reads."""
    folder = source / "_generated"
    folder.mkdir()
    (folder / "worlds.md").write_text(worlds(), "utf-8")
    (folder / "bibtex.md").write_text(f"```bibtex\n{bibtex()}\n```\n", "utf-8")
    (folder / "explorables.md").write_text(all_of_them(), "utf-8")
    (folder / "series.md").write_text(series(source / "notebooks"), "utf-8")
    (source / "api").mkdir()
    pages = {page: reference(module) for module, (page, _, _) in PUBLIC.items()}
    pages = {page: text for page, text in pages.items() if text}
    index = ["API reference", "=============", "", ".. toctree::", ""]
    pages["index"] = "\n".join(index + [f"   {page}" for page in pages])
    for page, text in pages.items():
        (source / "api" / f"{page}.rst").write_text(text, "utf-8")


# The API reference --------------------------------------------------------------------------------


def public_names():
    """Every public name: (module to import it from, name), each once.

    What `per_tutorial` takes from `per_tutorial.replay` is listed under the latter.
    """
    found = {}
    for module in PUBLIC:
        for place in [module, *submodules(module)]:
            for name in exports(place):
                if not name.startswith("_"):
                    found.setdefault(id(value_of(place, name)), (place, name))
    return list(found.values())


def value_of(place, name):
    """What a public name stands for."""
    return getattr(importlib.import_module(place), name)


def exports(module):
    """What a module declares in `__all__`."""
    return getattr(importlib.import_module(module), "__all__", [])


def submodules(module):
    """The modules of a package that collects one file a library; none of other packages."""
    if module != "per_tutorial.integrations":
        return []
    path = importlib.import_module(module).__path__
    return [f"{module}.{found.name}" for found in pkgutil.iter_modules(path)]


def reference(module):
    """The reference of a module's names as reStructuredText; None if it has none."""
    _, title, opening = PUBLIC[module]
    sections = {}
    for place, name in public_names():
        if place == module or place in submodules(module):
            sections.setdefault(section_of(place, name), []).append((place, name))
    if not sections:
        return None
    lines = [title, "=" * len(title), "", opening, ""]
    order = list(SECTIONS.values())
    for section in sorted(sections, key=lambda s: order.index(s) if s in order else len(order)):
        lines += [section, "-" * len(section), ""]
        if sections[section][0][0] != module:
            lines += [f"To import from ``{sections[section][0][0]}``.", ""]
        for place, name in sorted(sections[section], key=lambda entry: source_place(*entry)):
            lines += directive(place, name)
    return "\n".join(lines)


def section_of(place, name):
    """The heading under which a name stands."""
    value = value_of(place, name)
    if place.startswith("per_tutorial.integrations."):
        library = place.rpartition(".")[2]
        return LIBRARIES.get(library, library)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "By name"
    parts = value.__module__.split(".")
    return next((SECTIONS[part] for part in reversed(parts) if part in SECTIONS), "More")


def source_place(place, name):
    """Where a name is defined, to list names in the order of their sources."""
    value = value_of(place, name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "", 0
    return value.__module__, inspect.getsourcelines(value)[1]


def directive(place, name):
    """How autodoc is asked for a name, as lines."""
    value = value_of(place, name)
    top = importlib.import_module("per_tutorial")
    home = "per_tutorial" if getattr(top, name, None) is value else place
    if inspect.isclass(value):
        bases = ["   :show-inheritance:"] if value.__bases__ != (object,) else []
        return [f".. autoclass:: {home}.{name}", "   :members:", *bases, ""]
    if inspect.isroutine(value):
        return [f".. autofunction:: {home}.{name}", ""]
    comment = (f"   {line}" for line in comment_of(place, name))
    return [f".. py:data:: {home}.{name}", "", *comment, ""]


def comment_of(package, name):
    """The `#:` comment that explains a constant, as lines; it stands where the constant is made."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}."):
        comments = ModuleAnalyzer.for_module(module.name).find_attr_docs()
        if ("", name) in comments:
            return comments["", name]
    return []


# Tables -------------------------------------------------------------------------------------------


STUDIES_TEXT = """\
## Every study

Each was declared before it ran, and compares runs with the same seeds.
A difference is *shown* if its paired t interval leaves out zero, at the level 1 − 0.05/m for the m
comparisons of the study; else it is *not shown*. `notebooks/results/RESULTS.md` says how to repeat
one.
"""


def studies(folded):
    """What every study with results found, as Markdown.

    Args:
        folded: makes a part that is opened by a click, of its summary and its Markdown.
    """
    from per_tutorial.common.data import data_folder
    from per_tutorial.statistics import compare
    from per_tutorial.studies.results import load_study

    parts = [STUDIES_TEXT]
    for path in sorted(data_folder().glob("*.csv.gz")):
        results = load_study(path.name.removesuffix(".csv.gz"))
        pairs = [(results.scores(a), results.scores(b)) for a, b in results.comparisons]
        rows = [
            (f"{a} − {b}", shown(one.difference), "shown" if one.shown else "not shown")
            for (a, b), one in zip(results.comparisons, compare(pairs), strict=True)
        ]
        facts = f"What decides: {results.facts['metric']}, {len(results.seeds)} pairs of runs."
        text = f"{results.facts['question']}\n\n{facts}"
        if rows:
            text += f"\n\n{table(('compared', 'mean difference', 'verdict'), rows)}"
        parts.append(folded(f"<code>{results.facts['study']}</code>", text))
    return "\n".join(parts)


def worlds():
    """Does PER help? A line a world, as Markdown: plain DQN, full learning rate, uniform or PER."""
    from per_tutorial.statistics import (
        failure_rate,
        paired_difference,
        verdict,
    )
    from per_tutorial.studies.results import load_study

    rows = []
    for world in ("MountainCar", "CartPole", "Acrobot"):
        results = load_study(f"ablation-{world.lower()}")
        per, uniform = (results.scores(f"dqn-{sampler}") for sampler in ("per", "uniform"))
        greedy = [results.scores(f"dqn-{arm}", "greedy score") for arm in ("uniform", "per")]
        failed = [failure_rate(scores, results.facts["failed_below"]).value for scores in greedy]
        rows.append(
            (
                world,
                f"{shown(paired_difference(per, uniform))} of {uniform.mean():.0f}".replace(
                    "-", "−"
                ),
                verdict(per, uniform),
                shown(paired_difference(greedy[1], greedy[0])),
                " → ".join(f"{share:.0%}" for share in failed),
            )
        )
    head = (
        "world",
        "PER − uniform, score over training",
        "verdict",
        "final policies, greedy score",
        "runs that failed, uniform → PER",
    )
    return table(head, rows)


def shown(estimate):
    """An estimate with its interval, as text."""
    digits = 0 if abs(estimate.high - estimate.low) > 5 else 1
    value, low, high = (f"{number:+.{digits}f}".replace("-", "−") for number in estimate)
    return f"{value} [{low}, {high}]"


def table(head, rows):
    """A Markdown table; all columns but the first are read from the right."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


# The rest -----------------------------------------------------------------------------------------


def series(notebooks):
    """The notebooks in their three parts, as Markdown, and their entry in the menu."""
    parts = {"I · Understand": range(6), "II · Use": range(6, 8), "III · Beyond": range(8, 100)}
    stems = [path.stem for path in sorted(notebooks.glob("*.ipynb"))]
    lines = ["```{toctree}", ":caption: The series", ":hidden:", ":maxdepth: 1", ""]
    lines += [f"notebooks/{stem}" for stem in stems] + ["```", ""]
    for title, numbers in parts.items():
        lines += [f"**{title}**", ""]
        lines += [f"- [](notebooks/{stem}.ipynb)" for stem in stems if int(stem[:2]) in numbers]
        lines += [""]
    return "\n".join(lines)


def bibtex():
    """CITATION.cff and the paper that it names, as BibTeX."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    (paper,) = citation["references"]
    entries = [
        (
            "software",
            "per_tutorial",
            {
                "title": f"{{{citation['title']}}}",
                "author": f"{{{citation['authors'][0]['name']}}}",
                "version": citation["version"],
                "url": citation["repository-code"],
            },
        ),
        (
            "inproceedings",
            "schaul2016prioritized",
            {
                "title": paper["title"],
                "author": " and ".join(
                    f"{author['family-names']}, {author['given-names']}"
                    for author in paper["authors"]
                ),
                "booktitle": paper["collection-title"],
                "year": paper["year"],
                "url": paper["url"],
            },
        ),
    ]
    return "\n\n".join(
        f"@{kind}{{{key},\n"
        + "\n".join(f"  {field} = {{{value}}}," for field, value in fields.items())
        + "\n}"
        for kind, key, fields in entries
    )
