"""All audits of a plan see the same rows: by a snapshot, or by a look before and after."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import equipoise as eq
from equipoise.cells import gather
from equipoise.errors import TrailError
from equipoise.plan import Plan, run
from equipoise.trail.engine import one_moment
from tests.engines.servers import Postgres, Spark

PLAN = Plan.parse(
    """
equipoise: 1
title: Selections by group
seed: 7
trail: {source: "spark://given", prediction: p}
audits:
  - audit: describe
    claim: {kind: gap, metric: selection_rate, across: [g]}
  - audit: certify
    claim: {kind: gap, metric: selection_rate, across: [g]}
"""
)
ROWS = 400


def _counted(trail: eq.Trail, **options: Any) -> list[int]:
    found: list[Any] = [entry.finding for entry in run(PLAN, trail=trail, **options).entries]
    return [sum(row.n for row in each) for each in found]


@contextmanager
def _table(spark: Spark, columns: str) -> Iterator[str]:
    name = "moments"
    spark.session.sql(f"DROP TABLE IF EXISTS {name}")
    spark.session.sql(f"CREATE TABLE {name} USING parquet AS SELECT {columns} FROM range({ROWS})")
    yield name
    spark.session.sql(f"DROP TABLE {name}")


COLUMNS = "CAST(id % 2 AS INT) AS p, CASE WHEN id % 3 = 0 THEN 'a' ELSE 'b' END AS g"


@pytest.mark.spark
def test_rows_that_come_while_spark_is_audited_are_noticed(spark: Spark) -> None:
    with _table(spark, COLUMNS) as name:
        trail = eq.read(spark.session.table(name), prediction="p")
        assert _counted(trail) == [ROWS, ROWS]

        def write(*_: object) -> None:
            spark.session.sql(f"INSERT INTO {name} VALUES (1, 'a')")

        with pytest.raises(TrailError, match="changed while it was audited"):
            run(PLAN, trail=trail, tell=write)


@pytest.mark.spark
def test_spark_tables_with_maps_can_be_audited(spark: Spark) -> None:
    with _table(spark, f"{COLUMNS}, map('k', id) AS m, array(map(1, id)) AS n") as name:
        assert _counted(eq.read(spark.session.table(name), prediction="p")) == [ROWS, ROWS]


def test_rows_that_come_while_postgres_is_audited_are_not_seen(postgres: Postgres) -> None:
    postgres.execute(
        "DROP TABLE IF EXISTS moments",
        "CREATE TABLE moments AS SELECT id % 2 AS p, CASE WHEN id % 3 = 0 THEN 'a' ELSE 'b' END "
        f"AS g FROM generate_series(1, {ROWS}) AS id",
    )
    written = []

    def write(*_: object) -> None:
        postgres.execute("INSERT INTO moments VALUES (1, 'a')")
        written.append(1)

    trail = eq.read(postgres.url(), table="moments", prediction="p")
    assert _counted(trail, tell=write) == [ROWS, ROWS]
    assert _counted(trail) == [ROWS + len(written)] * 2


def test_a_moment_within_another_does_not_end_it(postgres: Postgres) -> None:
    postgres.execute(
        "DROP TABLE IF EXISTS moments",
        f"CREATE TABLE moments AS SELECT id % 2 AS p FROM generate_series(1, {ROWS}) AS id",
    )
    trail = eq.read(postgres.url(), table="moments", prediction="p")
    claim = eq.gap(eq.selection_rate)
    with one_moment(trail.frame, trail.source):
        with one_moment(trail.frame, trail.source):
            assert gather(trail, [claim])[0].counted == ROWS
        postgres.execute("INSERT INTO moments VALUES (1)")
        assert gather(trail, [claim])[0].counted == ROWS
    assert gather(trail, [claim])[0].counted == ROWS + 1
