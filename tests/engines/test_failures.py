"""When an engine fails: a clear error, nothing half-written, and no password anywhere."""

import contextlib
import logging
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.plan import Plan, run
from tests.engines.servers import Postgres, Spark, free_port, running_postgres

SECRET = "hunter2%40home"
PLAIN = "hunter2@home"
ROWS = 400

POSTGRES = (pytest.mark.postgres, pytest.mark.xdist_group("postgres"))
SPARK = (pytest.mark.spark, pytest.mark.xdist_group("spark"))


def on(*marks: Any) -> Any:
    def marked(test: Any) -> Any:
        for mark in marks:
            test = mark(test)
        return test

    return marked


def _table(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "y": [i % 2 for i in range(rows)],
            "d": [(i // 2) % 2 for i in range(rows)],
            "g": ["ab"[(i // 4) % 2] for i in range(rows)],
        }
    )


CLAIM = eq.gap("accuracy", across="g")
ROLES = {"label": "y", "prediction": "d"}


@pytest.fixture(scope="module")
def decisions(postgres: Postgres) -> Postgres:
    """A server with a table, someone who may read it, and someone who may not."""
    postgres.ibis.create_table("failing", _table().to_arrow(), overwrite=True)
    postgres.execute(
        "DROP ROLE IF EXISTS outsider",
        f"CREATE ROLE outsider LOGIN PASSWORD '{PLAIN}'",
    )
    with contextlib.suppress(Exception):
        postgres.execute(f"CREATE ROLE auditor LOGIN PASSWORD '{PLAIN}'")
    postgres.execute("GRANT SELECT ON failing TO auditor")
    return postgres


def _said(error: BaseException) -> str:
    """Everything that a traceback would show."""
    return "".join(traceback.format_exception(error))


def _refused(url: str, table: str | None, *words: str) -> None:
    with pytest.raises(eq.TrailError) as caught:
        eq.describe(eq.read(url, table=table, **ROLES), CLAIM)
    for word in words:
        assert word in str(caught.value)
    assert SECRET not in _said(caught.value)
    assert PLAIN not in _said(caught.value)


@on(*POSTGRES)
def test_a_password_opens_the_table(decisions: Postgres) -> None:
    trail = eq.read(decisions.url("auditor", SECRET), table="failing", **ROLES)
    found = eq.describe(trail, CLAIM)
    assert found.provenance.scanned == ROWS
    assert trail.source.startswith("table 'failing' of postgres://auditor:***@/postgres")
    assert PLAIN not in found.to_json()
    assert SECRET not in found.to_json()


@on(*POSTGRES)
def test_a_wrong_password_a_missing_right_and_a_missing_table(decisions: Postgres) -> None:
    _refused(decisions.url("auditor", "wr0ng-pass"), "failing", "password authentication failed")
    _refused(decisions.url("outsider", SECRET), "failing", "failing")
    _refused(decisions.url("auditor", SECRET), "falling", "no table 'falling'", "failing")
    _refused(decisions.url("auditor", SECRET), None, "say which table with table=…", "failing")


@on(*POSTGRES)
def test_a_right_that_is_taken_away_while_the_trail_is_open(decisions: Postgres) -> None:
    decisions.execute("CREATE TABLE brief AS SELECT * FROM failing")
    decisions.execute("GRANT SELECT ON brief TO auditor")
    trail = eq.read(decisions.url("auditor", SECRET), table="brief", **ROLES)
    decisions.execute("REVOKE SELECT ON brief FROM auditor")
    with pytest.raises(eq.TrailError, match="permission denied for table brief"):
        eq.describe(trail, CLAIM)
    decisions.execute("DROP TABLE brief")
    with pytest.raises(eq.TrailError, match="brief"):
        eq.describe(trail, CLAIM)


@on(*POSTGRES)
def test_a_connection_that_is_refused() -> None:
    port = free_port()
    _refused(f"postgres://auditor:{SECRET}@127.0.0.1:{port}/db", "t", "Connection refused")
    _refused(f"sc://127.0.0.1:{port}/;token={SECRET}", "t", "Connection refused")
    _refused("postgres://auditor@/db?host=/nowhere/at/all", "t", "could not be read")


@on(*POSTGRES)
def test_a_server_that_dies_in_the_middle(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_postgres(tmp_path_factory.mktemp("mortal")) as server:
        server.ibis.create_table("decisions", _table().to_arrow())
        # every row takes its time, so that there is a middle
        server.execute(
            "CREATE VIEW slow AS SELECT * FROM decisions WHERE pg_sleep(0.05) IS NOT NULL"
        )
        trail = eq.read(server.url(), table="slow", **ROLES)
        killer = threading.Timer(0.5, _end_backends, [server])
        killer.start()
        began = time.monotonic()
        with pytest.raises(eq.TrailError, match=r"could not be read: .*(lost|terminat|clos)"):
            eq.describe(trail, CLAIM)
        killer.join()
        assert time.monotonic() - began < 15
        with pytest.raises(eq.TrailError, match="could not be read"):
            eq.describe(trail, CLAIM)


def _end_backends(server: Postgres) -> None:
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE '%slow%' AND pid <> pg_backend_pid()"
    )


PLAN = """
equipoise: 1
title: Decisions
seed: 7
trail: {source: SOURCE, table: TABLE, label: y, prediction: d}
audits:
  - audit: certify
    claim: {kind: gap, metric: accuracy, across: [g]}
    tolerance: 0.4
  - audit: flag
    claim: {kind: gap, metric: false_positive_rate, across: [g]}
"""


def _plan(folder: Path, source: str, table: str = "failing") -> Path:
    path = folder / "audit.yaml"
    path.write_text(PLAN.replace("SOURCE", f'"{source}"').replace("TABLE", table))
    return path


@on(*POSTGRES)
def test_no_output_of_a_plan_tells_the_password(
    decisions: Postgres,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    plan = _plan(tmp_path, decisions.url("auditor", SECRET))
    out = tmp_path / "out"
    assert execute(["run", str(plan), "--out", str(out)]) == 0
    assert execute(["run", str(plan), "--out", str(out), "--json"]) == 0
    assert execute(["plan", "check", str(plan)]) == 0
    written = [path.read_text() for path in out.iterdir()]
    assert len(written) == 2
    assert "auditor:***@" in written[0] + written[1]
    everything = [*written, *capfd.readouterr(), caplog.text]
    for text in everything:
        assert SECRET not in text
        assert PLAIN not in text


@on(*POSTGRES)
def test_evidence_is_verified_with_the_password_from_elsewhere(
    decisions: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(tmp_path, decisions.url("auditor", "${AUDIT_PASSWORD}"))
    out = tmp_path / "out"
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 3
    assert not out.exists()
    monkeypatch.setenv("AUDIT_PASSWORD", SECRET)
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 0
    evidence = (out / "evidence.json").read_text()
    assert "${AUDIT_PASSWORD}" in evidence
    assert PLAIN not in evidence
    assert execute(["verify", str(out / "evidence.json"), "-q"]) == 0
    # a plan with the password in it is quoted without, and the usual variable helps out
    plan = _plan(tmp_path, decisions.url("auditor", SECRET))
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 0
    monkeypatch.setenv("PGPASSWORD", PLAIN)
    assert execute(["verify", str(out / "evidence.json"), "-q"]) == 0


@on(*POSTGRES)
def test_commands_take_connection_strings(
    decisions: Postgres, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, out = decisions.url("auditor", SECRET), str(tmp_path / "out")
    roles = ["--label", "y", "--prediction", "d", "--table", "failing"]
    assert execute(["audit", url, "--across", "g", *roles, "--out", out, "-q"]) in (0, 1, 2)
    to = tmp_path / "draft.yaml"
    assert execute(["plan", "init", url, *roles, "--to", str(to)]) == 0
    assert PLAIN not in to.read_text()
    assert SECRET not in to.read_text()
    assert "table: failing" in to.read_text()
    elsewhere = _plan(tmp_path, "decisions.csv", "unused")
    command = ["run", str(elsewhere), "--data", url, "--table", "failing", "--out", out]
    assert execute([*command, "-q"]) == 0
    assert execute([*command[:-2], "--out", out, "--table", "nothing"]) == 3
    shown = "".join(capfd.readouterr()) + "".join(p.read_text() for p in Path(out).iterdir())
    assert SECRET not in shown
    assert PLAIN not in shown


@on(*POSTGRES)
def test_a_schema_that_changed_between_plan_and_run(
    decisions: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions.execute("DROP TABLE IF EXISTS changing", "CREATE TABLE changing AS TABLE failing")
    plan = _plan(tmp_path, decisions.url(), "changing")
    out = tmp_path / "out"
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    decisions.execute("ALTER TABLE changing RENAME COLUMN g TO district")
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 3
    assert "'g'" in capsys.readouterr().err
    decisions.execute("ALTER TABLE changing RENAME COLUMN district TO g")
    decisions.execute("ALTER TABLE changing ALTER COLUMN y TYPE date USING '2020-01-01'::date")
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 3
    assert "label column 'y'" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@on(*POSTGRES)
def test_a_schema_that_changes_under_an_open_trail(decisions: Postgres) -> None:
    decisions.execute("DROP TABLE IF EXISTS moving", "CREATE TABLE moving AS TABLE failing")
    trail = eq.read(decisions.url(), table="moving", **ROLES)
    decisions.execute("ALTER TABLE moving DROP COLUMN g")
    with pytest.raises(eq.TrailError, match=r'g"? does not exist'):
        eq.describe(trail, CLAIM)


_FULL = """
import resource, signal, sys
from pathlib import Path
from equipoise.cli.main import execute
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.exit(execute(["run", sys.argv[1], "--out", sys.argv[2], "-q"]))
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    _table().write_csv(tmp_path / "decisions.csv")
    plan = _plan(tmp_path, "decisions.csv")
    plan.write_text(plan.read_text().replace("table: failing, ", ""))
    out = tmp_path / "out"
    assert execute(["run", str(plan), "--out", str(out), "-q"]) in (0, 1, 2)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    # no file may grow beyond two kilobytes, as on a disk that is full
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(plan), str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "decisions.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", _table().to_arrow())
        connection.execute("CREATE TABLE decisions AS SELECT * FROM given")
        connection.execute("CREATE SCHEMA old")
        connection.execute("CREATE VIEW old.some AS SELECT * FROM decisions WHERE g = 'a'")
    return path


def test_duckdb_databases_by_path_and_by_address(database: Path) -> None:
    for source in (database, str(database), f"duckdb://{database}"):
        found = eq.describe(eq.read(source, table="decisions", **ROLES), CLAIM)
        assert found.provenance.scanned == ROWS
    assert (
        eq.describe(eq.read(database, table="old.some", **ROLES), CLAIM).provenance.scanned == 200
    )
    _refused(str(database), "decision", "no table 'decision'", "Did you mean 'decisions'")
    _refused(str(database), None, "say which table", "'decisions', 'old.some'")
    _refused("duckdb:///nowhere.duckdb", "t", "There is no database")
    _refused("mysql://host/db", "t", "'mysql'", "postgres")
    with pytest.raises(eq.TrailError, match="holds only one"):
        eq.read(_table(), table="decisions")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "broken.duckdb"
    path.write_bytes(b"not a database at all" * 400)
    _refused(str(path), "t", "broken.duckdb could not be read")


@on(*SPARK)
def test_tables_of_spark_by_address(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "decisions.parquet"
    _table().write_parquet(path)
    spark.session.read.parquet(str(path)).createOrReplaceTempView("decisions")
    spark.connect.read.parquet(str(path)).createOrReplaceTempView("decisions")
    for source, table in (
        ("spark://local[2]", "decisions"),
        ("spark://local[2]", str(path)),
        (spark.remote, "decisions"),
        (spark.remote, str(path)),
    ):
        found = eq.describe(eq.read(source, table=table, **ROLES), CLAIM)
        assert found.provenance.scanned == ROWS
        _refused(source, "nothing_of_that_name", "nothing_of_that_name", "could not be read")
        _refused(source, None, "needs table=…")


@on(*SPARK)
def test_a_job_that_is_lost_in_the_middle(spark: Spark, tmp_path: Path) -> None:
    context = spark.session.sparkContext
    path = tmp_path / "decisions.parquet"
    _table().write_parquet(path)
    # so many pairs of rows that there is a middle
    rows = spark.session.read.parquet(str(path))
    large = rows.crossJoin(spark.session.range(0, 20_000_000, 1, 8).selectExpr("id AS k"))
    trail = eq.read(large, **ROLES, attributes=["g"])
    killer = threading.Timer(3.0, context.cancelAllJobs)
    killer.start()
    with pytest.raises(eq.TrailError, match=r"could not be read: .*(cancel|abort)"):
        eq.describe(trail, CLAIM)
    killer.join()
    # the next one works
    assert eq.describe(eq.read(rows, **ROLES), CLAIM).provenance.scanned == ROWS


_STOPPED = """
import sys, threading
import equipoise as eq
from pathlib import Path
from tests.engines.servers import running_spark
with running_spark(Path(sys.argv[1])) as spark:
    rows = spark.session.range(0, 4_000_000_000, 1, 8).selectExpr("id % 2 AS y", "id % 3 % 2 AS d")
    trail = eq.read(rows.selectExpr("y", "d", "d AS g"), label="y", prediction="d")
    killer = threading.Timer(3.0, spark.session.sparkContext.stop)
    killer.start()
    try:
        eq.describe(trail, eq.gap("accuracy", across="g"))
    except eq.TrailError as error:
        print("SAID", error)
    killer.join()
"""


@pytest.mark.slow
@on(*SPARK)
def test_a_cluster_that_goes_away_in_the_middle(spark: Spark, tmp_path: Path) -> None:
    # in a process of its own, since nothing works on that Spark afterwards
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert "SAID a pyspark table could not be read: " in done.stdout, done.stderr[-2000:]


@on(*SPARK)
def test_a_file_that_vanishes_under_spark(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "decisions.parquet"
    _table().write_parquet(path)
    trail = eq.read(spark.session.read.parquet(str(path)), **ROLES)
    path.unlink()
    with pytest.raises(eq.TrailError, match="could not be read"):
        eq.describe(trail, CLAIM)


def test_a_plan_that_fails_names_the_audit_and_the_cause(tmp_path: Path) -> None:
    _table().write_csv(tmp_path / "decisions.csv")
    plan = Plan.parse(
        PLAN.replace("SOURCE", "decisions.csv")
        .replace("table: TABLE, ", "")
        .replace("metric: false_positive_rate", "metric: brier")
    )
    with pytest.raises(eq.TrailError, match=r"^flag: .*score"):
        run(plan, folder=tmp_path)
