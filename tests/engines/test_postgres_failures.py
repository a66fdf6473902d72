"""When PostgreSQL fails: a clear error, nothing half-written, and no password anywhere."""

import contextlib
import logging
import threading
import time
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli.main import execute
from tests.engines.decisions import (
    CLAIM,
    PLAIN,
    ROLES,
    ROWS,
    SECRET,
    refused,
    small_table,
    write_plan,
)
from tests.engines.servers import Postgres, free_port, running_postgres

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def decisions(postgres: Postgres) -> Postgres:
    """A server with a table, someone who may read it, and someone who may not."""
    postgres.ibis.create_table("failing", small_table().to_arrow(), overwrite=True)
    postgres.execute(
        "DROP ROLE IF EXISTS outsider",
        f"CREATE ROLE outsider LOGIN PASSWORD '{PLAIN}'",
    )
    with contextlib.suppress(Exception):
        postgres.execute(f"CREATE ROLE auditor LOGIN PASSWORD '{PLAIN}'")
    postgres.execute("GRANT SELECT ON failing TO auditor")
    return postgres


def test_a_password_opens_the_table(decisions: Postgres) -> None:
    trail = eq.read(decisions.url("auditor", SECRET), table="failing", **ROLES)
    found = eq.describe(trail, CLAIM)
    assert found.provenance.scanned == ROWS
    assert trail.source.startswith("table 'failing' of postgres://auditor:***@/postgres")
    assert PLAIN not in found.to_json()
    assert SECRET not in found.to_json()


def test_a_wrong_password_a_missing_right_and_a_missing_table(decisions: Postgres) -> None:
    refused(decisions.url("auditor", "wr0ng-pass"), "failing", "password authentication failed")
    refused(decisions.url("outsider", SECRET), "failing", "failing")
    refused(decisions.url("auditor", SECRET), "falling", "no table 'falling'", "failing")
    # one table needs no name; two do
    decisions.execute("CREATE TABLE second AS SELECT * FROM failing")
    decisions.execute("GRANT SELECT ON second TO auditor")
    refused(decisions.url("auditor", SECRET), None, "say which table with table=…", "failing")
    decisions.execute("DROP TABLE second")


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


def test_a_connection_that_is_refused() -> None:
    port = free_port()
    refused(f"postgres://auditor:{SECRET}@127.0.0.1:{port}/db", "t", "Connection refused")
    refused("postgres://auditor@/db?host=/nowhere/at/all", "t", "could not be read")


def test_a_server_that_dies_in_the_middle(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_postgres(tmp_path_factory.mktemp("mortal")) as server:
        server.ibis.create_table("decisions", small_table().to_arrow())
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


def test_no_output_of_a_plan_tells_the_password(
    decisions: Postgres,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    plan = write_plan(tmp_path, decisions.url("auditor", SECRET))
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


def test_evidence_is_verified_with_the_password_from_elsewhere(
    decisions: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = write_plan(tmp_path, decisions.url("auditor", "${AUDIT_PASSWORD}"))
    out = tmp_path / "out"
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 3
    assert not out.exists()
    # what a variable holds is the password itself, whatever signs are in it
    monkeypatch.setenv("AUDIT_PASSWORD", PLAIN)
    assert execute(["run", str(plan), "--out", str(out), "-q"]) == 0
    evidence = (out / "evidence.json").read_text()
    assert "${AUDIT_PASSWORD}" in evidence
    assert PLAIN not in evidence
    # evidence from elsewhere opens no connection that was not allowed
    again = ["verify", str(out / "evidence.json"), "-q"]
    assert execute(again) == 3
    assert execute([*again, "--allow", decisions.url("auditor", "${AUDIT_PASSWORD}")]) == 0
    # a plan with the password in it is quoted without, and the usual variable helps out
    plan = write_plan(tmp_path, decisions.url("auditor", SECRET))
    assert execute(["run", str(plan), "--out", str(out), "-q", "--force"]) == 0
    monkeypatch.setenv("PGPASSWORD", PLAIN)
    assert execute([*again, "--allow", decisions.url("auditor", "***")]) == 0


def test_commands_take_connection_strings(
    decisions: Postgres, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, out = decisions.url("auditor", SECRET), str(tmp_path / "out")
    roles = ["--label", "y", "--prediction", "d", "--table", "failing"]
    assert execute(["audit", url, "--across", "g", *roles, "--out", out, "-q"]) in (0, 1, 2)
    to = tmp_path / "draft.yaml"
    assert execute(["plan", "init", url, *roles, "--out", str(to)]) == 0
    assert PLAIN not in to.read_text()
    assert SECRET not in to.read_text()
    assert "table: failing" in to.read_text()
    elsewhere = write_plan(tmp_path, "decisions.csv", "unused")
    command = ["run", str(elsewhere), "--data", url, "--table", "failing", "--out", out]
    assert execute([*command, "-q", "--force"]) == 0
    assert execute([*command[:-2], "--out", out, "--table", "nothing"]) == 3
    shown = "".join(capfd.readouterr()) + "".join(p.read_text() for p in Path(out).iterdir())
    assert SECRET not in shown
    assert PLAIN not in shown


def test_a_schema_that_changed_between_plan_and_run(
    decisions: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions.execute("DROP TABLE IF EXISTS changing", "CREATE TABLE changing AS TABLE failing")
    plan = write_plan(tmp_path, decisions.url(), "changing")
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


def test_a_schema_that_changes_under_an_open_trail(decisions: Postgres) -> None:
    decisions.execute("DROP TABLE IF EXISTS moving", "CREATE TABLE moving AS TABLE failing")
    trail = eq.read(decisions.url(), table="moving", **ROLES)
    decisions.execute("ALTER TABLE moving DROP COLUMN g")
    with pytest.raises(eq.TrailError, match=r'g"? does not exist'):
        eq.describe(trail, CLAIM)
