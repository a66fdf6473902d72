"""The blocks of the pages on engines, on real servers."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from tests.engines.servers import Postgres, Spark

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
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


def _commands(page: str, **replaced: str) -> str:
    """Everything that the commands of a page print; none may fail."""
    said = ""
    for block in SHELL.findall((PAGES / page).read_text()):
        for line in block.splitlines():
            words = line
            for written, meant in replaced.items():
                words = words.replace(written, meant)
            program, *arguments = shlex.split(words)
            assert program == "equipoise"
            command = [sys.executable, "-m", "equipoise", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            # 1: a violation was shown, which is an answer
            assert done.returncode in (0, 1), (words, done.stdout, done.stderr)
            said += done.stdout + done.stderr
    return said


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
    # views belong to a session, and a command opens its own
    spark.connect.read.parquet(path).write.mode("overwrite").saveAsTable("decisions_of_page")
    meant = {"sc://localhost": spark.remote, "--table decisions": "--table decisions_of_page"}
    said = _commands("spark.md", **meant)
    assert "Aggregate" in said
    assert Path("out/report.html").exists()


@pytest.mark.postgres
def test_the_page_on_postgres(postgres: Postgres, decisions: pl.DataFrame) -> None:
    postgres.ibis.create_table("page", decisions.to_arrow(), overwrite=True)
    url = "postgres://auditor@db.example.org/decisions"
    meant = {url: postgres.url(), 'table="decisions"': 'table="page"'}
    assert _run("postgres.md", {}, **meant)["bounds"].provenance.scanned == 400
    said = _commands(
        "postgres.md", **{url: repr(postgres.url()), "--table decisions": "--table page"}
    )
    assert said.lower().count("group by") == 1
    assert Path("out/report.html").exists()
