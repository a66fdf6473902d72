"""Files that say what the project is say the same as pyproject.toml and the code."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from equipoise._version import __version__
from tools.command_page import SCHEMA, schema

ROOT = Path(__file__).resolve().parents[2]


def project() -> dict[str, Any]:
    made: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return made


def test_the_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    assert cited["license"] == project()["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    for reference in cited["references"]:
        assert {"type", "title", "authors"} <= set(reference)


def test_the_recipe_asks_for_what_pip_asks_for() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8"))
    assert recipe["package"]["version"] == __version__
    asked = {re.sub(r"\s", "", one) for one in recipe["requirements"]["run"]}
    asked = {one.replace("python-duckdb", "duckdb") for one in asked} - {"python>=3.11"}
    assert asked == set(project()["dependencies"])


def test_issue_templates_are_forms() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 4
    for form in forms:
        made = yaml.safe_load(form.read_text(encoding="utf-8"))
        if form.name == "config.yml":
            continue
        assert {"name", "description", "body"} <= set(made)
        fields = [part["id"] for part in made["body"] if part["type"] != "markdown"]
        assert len(set(fields)) == len(fields) > 0


def test_the_published_schema_is_the_code_s() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema()
    assert json.loads(schema())["$schema"].endswith("2020-12/schema")
