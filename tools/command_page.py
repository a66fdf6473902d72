"""Write what the documentation has from the code: the list of commands, and the schema of evidence.

python tools/command_page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from equipoise.cli.main import app
from equipoise.findings.evidence import evidence_schema

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
SCHEMA = PAGE.with_name("evidence.schema.json")


def schema() -> str:
    """The published schema of evidence."""
    return json.dumps(evidence_schema(), indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """The text of the page."""
    parts = ["# Commands", "", _text(app.info.help), ""]
    for name, command in walk(typer.main.get_command(app), "equipoise"):
        parts += [f"## `{name}`", "", _text(command.help), "", *_table(command), ""]
    return "\n".join(parts).rstrip() + "\n"


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, with its full name."""
    for child_name, child in getattr(command, "commands", {}).items():
        if getattr(child, "commands", None):
            yield from walk(child, f"{name} {child_name}")
        else:
            yield f"{name} {child_name}", child


def _table(command: Any) -> list[str]:
    rows = [_row(parameter) for parameter in command.params if not parameter.hidden]
    return ["| option | meaning |", "|---|---|", *rows] if rows else []


def _row(parameter: Any) -> str:
    written = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
    name = written or parameter.name.upper()
    return f"| `{name}` | {_text(parameter.help).replace('|', '/')} |"


def _text(words: str | None) -> str:
    return " ".join((words or "").split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
    sys.exit(0)
