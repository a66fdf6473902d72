"""Servers that are started at most once in a test run."""

from collections.abc import Iterator

import pytest

from tests.engines.servers import Postgres, Spark, running_postgres, running_spark

# Spark's Python side leaves its sockets to the garbage collector, which comes when it likes.
LEFT_OPEN = r"ignore:unclosed <socket\.socket.*raddr=\('127\.0\.0\.1':ResourceWarning"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", LEFT_OPEN)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    with running_spark(tmp_path_factory.mktemp("spark")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server
