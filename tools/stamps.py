"""Stamps: which sources, on which machine, a notebook's saved outputs come from.

A stamp goes stale when the notebook's code changes or when a module that it uses does: one that it
imports, or that such a module imports in turn. Comments, docstrings, type hints and data files
don't count.

A module is named as below the package: `replay.trees`. A package's name stands for its
`__init__.py`, so that "" is the whole package's own.
"""

import ast
import datetime
import functools
import hashlib

from IPython.core.inputtransformer2 import TransformerManager
from notebook_files import ROOT, code_cells

from per_tutorial.common.provenance import processor, versions

PACKAGE = ROOT / "per_tutorial"
HINT_MODULES = {"__future__", "collections.abc", "numpy.typing", "typing"}


def is_current(notebook):
    """Whether the notebook's stamp still matches the code."""
    return notebook.metadata.get("per_tutorial", {}).get("source") == source_hash(notebook)


def make(notebook, seconds):
    """The stamp of a run that has just ended, after `seconds`, in this environment."""
    import torch  # here, as a check of stamps does not need it

    return {
        "source": source_hash(notebook),
        "date": datetime.date.today().isoformat(),
        "seconds": round(seconds, 1),
        **versions("torch", "numpy", "gymnasium"),
        "cpu": processor(),
        "threads": torch.get_num_threads(),
    }


def source_hash(notebook):
    """The SHA-256 of the notebook's code and of the package's modules behind it."""
    # The set-up cell computes nothing, and it changes with the repository's address.
    sources = [cell.source for cell in code_cells(notebook) if cell.id != "setup"]
    modules = modules_behind(sources)
    parts = sources + [f"{name}: {text_of(name)}" for name in sorted(modules)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# Which modules ----------------------------------------------------------------------------------


def modules_behind(sources):
    """The names of the package's modules that these cells import, directly or through others."""
    to_python = TransformerManager().transform_cell  # `%pip` and the like are no Python
    waiting = set().union(*(imported(parsed(to_python(source))) for source in sources))
    found = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= imported(module_tree(name), package_of(name)) - found
    return found


def imported(tree, package=""):
    """The names of the package's modules that a syntax tree imports, wherever in it.

    `package` is where the code stands, for `from . import`.
    """
    requests = [request for node in ast.walk(tree) for request in requested(node, package).values()]
    return set().union(*map(modules_of, requests))


def requested(node, package):
    """{name in the importing code: what it stands for in our package} of an import statement."""
    if isinstance(node, ast.Import):
        names = {alias.asname or alias.name: alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
        base = node.module
        if node.level:
            above = ["per_tutorial", *package.split(".")] if package else ["per_tutorial"]
            base = ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])
        names = {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
    else:
        return {}
    ours = {name: full.partition(".") for name, full in names.items()}
    return {name: rest for name, (top, _, rest) in ours.items() if top == "per_tutorial"}


def modules_of(request):
    """The modules that a name below the package stands for, as `replay.SumTree` or `replay`."""
    request = request.removesuffix("*").removesuffix(".")
    if is_package(request):  # all of it: any name may be used
        return {module_name(path) for path in file_of(request).parent.rglob("*.py")}
    if file_of(request).exists():
        return {request}
    package, _, name = request.rpartition(".")
    if not is_package(package):
        return modules_of(package)  # a name in a module
    if name.startswith("__"):
        return set()  # such as the version, which describes and does not compute
    homes = homes_in(package)
    return modules_of(homes[name]) if name in homes else {package}


def homes_in(package):
    """{name: where it comes from} of the names that an `__init__.py` takes from other modules.

    It imports them, or it has a table `_HOMES` of those that are imported when first used.
    """
    homes = {}
    for node in module_tree(package).body:
        homes |= requested(node, package)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            for home, names in ast.literal_eval(node.value).items():
                inside = f"{package}.{home}".lstrip(".")
                homes |= {name: f"{inside}.{name}" for name in names}
    return homes


def file_of(name):
    """Where a module is, or would be."""
    place = PACKAGE.joinpath(*name.split("."))
    package = place / "__init__.py"
    return package if package.exists() else place.with_suffix(".py")


def is_package(name):
    return file_of(name).name == "__init__.py"


def package_of(name):
    """The package that a module stands in; a package stands in itself."""
    return name if is_package(name) else name.rpartition(".")[0]


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


# What of them counts ----------------------------------------------------------------------------


def module_tree(name):
    """The syntax tree of one of the package's modules, as far as it computes."""
    return parsed(file_of(name).read_text(encoding="utf-8"))


def text_of(name):
    """What of one of the package's modules computes, as text."""
    return canonical_text(file_of(name).read_text(encoding="utf-8"))


@functools.cache  # the notebooks share most of their modules
def canonical_text(source):
    return canonical(parsed(source))


@functools.cache
def parsed(source):
    """The syntax tree of a source without type hints and without what is there for their sake."""
    return _WithoutHints().visit(ast.parse(source))


class _WithoutHints(ast.NodeTransformer):
    """Takes away the hints, the imports of names made for hints, and `if TYPE_CHECKING:`."""

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                statement.annotation = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        in_class = node.annotation is None
        self.generic_visit(node)
        if in_class:  # it may be a field, which a plain assignment is not
            return node
        return ast.Assign([node.target], node.value) if node.value else None

    def visit_If(self, node):
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test).endswith("TYPE_CHECKING") else node

    def visit_Import(self, node):
        return None if all(alias.name in HINT_MODULES for alias in node.names) else node

    def visit_ImportFrom(self, node):
        return None if node.module in HINT_MODULES and not node.level else node


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
