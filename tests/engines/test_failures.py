"""When disks are full and databases broken: a clear error, nothing half-written."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.plan import Plan, run
from tests.engines.decisions import CLAIM, PLAN, ROLES, ROWS, refused, small_table, write_plan

_FULL = """
import resource, signal, sys
from pathlib import Path
from equipoise.cli.main import execute
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.exit(execute(["run", sys.argv[1], "--out", sys.argv[2], "-q"]))
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    small_table().write_csv(tmp_path / "decisions.csv")
    plan = write_plan(tmp_path, "decisions.csv")
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
        connection.register("given", small_table().to_arrow())
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
    refused(str(database), "decision", "no table 'decision'", "Did you mean 'decisions'")
    refused(str(database), None, "say which table", "'decisions', 'old.some'")
    refused("duckdb:///nowhere.duckdb", "t", "There is no database")
    refused("mysql://host/db", "t", "'mysql'", "postgres")
    with pytest.raises(eq.TrailError, match="holds only one"):
        eq.read(small_table(), table="decisions")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "broken.duckdb"
    path.write_bytes(b"not a database at all" * 400)
    refused(str(path), "t", "broken.duckdb could not be read")


def test_a_plan_that_fails_names_the_audit_and_the_cause(tmp_path: Path) -> None:
    small_table().write_csv(tmp_path / "decisions.csv")
    plan = Plan.parse(
        PLAN.replace("SOURCE", "decisions.csv")
        .replace("table: TABLE, ", "")
        .replace("metric: false_positive_rate", "metric: brier")
    )
    with pytest.raises(eq.TrailError, match=r"^flag: .*score"):
        run(plan, folder=tmp_path)
