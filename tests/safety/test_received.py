"""Plans, evidence and databases from elsewhere reach nothing that they were not allowed to."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.plan import Plan, run, verify

PLAN = """
equipoise: 1
seed: 7
trail: {source: SOURCE, label: y, prediction: p}
audits:
  - {audit: describe, claim: {kind: gap, metric: accuracy, across: [g]}}
"""
FRAME = pl.DataFrame({"y": [0, 1] * 50, "p": [0, 1, 1, 0] * 25, "g": ["a", "b"] * 50})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan in it, and beside it what the plan has no business with."""
    inside, outside = tmp_path / "received", tmp_path / "private"
    inside.mkdir()
    outside.mkdir()
    FRAME.write_csv(inside / "data.csv")
    FRAME.write_csv(outside / "secret.csv")
    (inside / "link.csv").symlink_to(outside / "secret.csv")
    (inside / "folder").symlink_to(outside, target_is_directory=True)
    (inside / "many").mkdir()
    FRAME.write_csv(inside / "many" / "one.csv")
    (inside / "many" / "two.csv").symlink_to(outside / "secret.csv")
    monkeypatch.setenv("PRIVATE_PLACE", str(outside))
    monkeypatch.chdir(inside)
    return tmp_path


@pytest.fixture
def watched(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was reached outside the folder: files that were opened, connections that were begun."""
    reached: list[str] = []
    private = str(place / "private")

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).startswith(private):
            reached.append(f"open {arguments[0]}")
        if event in ("socket.connect", "socket.getaddrinfo"):
            reached.append(f"{event} {arguments[1:]}")

    _WATCHERS.append(look)
    yield reached
    _WATCHERS.remove(look)


# an audit hook cannot be taken away again, so one is set for all tests
_WATCHERS: list[Any] = []
sys.addaudithook(
    lambda event, arguments: [look(event, arguments) for look in [*_WATCHERS]] and None
)

HOSTILE = [
    "../private/secret.csv",
    "PRIVATE/secret.csv",
    "link.csv",
    "folder/secret.csv",
    "folder",
    "many",
    "many/*.csv",
    "*/secret.csv",
    "${PRIVATE_PLACE}/secret.csv",
    "data${PRIVATE_PLACE}.csv",
    "postgres://auditor@127.0.0.1:9/db",
    "postgres://${PRIVATE_PLACE}@127.0.0.1:9/db",
    "postgresql://127.0.0.1:9/db",
    "sc://127.0.0.1:9",
    "spark://127.0.0.1:9",
    "http://127.0.0.1:9/data.csv",
    "https://127.0.0.1:9/data.parquet",
    "s3://bucket/data.parquet",
    "file:///etc/passwd",
    "duckdb://../private/x.duckdb",
    "sqlite:///etc/x.db",
    "/etc/passwd",
    "~/secret.csv",
]


def test_a_received_plan_reaches_nothing(place: Path, watched: list[str]) -> None:
    for source in HOSTILE:
        written = json.dumps(source.replace("PRIVATE/", f"{place / 'private'}/"))
        Path("audit.yaml").write_text(PLAN.replace("SOURCE", written))
        assert execute(["check", "audit.yaml", "-q"]) == 3, source
        plan = Plan.load("audit.yaml")
        honest = run(Plan.parse(PLAN.replace("SOURCE", "data.csv")), folder=".")
        data = {**honest.to_dict(), "plan": plan.to_plain(), "plan_hash": plan.hash}
        Path("evidence.json").write_text(json.dumps(data))
        assert execute(["verify", "evidence.json", "-q"]) == 3, source
        assert execute(["plan", "check", "audit.yaml"]) == 0, source
        assert watched == [], source


def test_what_is_allowed_is_reached(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("audit.yaml").write_text(PLAN.replace("SOURCE", "../private/secret.csv"))
    assert execute(["check", "audit.yaml", "-q", "--undetermined", "pass"]) == 3
    allowed = ["check", "audit.yaml", "-q", "--undetermined", "pass", "--allow"]
    assert execute([*allowed, "../private/secret.csv"]) == 0
    assert execute([*allowed, str(place / "private")]) == 0
    assert execute([*allowed, "../private/secret"]) == 3
    assert (
        execute(["check", "audit.yaml", "-q", "--undetermined", "pass", "--data", "data.csv"]) == 0
    )
    monkeypatch.setenv("EQUIPOISE_ALLOW", "../private/secret.csv")
    assert execute(["check", "audit.yaml", "-q", "--undetermined", "pass"]) == 0
    monkeypatch.delenv("EQUIPOISE_ALLOW")
    # what somebody runs himself is trusted
    assert execute(["run", "audit.yaml", "-q"]) == 0
    evidence = eq.Evidence.load("out/evidence.json")
    with pytest.raises(eq.TrailError, match="outside the plan's folder"):
        verify(evidence, folder=".")
    assert verify(evidence, folder=".", allow=["../private/secret.csv"]).complete


VIEWS = [
    "SELECT * FROM read_csv('SECRET')",
    "SELECT * FROM 'SECRET'",
    "SELECT content AS y, 1 AS p, 'a' AS g FROM read_text('SECRET')",
    "SELECT * FROM glob('FOLDER/*')",
    "SELECT * FROM read_blob('SECRET')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
    "SELECT y, p, getenv('PRIVATE_PLACE') AS g FROM t",
    "SELECT * FROM duckdb_secrets()",
]


def test_a_database_from_elsewhere_reads_no_other_file(place: Path, watched: list[str]) -> None:
    secret = place / "private" / "secret.csv"
    for number, view in enumerate(VIEWS):
        path = place / "received" / f"hostile{number}.duckdb"
        made = duckdb.connect(str(path))
        made.execute("CREATE TABLE t AS SELECT 1 AS y, 1 AS p, 'a' AS g")
        text = view.replace("SECRET", str(secret)).replace("FOLDER", str(secret.parent))
        try:
            made.execute(f"CREATE VIEW v AS {text}")
        except duckdb.Error:
            # what cannot be written into a database cannot come in one
            continue
        finally:
            made.close()
        try:
            trail = eq.read(str(path), table="v", label="y", prediction="p")
            found = eq.describe(trail, eq.gap("accuracy", across="g")).to_json()
        except eq.EquipoiseError:
            continue
        assert str(place) not in found, view
        assert "100" not in found, view
    trail = eq.read("hostile0.duckdb", table="t", label="y", prediction="p")
    for setting in (
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET lock_configuration = false",
        f"ATTACH '{secret}' AS other",
        f"COPY t TO '{place / 'private' / 'written.csv'}'",
    ):
        with pytest.raises(duckdb.Error):
            trail.frame.to_native().query("t", setting).fetchall()
    assert not (place / "private" / "written.csv").exists()
    assert watched == []


def test_a_database_of_sqlite_reads_no_other_file(place: Path) -> None:
    made = sqlite3.connect("hostile.db")
    made.execute("CREATE TABLE t (y, p, g)")
    made.execute("CREATE VIEW v AS SELECT load_extension('/tmp/x') AS y, 1 AS p, 'a' AS g FROM t")
    made.execute("INSERT INTO t VALUES (1, 1, 'a')")
    made.commit()
    made.close()
    with pytest.raises(eq.EquipoiseError):
        eq.describe(
            eq.read("hostile.db", table="v", label="y", prediction="p"),
            eq.gap("accuracy", across="g"),
        )


def test_rows_that_change_meanwhile_are_noticed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["equipoise.plan.run"]
    performed = module.perform

    def slowly(*arguments: Any, **options: Any) -> Any:
        found = performed(*arguments, **options)
        with open("data.csv", "a") as out:
            out.write("1,0,a\n")
        return found

    monkeypatch.setattr(module, "perform", slowly)
    with pytest.raises(eq.TrailError, match="changed while it was audited"):
        run(Plan.parse(PLAN.replace("SOURCE", "data.csv")), folder=".")


def test_a_server_that_does_not_answer_is_given_up() -> None:
    # a socket that listens but never says anything
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        from equipoise.trail import engine

        options = engine._postgres_options(f"postgres://u@127.0.0.1:{silent.getsockname()[1]}/d")
    assert options["connect_timeout"] == engine.PATIENCE


def test_the_recipe_for_pull_requests_runs_in_a_folder_of_its_own() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "gate.md").read_text()
    recipe = text.split("## GitHub")[1].split("```")[1]
    assert "pull_request_target" not in recipe
    assert "permissions:" in recipe
    assert "secrets." not in recipe


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_evidence_without_an_end_is_refused(place: Path) -> None:
    os.mkfifo(place / "evidence.json")
    for name in (str(place / "evidence.json"), "/dev/zero"):
        assert execute(["verify", name]) == 3


def test_pytest_and_power_trust_no_plan_either(place: Path, watched: list[str]) -> None:
    """Both expanded variables, opened connections and read other folders."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    for source in (
        "../private/secret.csv",
        "${PRIVATE_PLACE}/secret.csv",
        "postgres://a@127.0.0.1:9/d",
    ):
        table = ", table: t" if "://" in source else ""
        text = PLAN.replace("SOURCE", json.dumps(source) + table).replace("describe", "certify")
        Path("audit.yaml").write_text(text)
        assert execute(["plan", "power", "audit.yaml", "-q"]) == 3, source
        assert watched == [], source
        done = subprocess.run([*command, "audit.yaml"], capture_output=True, check=False)
        assert "is not trusted with that" in " ".join(done.stdout.decode().split()), source
        assert str(place / "private") not in done.stdout.decode()
    Path("audit.yaml").write_text(PLAN.replace("SOURCE", "../private/secret.csv"))
    allowed = "../private/secret.csv"
    done = subprocess.run(
        [*command, "audit.yaml", "--equipoise-allow", allowed], capture_output=True, check=False
    )
    assert done.returncode == 0
    Path("pytest.ini").write_text(f"[pytest]\nequipoise_allow =\n    {allowed}\n")
    assert (
        subprocess.run([*command, "audit.yaml"], capture_output=True, check=False).returncode == 0
    )
    Path("audit.yaml").write_text(
        PLAN.replace("SOURCE", "../private/secret.csv").replace("describe", "certify")
    )
    assert execute(["plan", "power", "audit.yaml", "-q", "--allow", allowed]) == 0


def test_a_folder_with_a_pipe_in_it_is_read(place: Path) -> None:
    os.mkfifo("many/zero.csv")
    (place / "received" / "many" / "two.csv").unlink()
    assert eq.read("many", label="y", prediction="p").frame.collect().shape[0] == 100
    os.mkfifo("only.csv")
    with pytest.raises(eq.TrailError, match="No file or folder"):
        eq.read("only.csv", label="y", prediction="p")
