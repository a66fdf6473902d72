"""What a build shows of a gate: JUnit, SARIF, a summary; the Action's script; plans as tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import polars as pl
import pytest
import yaml

from equipoise.cli.main import execute

ROOT = Path(__file__).parents[3]
HOSTILE = "</failure><b>|`*x*` @all [a](http://x) \\"
PLAN = f"""
equipoise: 1
title: "Gate {HOSTILE.replace(chr(92), chr(92) * 2)}"
seed: 7
trail: {{source: d.csv, label: y, prediction: d}}
audits:
  - audit: certify
    name: kept
    claim: {{kind: gap, metric: accuracy, across: [g]}}
    tolerance: 0.9
  - audit: certify
    name: exceeded
    claim: {{kind: gap, metric: selection_rate, across: [g]}}
    tolerance: 0.1
  - audit: certify
    name: undetermined
    claim: {{kind: gap, metric: accuracy, across: [g]}}
    tolerance: 0.01
  - audit: describe
    name: described
    claim: {{kind: gap, metric: accuracy, across: [g]}}
"""

# What SARIF 2.1.0 (OASIS, sections 3.13 to 3.58) asks of the parts that are written here.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "ruleIndex", "kind", "level", "locations"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "physicalLocation": {
                        "type": "object",
                        "required": ["artifactLocation"],
                        "properties": {
                            "artifactLocation": {
                                "type": "object",
                                "properties": {"uri": {"type": "string", "pattern": "^[^/]"}},
                            }
                        },
                    }
                },
            },
        },
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    # 3.27.10: what did not fail has no level
    "if": {"properties": {"kind": {"const": "fail"}}},
    "else": {"properties": {"level": {"const": "none"}}},
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {"type": "object", "required": ["id"]},
                                    }
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "exitCode": {"type": "integer"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {"type": "object", "required": ["message"]},
                                },
                            },
                        },
                    },
                    "results": {"type": "array", "items": RESULT},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                },
            },
        },
    },
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.yaml").write_text(PLAN)
    n = 300
    pl.DataFrame(
        {
            "y": [i % 2 for i in range(n)],
            "d": [int(i % 3 == 0 or i < 100) for i in range(n)],
            "g": ["one" if i < 150 else HOSTILE for i in range(n)],
        }
    ).write_csv("d.csv")
    return tmp_path


def _check(*more: str) -> tuple[int, Any, Any, str]:
    Path("sum.md").unlink(missing_ok=True)
    files = ["--junit", "j.xml", "--sarif", "r.sarif", "--summary", "sum.md"]
    code = execute(["check", "audit.yaml", "-q", *files, *more])
    log = json.loads(Path("r.sarif").read_text())
    jsonschema.validate(log, SARIF)
    suites = ElementTree.parse("j.xml").getroot()
    _check_junit(suites)
    return code, suites, log["runs"][0], Path("sum.md").read_text(encoding="utf-8")


def _check_junit(suites: ElementTree.Element) -> None:
    """The form that readers of JUnit's XML agree on: names, counts that add up, one end a case."""
    assert suites.tag == "testsuites"
    for suite in suites:
        assert suite.tag == "testsuite"
        cases = suite.findall("testcase")
        assert len(cases) == len(list(suite)) == int(suite.attrib["tests"])
        assert all({"classname", "name"} == set(case.attrib) for case in cases)
        ends = {"failure": "failures", "error": "errors", "skipped": "skipped"}
        for tag, number in ends.items():
            assert len(suite.findall(f"testcase/{tag}")) == int(suite.attrib[number])
        assert all(sum(child.tag in ends for child in case) <= 1 for case in cases)
        assert all(case.tag in (*ends, "system-out") for each in cases for case in each)


def test_every_verdict_in_every_file(project: Path) -> None:
    code, suites, log, told = _check()
    assert code == 1
    ends = {case.attrib["name"]: case[0].tag for case in suites.iter("testcase")}
    assert ends == {
        "kept": "system-out",
        "exceeded": "failure",
        "undetermined": "skipped",
        "described": "system-out",
    }
    kinds = [(result["ruleId"], result["kind"]) for result in log["results"]]
    assert kinds == [
        ("kept", "pass"),
        ("exceeded", "fail"),
        ("undetermined", "open"),
        ("described", "informational"),
    ]
    assert log["invocations"][0] == {"executionSuccessful": True, "exitCode": 1}
    assert all(mark not in told for mark in ("<b>", "`*x", "](http", "@all"))
    assert told.count("\n| ") == 5
    _, suites, log, _ = _check("--undetermined", "fail")
    assert suites[0].attrib["failures"] == "2"
    assert [result["level"] for result in log["results"]].count("error") == 2
    # a summary is added to, the others are replaced; another file is not
    execute(["check", "audit.yaml", "-q", "--summary", "sum.md"])
    assert Path("sum.md").read_text().count("## Gate") == 2
    Path("j.xml").write_text("mine")
    assert execute(["check", "audit.yaml", "-q", "--junit", "j.xml"]) == 3
    assert Path("j.xml").read_text() == "mine"


SILENT = """
equipoise: 1
seed: 7
trail: {source: d.csv, label: y, prediction: d}
audits:
  - audit: flag
    name: silent
    claim: {kind: gap, metric: accuracy, across: [g]}
    above: 0.5
"""
KEPT = """
  - audit: certify
    name: kept
    claim: {kind: gap, metric: accuracy, across: [g]}
    tolerance: 0.9
"""


