"""Thirty awkward passwords: they reach the server as they are, and nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import equipoise as eq
from equipoise import _files
from equipoise.cli.main import execute
from equipoise.plan import Plan
from equipoise.plan.draft import draft
from equipoise.trail import engine

PASSWORDS = [
    "pl41n-w0rd", "sl/ash/es", "ha#sh#tag", "quest?ion", "brack[et]s", "per%cent", "per%41cent",
    "spa ces in", "qu'ote's", 'dou"ble"s', "a@t@sign", "co:lon:s", "semi;colon", "amp&ersand",
    "equ=als=", "back\\slash", "dol$lar{s}", "star*star", "pi|pe|s", "less<more>", "ün!cödé",
    "tab\tbed", "new\nline", "comma,comma", "tilde~~~", "back`tick", "(paren)s", "plus+plus",
    "'quoted'", "x" * 200, "://@host/db", "&password=x", "emoji😀smile",
]  # fmt: skip
PLAN = """
equipoise: 1
seed: 7
trail: {source: SOURCE, table: t, label: y, prediction: p}
audits:
  - {audit: describe, claim: {kind: gap, metric: accuracy, across: [g]}}
"""
#: Those that can be typed into a URL without being written with %; the rest of it is found again.
RAW = [p for p in PASSWORDS if "@" not in p and "%" not in p]


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_KNOWN", set())


def told(password: str, text: str) -> bool:
    """Whether a text gives a password away, in any of the forms it may take."""
    forms = {password, quote(password, safe=""), repr(password)[1:-1], json.dumps(password)[1:-1]}
    return any(form in text for form in forms)


def test_passwords_arrive_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(PASSWORDS) >= 30
    for password in PASSWORDS:
        monkeypatch.setenv("PGPW", password)
        by_name = engine._postgres_options(
            "postgres://auditor:${PGPW}@db.example:5433/d?sslmode=require"
        )
        written = engine._postgres_options(
            f"postgres://auditor:{quote(password, safe='')}@db.example:5433/d"
        )
        for options in (by_name, written):
            assert options["password"] == password
            assert (options["host"], options["port"], options["database"]) == (
                "db.example",
                5433,
                "d",
            )
    for password in RAW:
        options = engine._postgres_options(f"postgres://auditor:{password}@db.example/d")
        assert (options["password"], options["host"]) == (password, "db.example"), password


def failing(*_: Any, **options: Any) -> None:
    """A server's client that fails and, as some do, quotes all that it was given."""
    raise ConnectionError(f"cannot connect with {options!r}")


def test_passwords_appear_in_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ibis = pytest.importorskip("ibis")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ibis.postgres, "connect", failing)
    leaks, hashes = [], set()
    for password in PASSWORDS:
        engine._KNOWN.clear()
        monkeypatch.setenv("PGPW", password)
        typed = f"postgres://auditor:{quote(password, safe='')}@db.example/d"
        raw = f"postgres://auditor:{password}@db.example/d"
        sources = [
            typed,
            "postgres://auditor:${PGPW}@db.example/d",
            *([raw] if password in RAW else []),
        ]
        for source in sources:
            Path("audit.yaml").write_text(PLAN.replace("SOURCE", json.dumps(source)))
            plan = Plan.load("audit.yaml")
            if "${" not in source:
                hashes.add(plan.hash)
            outputs = [json.dumps(plan.to_plain()), repr(engine.without_password(source))]
            for command in (
                ["run", "audit.yaml", "--debug"],
                ["check", "audit.yaml", "--debug"],
                ["check", "audit.yaml", "--allow", source, "--debug"],
                ["plan", "check", "audit.yaml"],
                ["audit", source, "--table", "t", "--across", "g", "--prediction", "p", "--debug"],
                ["plan", "init", source, "--table", "t", "--force", "--debug"],
            ):
                execute(command)
                done = capsys.readouterr()
                outputs += [done.out, done.err]
            with pytest.raises(eq.EquipoiseError) as caught:
                eq.read(source, table="t")
            outputs += [str(caught.value), repr(caught.value), str(caught.value.__cause__)]
            leaks += [(password, text) for text in outputs if told(password, text)]
    assert leaks == []
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("pwd=hunter2;x", "pwd=***;x"),
        ("authorization=Bearer abc.def", "authorization=Bearer ***"),
        ("Authorization: Basic aHVudGVy", "Authorization: Basic ***"),
        ("x-api-key=k-123", "x-api-key=***"),
        ("x-api-key: k-123", "x-api-key: ***"),
        ("password='two words'", "password='***'"),
        ('{"password": "a\\"b"}', '{"password": "***"}'),
        ("{'sslpassword': 'x y'}", "{'sslpassword': '***'}"),
        ("client_secret=abc&x=1", "client_secret=***&x=1"),
        ("password=${PGPW}", "password=${PGPW}"),
    ],
)
def test_more_forms_are_recognised(text: str, kept: str) -> None:
    assert engine.scrub(text) == kept


def test_a_draft_holds_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "d.csv"
    table.write_text("label,prediction,g\n0,1,a\n1,1,b\n")
    module = sys.modules["equipoise.plan.draft"]
    real = module.read
    monkeypatch.setattr(module, "read", lambda *_, **__: real(str(table)))
    assert "w o/rd" not in draft("postgres://auditor:w o/rd@db.example/d", table="t")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no list of processes in /proc")
def test_a_password_that_was_typed_is_not_in_the_list_of_processes() -> None:
    code = (
        "import sys, equipoise.cli.main; m = sys.modules['equipoise.cli.main']; m.app = lambda *a, "
        "**k: sys.stdout.write(open('/proc/self/cmdline').read()); m.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", "postgres://auditor:hunter-2/x@db.example/d"],
        env={**os.environ, "PYTHONPATH": str(Path(_files.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "db.example" in done.stdout, done.stderr
    assert "hunter-2" not in done.stdout
