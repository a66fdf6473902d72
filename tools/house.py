"""Print the measure of the house beside the aims: sizes, comments, types, tests.

    python tools/house.py

Nothing fails here; the numbers are for reading before a review. A function's length leaves
out its docstring, so that nobody saves on words.
"""

from __future__ import annotations

import ast
import io
import statistics
import tokenize
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Something with a name and a number of lines."""

    name: str
    lines: int


def sources(folder: str) -> list[Path]:
    """List the Python files of a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def functions(tree: ast.AST) -> list[Function]:
    """List all functions and methods of a module."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def body_lines(function: Function) -> int:
    """Count the lines of a function without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def is_typed(function: Function) -> bool:
    """Say whether every argument and the result carry a type."""
    given = function.args
    plain = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    star = [argument for argument in (given.vararg, given.kwarg) if argument]
    named = [argument for argument in (*plain, *star) if argument.arg not in ("self", "cls")]
    return function.returns is not None and all(argument.annotation for argument in named)


def comment_lines(text: str) -> int:
    """Count the comments of a source text."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def share(part: int, whole: int) -> float:
    """Return a percentage, 0 of nothing."""
    return 100 * part / whole if whole else 0.0


def largest(sized: list[Sized], limit: int) -> list[str]:
    """Describe what exceeds a limit, largest first."""
    over = sorted((s for s in sized if s.lines > limit), key=lambda s: -s.lines)
    return [f"  {s.lines:>5}  {s.name}" for s in over[:10]]


def main() -> None:
    """Measure src/ and print the table."""
    texts = {path: path.read_text(encoding="utf-8") for path in sources("src")}
    modules = [Sized(name=str(p.relative_to(ROOT)), lines=t.count("\n")) for p, t in texts.items()]
    found = [(p, f) for p, t in texts.items() for f in functions(ast.parse(t))]
    sized = [Sized(name=f"{p.relative_to(ROOT)}:{f.name}", lines=body_lines(f)) for p, f in found]
    if not sized:
        print("src/ has no functions yet")
        return
    code = sum(module.lines for module in modules)
    tests = sum(path.read_text(encoding="utf-8").count("\n") for path in sources("tests"))
    comments = sum(comment_lines(text) for text in texts.values())
    lengths = [function.lines for function in sized]
    typed = sum(is_typed(function) for _, function in found)
    rows = [
        ("modules", f"{len(modules)}", ""),
        ("module lines, median", f"{statistics.median(m.lines for m in modules):.0f}", "near 130"),
        ("modules over 400 lines", f"{sum(m.lines > 400 for m in modules)}", "0"),
        ("functions", f"{len(sized)}", ""),
        ("function lines, median", f"{statistics.median(lengths):.0f}", "under 10"),
        (
            "functions under 30 lines, %",
            f"{share(sum(n < 30 for n in lengths), len(lengths)):.0f}",
            "90",
        ),
        ("comments per 100 lines", f"{share(comments, code):.1f}", "3 to 6"),
        ("functions fully typed, %", f"{share(typed, len(sized)):.0f}", "100"),
        ("test lines per code line", f"{tests / code:.2f}", ""),
    ]
    for what, now, aim in rows:
        print(f"{what:<30} {now:>8}   {aim}".rstrip())
    for title, lines in (
        ("modules over 400 lines", largest(modules, 400)),
        ("functions of 30 lines or more", largest(sized, 29)),
    ):
        print("\n".join([title, *lines]) if lines else f"{title}: none")


if __name__ == "__main__":
    main()