def test_an_audit_that_found_nothing_is_no_test_that_passed(project: Path) -> None:
    Path("audit.yaml").write_text(SILENT)
    code, suites, log, told = _check()
    assert (code, suites[0].attrib["skipped"], suites[0].attrib["failures"]) == (2, "1", "0")
    assert [(one["ruleId"], one["kind"]) for one in log["results"]] == [("undetermined", "open")]
    assert "| silent | ❔ undetermined |" in told
    code, suites, log, _ = _check("--undetermined", "fail")
    assert (code, suites[0].attrib["skipped"], suites[0].attrib["failures"]) == (1, "0", "1")
    assert [one["kind"] for one in log["results"]] == ["fail"]
    # beside a limit that is kept it neither passes nor stops anything
    Path("audit.yaml").write_text(SILENT + KEPT)
    code, suites, _, _ = _check("--undetermined", "fail")
    assert (code, suites[0].attrib["skipped"], suites[0].attrib["failures"]) == (0, "1", "0")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    for plan, meaning, said in (
        (SILENT, "skip", "1 skipped"),
        (SILENT, "fail", "1 failed"),
        (SILENT + KEPT, "fail", "1 passed, 1 skipped"),
    ):
        Path("audit.yaml").write_text(plan)
        asked = [*command, "audit.yaml", "--equipoise-undetermined", meaning]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
        assert said in done.stdout, done.stdout


def test_an_error_is_an_error_in_every_file(project: Path) -> None:
    _check()
    Path("audit.yaml").write_text(PLAN.replace("label: y", "label: why"))
    code, suites, log, told = _check()
    assert code == 3
    assert suites[0].attrib["errors"] == "1"
    assert "`label: 'why'` under `trail:`" in suites[0][0][0].attrib["message"]
    assert log["invocations"][0]["executionSuccessful"] is False
    assert log["results"] == []
    assert "could not be asked" in told


def test_hidden_groups_are_hidden_from_builds(project: Path) -> None:
    few = pl.read_csv("d.csv").with_columns(
        g=pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("rare")).otherwise("g")
    )
    few.write_csv("d.csv")
    _check()
    assert "rare" in Path("j.xml").read_text()
    _check("--suppress", "10")
    for name in ("j.xml", "r.sarif", "sum.md"):
        assert "rare" not in Path(name).read_text()


def test_the_actions_script(project: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    install, gate = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    # inputs reach the script as variables alone
    assert "${{" not in install["run"] + gate["run"]
    told = {name: str(project / name) for name in ("summary.md", "output.txt")}
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **dict.fromkeys(gate["env"], ""),
        "EQUIPOISE_PLAN": "audit.yaml",
        "EQUIPOISE_OUT": "out; touch broken",
        "GITHUB_STEP_SUMMARY": told["summary.md"],
        "GITHUB_OUTPUT": told["output.txt"],
        "GATE": str(ROOT / "tools" / "gate.sh"),
    }
    done = subprocess.run(["sh", "-c", gate["run"]], env=variables, check=False, timeout=300)
    assert done.returncode == 1
    assert Path(told["output.txt"]).read_text() == "code=1\n"
    assert "exceeded" in Path(told["summary.md"]).read_text()
    made = {path.name for path in (project / "out; touch broken").iterdir()}
    assert made == {"evidence.json", "report.html", "junit.xml", "results.sarif"}
    assert not (project / "broken").exists()
    gitlab = yaml.safe_load((ROOT / "templates" / "gitlab.yml").read_text())["equipoise"]
    variables |= {"EQUIPOISE_OUT": "lab", "EQUIPOISE_UNDETERMINED": "fail"}
    script = "set -e\n" + "\n".join(gitlab["script"][1:])
    done = subprocess.run(["sh", "-c", script], env=variables, check=False, timeout=300)
    assert done.returncode == 1
    assert (project / "lab" / "junit.xml").exists()


def test_the_hook_takes_many_plans(project: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command = hook["entry"].split()[1:]
    Path("audit-b.yaml").write_text(PLAN)
    assert execute([*command, "audit.yaml", "audit-b.yaml"]) == 0
    Path("audit-b.yaml").write_text("equipoise: 1\n")
    assert execute([*command, "audit.yaml", "audit-b.yaml"]) == 3


def test_plans_are_tests(project: Path) -> None:
    Path("audit-other.yaml").write_text("unrelated: true\n")
    Path("audit-broken.yml").write_text("equipoise: 1\naudits: 3\n")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "audit.yaml"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed, 1 skipped" in done.stdout
    assert "PASSED audit.yaml::kept" in done.stdout
    assert "FAILED audit.yaml::exceeded" in done.stdout
    assert "Traceback" not in done.stdout
    strict = [*command, ".", "--equipoise-undetermined", "fail"]
    done = subprocess.run(strict, capture_output=True, text=True, check=False, timeout=300)
    assert "audit-broken.yml" in done.stdout
    assert "1 error" in done.stdout
    assert "unrelated" not in done.stdout


def test_pytest_loads_nothing_of_the_package_for_nothing() -> None:
    looked = "import sys, pytest_equipoise; print([m for m in sys.modules if 'equipoise.' in m])"
    done = subprocess.run(
        [sys.executable, "-c", looked], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
