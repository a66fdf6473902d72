"""The blocks of the pages on engines, on real servers."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from tests.engines.servers import Postgres, Spark

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
BLOCK = re.compile(r"^```py\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _run(page: str, names: dict[str, Any], **replaced: str) -> dict[str, Any]:
    blocks = BLOCK.findall((PAGES / page).read_text())
    assert blocks
    for block in blocks:
        text = block
        for written, meant in replaced.items():
            text = text.replace(written, meant)
        exec(compile(text, page, "exec"), names)
    return names


@pytest.fixture
def decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    eq.datasets.write_decisions(tmp_path / "decisions.csv")
    table = pl.read_csv(tmp_path / "decisions.csv")
    table.write_parquet(tmp_path / "decisions.parquet")
    monkeypatch.chdir(tmp_path)
    return table


@pytest.mark.spark
def test_the_page_on_spark(spark: Spark, decisions: pl.DataFrame) -> None:
    path = str(Path("decisions.parquet").resolve())
    spark.connect.read.parquet(path).createOrReplaceTempView("decisions")
    meant = {'"decisions.parquet"': repr(path), "sc://localhost": spark.remote}
    made = _run("spark.md", {"spark": spark.session}, **meant)
    assert made["bounds"].provenance.scanned == made["counts"].rows == len(decisions) == 400
    assert made["bounds"].provenance == made["flags"].provenance
    assert "drawn from 400" in made["found"].guarantee


@pytest.mark.postgres
def test_the_page_on_postgres(postgres: Postgres, decisions: pl.DataFrame) -> None:
    postgres.ibis.create_table("page", decisions.to_arrow(), overwrite=True)
    url = "postgres://auditor@db.example.org/decisions"
    meant = {url: postgres.url(), 'table="decisions"': 'table="page"'}
    assert _run("postgres.md", {}, **meant)["bounds"].provenance.scanned == 400
