"""Servers that are started at most once in a test run."""

from collections.abc import Iterator

import pytest

from tests.engines.servers import Postgres, Spark, running_postgres, running_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    with running_spark(tmp_path_factory.mktemp("spark")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server
