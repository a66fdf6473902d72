"""Servers that are started at most once in a test run."""

from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.engines.servers import Postgres, Spark, running_postgres, running_spark

# Spark's Python side leaves its sockets to the garbage collector, which comes when it likes.
LEFT_OPEN = r"ignore:unclosed <socket\.socket.*raddr=\('127\.0\.0\.1':ResourceWarning"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", LEFT_OPEN)


class OneWorkerForEachServer(LoadScopeScheduling):  # type: ignore[misc]
    """Tests go to any worker, but those whose name speaks of a server all go to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return next((server for server in ("spark", "postgres") if server in nodeid), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorkerForEachServer:
    return OneWorkerForEachServer(config, log)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    with running_spark(tmp_path_factory.mktemp("spark")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server
