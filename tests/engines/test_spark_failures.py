"""Spark by address, and when it fails: a clear error."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import equipoise as eq
from tests.engines.decisions import CLAIM, ROLES, ROWS, SECRET, refused, small_table
from tests.engines.servers import Spark, free_port

pytestmark = pytest.mark.spark


def test_tables_of_spark_by_address(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "decisions.parquet"
    small_table().write_parquet(path)
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
        refused(source, "nothing_of_that_name", "nothing_of_that_name", "could not be read")
        refused(source, None, "needs table=…")


def test_a_server_that_is_not_there() -> None:
    refused(f"sc://127.0.0.1:{free_port()}/;token={SECRET}", "t", "Connection refused")


def test_a_job_that_is_lost_in_the_middle(spark: Spark, tmp_path: Path) -> None:
    context = spark.session.sparkContext
    path = tmp_path / "decisions.parquet"
    small_table().write_parquet(path)
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
import os, threading, time
import equipoise as eq
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(0, 4_000_000_000, 1, 8).selectExpr("id % 2 AS y", "id % 3 % 2 AS d")
trail = eq.read(rows.selectExpr("y", "d", "d AS g"), label="y", prediction="d")
def stop():
    # in the middle: a Spark that is stopped before it begins waits for ever
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.1)
    time.sleep(1)
    spark.sparkContext._jsc.stop()
threading.Thread(target=stop, daemon=True).start()
try:
    eq.describe(trail, eq.gap("accuracy", across="g"))
except eq.TrailError as error:
    print("SAID", error, flush=True)
# nothing works on this Spark any more, not even saying goodbye
os._exit(0)
"""


@pytest.mark.slow
def test_a_cluster_that_goes_away_in_the_middle(spark: Spark) -> None:
    # in a process of its own, since nothing works on that Spark afterwards
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert "SAID a pyspark table could not be read: " in done.stdout, done.stderr[-2000:]


def test_a_file_that_vanishes_under_spark(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "decisions.parquet"
    small_table().write_parquet(path)
    trail = eq.read(spark.session.read.parquet(str(path)), **ROLES)
    path.unlink()
    with pytest.raises(eq.TrailError, match="could not be read"):
        eq.describe(trail, CLAIM)
