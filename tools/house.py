"""Measure the house beside the aims: sizes, comments, types, tests.

    python tools/house.py              print the measure, and what exceeds the aims
    python tools/house.py --markdown   print what CONTRIBUTING.md shows
    python tools/house.py --write      put it there

Nothing fails here; the numbers are for reading before a review. Docstrings are no code, so that
nobody saves on words, and notes to a tool (`noqa`, `type: ignore`) are no comments.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import statistics
import sys
import tempfile
import textwrap
import tokenize
import types
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.check_layers import PACKAGE, circles, graph

#: Lines beyond which a module is hard to read in one sitting.
LONG = 800
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- house -->\n", "<!-- /house -->\n"
Function = ast.FunctionDef | ast.AsyncFunctionDef

DRAWING = """\
cli/ {cli}
  └─► plan/ {plan}
        └─► audits/ {audits}: each verb takes a question along the row below

trail/ ──► claims/ ──► cells/ ──► methods/ ──► findings/ ──► report/
{trail:<10} {claims:<11} {cells:<10} {methods:<12} {findings:<13} {report}
rows and   metric,     counts     numbers in,  what the      words and
roles      target,     and        numbers      audit says    pictures
           groups      totals     out

beside them: base {base}, packs/ {packs}, datasets/ {datasets}, worlds/ {worlds}
"""

_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_TO_A_TOOL = re.compile(r"#\s*(type: ignore|noqa|ruff:|pragma)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Something with a name and a number of lines."""

    name: str
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file, measured."""

    name: str
    folder: str
    lines: int
    code: int
    comments: int
    functions: tuple[Sized, ...]
    typed: int
    loose: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure beside its aim."""

    what: str
    now: str
    aim: str


def sources(folder: str) -> list[Path]:
    """List the Python files of a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def measured(path: Path) -> Module:
    """Measure one file of the package."""
    text, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
    tree = ast.parse(text)
    found = [node for node in ast.walk(tree) if isinstance(node, Function)]
    parts = path.relative_to(ROOT).parts
    return Module(
        name=name,
        folder=parts[2] if len(parts) > 3 else "base",
        lines=text.count("\n"),
        code=code_lines(text, tree),
        comments=comment_lines(text),
        functions=tuple(Sized(name=f"{name}:{f.name}", lines=body_lines(f)) for f in found),
        typed=sum(is_typed(function) for function in found),
        loose=sum(map(loose_types, found)),
    )


def span(node: ast.stmt) -> set[int]:
    """Return the numbers of the lines on which a statement stands."""
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the lines of texts that stand alone, which explain what is around them."""
    texts = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return {line for text in texts for line in span(text)}


def code_lines(text: str, tree: ast.AST) -> int:
    """Count the lines that hold code: neither blank, nor comment, nor docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE and token.string:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(tree))


def comment_lines(text: str) -> int:
    """Count the comments that speak to a reader."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return sum(_TO_A_TOOL.match(comment) is None for comment in comments)


def body_lines(function: Function) -> int:
    """Count the lines of a function without its docstring."""
    return len(span(function) - docstring_lines(function))


def is_typed(function: Function) -> bool:
    """Say whether every argument and the result carry a type."""
    given = function.args
    plain = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    star = [argument for argument in (given.vararg, given.kwarg) if argument]
    named = [argument for argument in (*plain, *star) if argument.arg not in ("self", "cls")]
    return function.returns is not None and all(argument.annotation for argument in named)


def loose_types(function: Function) -> int:
    """Count `Any` among the types of arguments and result."""
    given = function.args
    plain = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    types = [argument.annotation for argument in plain if argument] + [function.returns]
    names = (node for kind in types if kind for node in ast.walk(kind))
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in names)


