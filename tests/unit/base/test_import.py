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


def test_nothing_is_said_at_the_end() -> None:
    # DuckDB's binding complains when something of it outlives the interpreter
    code = """
import equipoise as eq
trail = eq.datasets.compas()
eq.describe(trail, eq.gap("accuracy", across="sex"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_a_verb_brings_in_only_what_it_needs() -> None:
    code = """
import sys
import equipoise as eq
eq.certify
others = ("calibration", "shift", "cusum", "tilts", "spread", "transport", "scipy.optimize")
print([m for m in sys.modules if any(other in m for other in others)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
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
