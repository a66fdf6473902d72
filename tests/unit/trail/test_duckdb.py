"""DuckDB where it is not at home: in a notebook, and away from the internet."""

import subprocess
import sys
import textwrap

import duckdb
import pytest

import equipoise as eq
from equipoise.trail.engine import fetch, new_duckdb

# What DuckDB looks at to find out that it runs in a notebook; ipywidgets is not installed here.
NOTEBOOK = """
    import importlib.util, sys, types
    assert importlib.util.find_spec("ipywidgets") is None
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    sys.modules["IPython"] = types.ModuleType("IPython")
    sys.modules["IPython"].get_ipython = lambda: shell
    import __main__
    del __main__.__dict__["__file__"]
    import duckdb
    try:
        duckdb.connect().execute("SET enable_progress_bar = false")
    except duckdb.Error as error:
        assert "ipywidgets" in str(error)
    else:
        raise SystemExit("DuckDB did not take this for a notebook")
    import equipoise as eq
    print(eq.datasets.compas())
    print(eq.from_arrays([0, 1], [1, 1], sensitive_features=["f", "m"]))
"""


def test_a_notebook_without_widgets(tmp_path: object) -> None:
    path = f"{tmp_path}/cell.py"
    with open(path, "w") as out:
        out.write(textwrap.dedent(NOTEBOOK))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Trail(the bundled COMPAS counts")
    assert "Trail(arrays" in done.stdout


def test_no_extension_is_fetched() -> None:
    connection = new_duckdb()
    for name in ("autoload_known_extensions", "autoinstall_known_extensions"):
        assert connection.execute(f"SELECT current_setting('{name}')").fetchall() == [(False,)]
    with pytest.raises(duckdb.Error, match="requires the extension httpfs"):
        connection.execute("FROM 'https://localhost:1/t.csv'")


def test_a_database_that_the_caller_has_open(tmp_path: object) -> None:
    path = f"{tmp_path}/t.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS y, 'a' AS g")
    with duckdb.connect(path, read_only=True) as own:
        trail = eq.read(path)
        assert trail.source == "table 't' of t.duckdb"
        assert fetch(trail.frame.select("g"), "t")["g"].tolist() == ["a"]
        setting = own.execute("SELECT current_setting('autoload_known_extensions')")
        assert setting.fetchall() == [(True,)]
