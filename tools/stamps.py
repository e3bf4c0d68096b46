"""Stamps: which sources, on which machine, a notebook's saved outputs come from.

A stamp goes stale when the notebook's code changes or when a module that it uses does: one that it
imports, or that such a module imports in turn. Comments, docstrings and data files don't count.
"""

import ast
import datetime
import hashlib
import platform
from importlib.metadata import version

from IPython.core.inputtransformer2 import TransformerManager
from notebook_files import ROOT, code_cells

import per_tutorial

PACKAGE = ROOT / "per_tutorial"


def is_current(notebook):
    """Whether the notebook's stamp still matches the code."""
    return notebook.metadata.get("per_tutorial", {}).get("source") == source_hash(notebook)


def make(notebook, seconds):
    """The stamp of a run that has just ended, after `seconds`, in this environment."""
    import torch  # here, as a check of stamps needs neither

    from per_tutorial.common.provenance import processor

    return {
        "source": source_hash(notebook),
        "date": datetime.date.today().isoformat(),
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "numpy", "gymnasium")},
        "cpu": processor(),
        "threads": torch.get_num_threads(),
    }


def source_hash(notebook):
    """The SHA-256 of the notebook's code and of the package's modules behind it."""
    # The set-up cell computes nothing, and it changes with the repository's address.
    sources = [cell.source for cell in code_cells(notebook) if cell.id != "setup"]
    modules = modules_behind(sources)
    parts = sources + [f"{name}: {canonical(module_tree(name))}" for name in sorted(modules)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def modules_behind(sources):
    """The names of the package's modules that these cells import, directly or through others."""
    to_python = TransformerManager().transform_cell  # `%pip` and the like are no Python
    waiting = set().union(*(imported(ast.parse(to_python(source))) for source in sources))
    found = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= imported(module_tree(name)) - found
    return found


def imported(tree):
    """The names of the package's modules that a syntax tree imports, wherever in it."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, ["per_tutorial" if node.level else "", node.module]))
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for package, _, rest in (name.partition(".") for name in names):
            if package == "per_tutorial":
                name = rest.partition(".")[0]
                modules.add(per_tutorial._HOME.get(name, name))
    if "" in modules:  # `import per_tutorial` alone: any name may be used
        return {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    return {name for name in modules if (PACKAGE / f"{name}.py").exists()}


def module_tree(name):
    """The syntax tree of one of the package's modules."""
    return ast.parse((PACKAGE / f"{name}.py").read_text())


def canonical(node):
    """A syntax tree as text, without docstrings and the same under every version of Python.

    `ast.dump` would do, but from version to version it prints other fields that are empty.
    """
    if isinstance(node, list):
        return f"[{', '.join(map(canonical, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, documented) and ast.get_docstring(node) is not None:
        fields["body"] = node.body[1:]
    filled = (
        f"{key}={canonical(value)}" for key, value in fields.items() if value not in (None, [])
    )
    return f"{type(node).__name__}({', '.join(filled)})"
