"""Where the same table can be read from: one entry for each kind of source.

A later engine is one more entry: a function from an Arrow table and an empty folder to whatever
`equipoise.read` takes. One that needs a server names its fixture, and is given that first.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

import equipoise as eq
from tests.engines.servers import Postgres, Spark

Source = Callable[[pa.Table, Path], Any]


def csv_file(table: pa.Table, folder: Path) -> Any:
    plain = table.cast(pa.schema(pa.field(f.name, _plain_type(f.type)) for f in table.schema))
    path = folder / "decisions.csv"
    pyarrow.csv.write_csv(plain, path)
    return path


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_timestamp(kind) and kind.tz:
        return pa.timestamp("us", "UTC")
    return kind


def parquet_file(table: pa.Table, folder: Path) -> Any:
    path = folder / "decisions.parquet"
    pyarrow.parquet.write_table(table, path)
    return str(path)


def parquet_parts(table: pa.Table, folder: Path) -> Any:
    half = table.num_rows // 2
    pyarrow.parquet.write_table(table.slice(0, half), folder / "part-0.parquet")
    pyarrow.parquet.write_table(table.slice(half), folder / "part-1.parquet")
    return folder


def parquet_glob(table: pa.Table, folder: Path) -> Any:
    return str(parquet_parts(table, folder) / "part-*.parquet")


def pandas_default(table: pa.Table, folder: Path) -> Any:
    return table.to_pandas()


def pandas_nullable(table: pa.Table, folder: Path) -> Any:
    nullable = {
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(),
    }
    return table.to_pandas(types_mapper=nullable.get)


def pandas_arrow(table: pa.Table, folder: Path) -> Any:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def polars_eager(table: pa.Table, folder: Path) -> Any:
    return pl.from_arrow(table)


def polars_lazy(table: pa.Table, folder: Path) -> Any:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def arrow_table(table: pa.Table, folder: Path) -> Any:
    return table


def duckdb_relation(table: pa.Table, folder: Path) -> Any:
    return duckdb.connect().from_arrow(table)


def duckdb_table(table: pa.Table, folder: Path) -> Any:
    path = folder / "decisions.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE decisions AS SELECT * FROM given")
    return eq.read(path, table="decisions")


def ibis_duckdb(table: pa.Table, folder: Path) -> Any:
    return ibis.duckdb.connect().create_table("decisions", table)


def ibis_postgres(server: Postgres, table: pa.Table, folder: Path) -> Any:
    return server.ibis.create_table("decisions", table, overwrite=True)


def postgres_url(server: Postgres, table: pa.Table, folder: Path) -> Any:
    server.ibis.create_table("by_url", table, overwrite=True)
    return eq.read(server.url(), table="by_url")


def pyspark_classic(server: Spark, table: pa.Table, folder: Path) -> Any:
    return server.session.read.parquet(parquet_file(table, folder))


def pyspark_connect(server: Spark, table: pa.Table, folder: Path) -> Any:
    return server.connect.read.parquet(parquet_file(table, folder))


def spark_elsewhere(server: Spark, table: pa.Table, folder: Path) -> Any:
    """A session that shows times in another zone."""
    session = server.session.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    return session.read.parquet(parquet_file(table, folder))


SOURCES: dict[str, Source] = {
    "csv": csv_file,
    "parquet": parquet_file,
    "folder": parquet_parts,
    "glob": parquet_glob,
    "pandas": pandas_default,
    "pandas-nullable": pandas_nullable,
    "pandas-arrow": pandas_arrow,
    "polars": polars_eager,
    "polars-lazy": polars_lazy,
    "pyarrow": arrow_table,
    "duckdb": duckdb_relation,
    "duckdb-file": duckdb_table,
    "ibis-duckdb": ibis_duckdb,
}

#: Sources on a server: the fixture that starts it, and how the table gets there.
SERVED: dict[str, tuple[str, Callable[[Any, pa.Table, Path], Any]]] = {
    "ibis-postgres": ("postgres", ibis_postgres),
    "postgres-url": ("postgres", postgres_url),
    "spark": ("spark", pyspark_classic),
    "spark-elsewhere": ("spark", spark_elsewhere),
    "spark-connect": ("spark", pyspark_connect),
}


def every_source() -> list[Any]:
    """All sources as test parameters; the names of those on a server say so."""
    served = [
        pytest.param(name, marks=getattr(pytest.mark, server))
        for name, (server, _) in SERVED.items()
    ]
    return [*SOURCES, *served]


def opened(name: str, table: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Any:
    """The table as the named source holds it."""
    if name in SOURCES:
        return SOURCES[name](table, folder)
    server, place = SERVED[name]
    return place(request.getfixturevalue(server), table, folder)
