"""Importing the package is quick, and brings in nothing heavy."""

import subprocess
import sys

HEAVY = (
    "pandas",
    "sklearn",
    "altair",
    "duckdb",
    "polars",
    "pyarrow",
    "scipy.stats",
    "jinja2",
    "typer",
)


def test_import_brings_in_nothing_heavy() -> None:
    code = f"import sys, equipoise; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_duckdb_and_polars_audits_need_no_other_frame_library() -> None:
    code = """
import sys
import equipoise as eq
eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
heavy = ("pandas", "sklearn", "altair", "polars", "pyarrow", "scipy.stats")
print([m for m in heavy if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
