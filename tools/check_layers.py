"""Check that the folders of the package import each other in one direction only.

    python tools/check_layers.py [PACKAGE_FOLDER]

Three rules, read off the syntax tree, so nothing is imported:

1. Order. A module imports only from its own layer and from the layers that `MAY_IMPORT`
   names. Imports inside functions and under `TYPE_CHECKING` count too: a type borrowed from
   a later layer is still knowledge of it.
2. Weight. The packages in `HEAVY` are imported inside the function that uses them, so that
   `import equipoise` stays quick. Under `TYPE_CHECKING` they cost nothing and are allowed.
   `scipy.stats` is not imported at all; `scipy.special` has the distribution functions.
3. No circles. No module imports itself by way of others, in whatever folder they are. Imports
   inside functions and under `TYPE_CHECKING` do not count here: they run when all is loaded.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "equipoise"

# layer: the other layers it may import. This table is the architecture.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "methods": set(),
    "trail": {"base"},
    "claims": {"base", "trail"},
    "cells": {"base", "trail", "claims", "methods"},
    "findings": {"base", "methods"},
    "audits": {"base", "trail", "claims", "cells", "methods", "findings"},
    "packs": {"base", "trail", "claims", "cells", "methods", "findings", "audits"},
    "plan": {"base", "trail", "claims", "cells", "methods", "findings", "audits", "datasets"},
    "report": {"base", "findings"},
    "worlds": {"base", "trail", "claims"},
    "datasets": {"base", "trail", "claims"},
}
MAY_IMPORT["cli"] = {*MAY_IMPORT, "top"}
MAY_IMPORT["top"] = {*MAY_IMPORT}

# Files directly in the package that are not folders of their own.
FILES = {
    "base": {"errors", "_annotations", "_validate", "_codec", "_files", "_version"},
    "top": {"__init__", "__main__", "mlflow", "scorers", "testing", "wandb"},
}

# Layers whose imports from outside the package are limited to these (and the standard library).
ONLY_OUTSIDE = {"methods": {"numpy", "scipy"}}

HEAVY = {"sklearn", "duckdb", "altair", "pandas", "polars", "pyarrow", "pyspark", "ibis"}
NEVER = "scipy.stats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported name: where it stands, what it is, and whether it runs on import."""

    line: int
    name: str
    eager: bool


def layer_of(parts: tuple[str, ...]) -> str | None:
    """Return the layer of a module path inside the package, or None if the table lacks it."""
    first = parts[0] if parts else "__init__"
    for layer, files in FILES.items():
        if first in files:
            return layer
    return first if first in MAY_IMPORT and first not in FILES else None


def is_type_checking(node: ast.AST) -> bool:
    """Recognise `if TYPE_CHECKING:` and `if typing.TYPE_CHECKING:`."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def walk(node: ast.AST, *, eager: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node below, with whether it runs when the module is imported."""
    lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for field, value in ast.iter_fields(node):
        # The else branch of `if TYPE_CHECKING:` does run.
        idle = lazy or (is_type_checking(node) and field == "body")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child, eager and not idle
                yield from walk(child, eager=eager and not idle)


def absolute(node: ast.ImportFrom, package: tuple[str, ...]) -> str:
    """Spell out the module of a `from ... import`, relative or not."""
    if not node.level:
        return node.module or ""
    anchor = package[: len(package) - node.level + 1]
    return ".".join((*anchor, *(node.module or "").split("."))).rstrip(".")


def imported(node: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Yield the dotted names that one statement imports (or `scipy.stats` as an attribute)."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = absolute(node, package)
        # `from scipy import stats` imports a module, `from numpy import array` does not;
        # the dotted name is right for both, because only its beginning is judged.
        yield from (f"{module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute) and ast.unparse(node) == NEVER:
        yield NEVER


def imports_of(tree: ast.Module, package: tuple[str, ...]) -> Iterator[Import]:
    """Yield every import of a module."""
    for node, eager in walk(tree):
        for name in imported(node, package):
            yield Import(line=getattr(node, "lineno", 0), name=name, eager=eager)


def begins(name: str, prefix: str) -> bool:
    """Say whether a dotted name is the prefix or lies inside it."""
    return name == prefix or name.startswith(prefix + ".")


def order_fault(layer: str, name: str) -> str | None:
    """Judge an import by the first rule."""
    first, *rest = name.split(".")
    if first != PACKAGE:
        allowed = ONLY_OUTSIDE.get(layer)
        if allowed is None or first in allowed or first in sys.stdlib_module_names:
            return None
        return f"{layer} may import only {', '.join(sorted(allowed))} from outside, not {name}"
    # A name that is no module of the package, as in `from equipoise import gap`, is the top's.
    other = layer_of(tuple(rest)) or "top"
    if other == layer or other in MAY_IMPORT[layer]:
        return None
    return f"{layer} may not import {other} ({name})"


def weight_fault(found: Import) -> str | None:
    """Judge an import by the second rule."""
    if begins(found.name, NEVER):
        return f"{NEVER} is slow to import; use scipy.special"
    if found.eager and found.name.split(".")[0] in HEAVY:
        return f"{found.name} must be imported inside the function that uses it"
    return None


def faults_of(path: Path, root: Path) -> Iterator[str]:
    """Yield the faults of one file, each with its place."""
    parts = path.relative_to(root).with_suffix("").parts
    layer = layer_of(parts)
    if layer is None:
        yield f"{path}:1: {parts[0]} is in no layer; add it to the table in check_layers.py"
        return
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for found in imports_of(tree, (PACKAGE, *parts[:-1])):
        for fault in (order_fault(layer, found.name), weight_fault(found)):
            if fault:
                yield f"{path}:{found.line}: {fault}"


def graph(root: Path) -> dict[str, set[str]]:
    """Return each module of the package with the modules it imports when it is loaded."""
    paths = {dotted(path, root): path for path in sorted(root.rglob("*.py"))}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        package = (PACKAGE, *path.relative_to(root).parts[:-1])
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        eager = (one.name for one in imports_of(tree, package) if one.eager)
        # the name of a thing in a module leads to the module
        known = (n if n in paths else n.rpartition(".")[0] for n in eager)
        found[name] = {other for other in known if other in paths and other != name}
    return found


def dotted(path: Path, root: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def circles(modules: dict[str, set[str]]) -> list[str]:
    """Return modules that import themselves by way of others: what is left when leaves are cut."""
    left = dict(modules)
    while True:
        leaves = {name for name, others in left.items() if not others & left.keys()}
        # what nobody imports is no part of a circle either
        imported = {other for others in left.values() for other in others}
        leaves |= left.keys() - imported
        if not leaves:
            return sorted(left)
        left = {name: others for name, others in left.items() if name not in leaves}


def check(root: Path) -> list[str]:
    """Return the faults of a package folder, in order, each once."""
    faults = [fault for path in sorted(root.rglob("*.py")) for fault in faults_of(path, root)]
    round_about = circles(graph(root))
    if round_about:
        faults.append(f"{root}: these modules import each other in a circle: {round_about}")
    return list(dict.fromkeys(faults))


def main(arguments: list[str]) -> int:
    """Print the faults and return the exit code."""
    repository = Path(__file__).resolve().parent.parent
    root = Path(arguments[0]) if arguments else repository / "src" / PACKAGE
    faults = check(root)
    print("\n".join(faults) if faults else f"import order: {root.name} keeps it")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