@functools.cache
def way_of_certify() -> tuple[str, ...]:
    """Return the modules in which a call of `certify` runs, in the order it reaches them."""
    import equipoise as eq

    lines = [f"{i % 2},{i % 3 % 2},{'ab'[i % 7 < 3]}" for i in range(60)]
    reached: dict[str, None] = {}

    def ask() -> None:
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "decisions.csv")
            table.write_text("\n".join(["label,prediction,group", *lines]), encoding="utf-8")
            trail = eq.read(table, label="label", prediction="prediction")
            eq.certify(trail, eq.gap("accuracy", across="group"), rng=7)

    ask()  # what is imported on the way is no part of it

    def look(frame: types.FrameType, _event: str, _value: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(f"{PACKAGE}.") and frame.f_code.co_name != "<module>":
            reached[name.removeprefix(f"{PACKAGE}.")] = None

    sys.setprofile(look)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return tuple(reached)


def share(part: int, whole: int) -> float:
    """Return a percentage, 0 of nothing."""
    return 100 * part / whole if whole else 0.0


def measures(modules: Sequence[Module], test_lines: int) -> list[Measure]:
    """Return every figure beside its aim."""
    lengths = [function.lines for module in modules for function in module.functions]
    code = sum(module.code for module in modules)
    comments = sum(module.comments for module in modules)
    typed = sum(module.typed for module in modules)
    short = sum(length < 30 for length in lengths)
    rows = [
        ("modules", f"{len(modules)}", "160"),
        ("module lines, median", f"{statistics.median(m.lines for m in modules):.0f}", ""),
        (f"modules over {LONG} lines", f"{sum(m.lines > LONG for m in modules)}", "0"),
        ("modules that import in a circle", f"{len(circles(graph(ROOT / 'src' / PACKAGE)))}", "0"),
        ("modules a `certify` runs through", f"{len(way_of_certify())}", "30"),
        ("functions", f"{len(lengths)}", ""),
        ("function lines, median", f"{statistics.median(lengths):.0f}", "under 10"),
        ("functions under 30 lines, %", f"{share(short, len(lengths)):.0f}", "90"),
        ("lines of code", f"{code}", ""),
        ("comments per 100 lines of code", f"{share(comments, code):.1f}", "3 to 6"),
        ("functions fully typed, %", f"{share(typed, len(lengths)):.0f}", "100"),
        ("`Any` in signatures", f"{sum(module.loose for module in modules)}", "60"),
        ("test lines per line of code", f"{test_lines / code:.1f}", ""),
    ]
    return [Measure(what=what, now=now, aim=aim) for what, now, aim in rows]


def drawing(modules: Sequence[Module]) -> str:
    """Draw the way of a question through the folders, with the lines of code in each."""
    code: dict[str, int] = {}
    for module in modules:
        code[module.folder] = code.get(module.folder, 0) + module.code
    drawn = DRAWING.format(**{folder: f"({lines})" for folder, lines in code.items()})
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def markdown(modules: Sequence[Module], figures: Sequence[Measure]) -> str:
    """Return what CONTRIBUTING.md shows: a table, and the drawing."""
    rows = [f"| {figure.what} | {figure.now} | {figure.aim} |" for figure in figures]
    table = "\n".join(["| measure | now | aim |", "|---|---|---|", *rows])
    drawn = f"```\n{drawing(modules)}```"
    way = textwrap.fill(" → ".join(f"`{name}`" for name in way_of_certify()), 96)
    return (
        f"{table}\n\nThe way of a question, with the lines of code in each folder:\n\n{drawn}\n\n"
        f"The modules that `certify` runs through, in the order it reaches them:\n\n{way}\n"
    )


def replaced(page: str, part: str) -> str:
    """Return the page with what stands between the marks replaced."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{part}\n{END}{rest.split(END)[1]}"


def exceeding(sized: Sequence[Sized], limit: int) -> list[str]:
    """Describe what exceeds a limit, largest first."""
    over = sorted((s for s in sized if s.lines > limit), key=lambda s: -s.lines)
    return [f"  {s.lines:>5}  {s.name}" for s in over[:10]]


def plain(modules: Sequence[Module], figures: Sequence[Measure]) -> str:
    """Return the figures for a terminal, and what exceeds the aims."""
    lines = [f"{figure.what:<31} {figure.now:>8}   {figure.aim}".rstrip() for figure in figures]
    files = [Sized(name=module.name, lines=module.lines) for module in modules]
    functions = [function for module in modules for function in module.functions]
    for title, found in (
        (f"modules over {LONG} lines", exceeding(files, LONG)),
        ("functions of 30 lines or more", exceeding(functions, 29)),
    ):
        lines += [title, *found] if found else [f"{title}: none"]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Measure src/, and print or write the result."""
    modules = [measured(path) for path in sources("src")]
    tests = sum(path.read_text(encoding="utf-8").count("\n") for path in sources("tests"))
    figures = measures(modules, tests)
    if "--write" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replaced(page, markdown(modules, figures)), encoding="utf-8")
    else:
        show = markdown if "--markdown" in arguments else plain
        print(show(modules, figures), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
