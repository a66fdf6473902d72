"""The first hour with a file of one's own: `equipoise audit` of a CSV, a gzipped CSV and a Parquet file.

Both sides begin with the path. The other side is what one would type into DuckDB to get the same
counts: one group-by over the file, with types as DuckDB guesses them. Ours is counted twice: what is
done with the file (opening it, finding its types, every query), and the whole command, in which bounds
and the page cost the same whatever the rows.
"""

import json
import math
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from install import fresh
from measure import Line, Measured, at_most, measure

ROWS = 1_000_000
#: Rows of a table that is audited before the clock starts.
SMALL = 20_000

_MAKE = """
    COPY (
        SELECT
            i AS id,
            ['African-American','Caucasian','Hispanic','Asian','Other'][1 + (hash(i) % 5)::INT] AS race,
            ['Female','Male'][1 + (hash(i + 1) % 2)::INT] AS sex,
            ['under 25','25 to 45','over 45'][1 + (hash(i + 2) % 3)::INT] AS age,
            (hash(i + 7) % 100000)::INT AS income,
            DATE '2020-01-01' + (hash(i + 8) % 1000)::INT AS day,
            (hash(i + 4) % 100 < 45)::TINYINT AS label,
            (hash(i + 5) % 100 < 38 + hash(i) % 5)::TINYINT AS prediction,
            (hash(i + 6) % 1000) / 1000.0 AS score,
            'case number ' || (hash(i + 9) % 1000) || ', as it was filed' AS note
        FROM range({rows}) t(i)
    ) TO '{path}' ({form})
"""
_FORMS = {
    "csv": "FORMAT csv",
    "csv.gz": "FORMAT csv, COMPRESSION gzip",
    "parquet": "FORMAT parquet",
}
#: How many times the bare group-by an audit may cost.
_AIMS = {"csv": 3, "csv.gz": 3, "parquet": 2}

# All that is asked of an engine goes through these, wherever it is asked from.
_SETUP = """
    import importlib, json, tempfile
    import duckdb
    import equipoise as eq
    import equipoise.audits, equipoise.report
    from equipoise.cli.main import execute
    spent = []
    def timed(module, name):
        plain = getattr(importlib.import_module(module), name)
        def call(*args, **options):
            began = time.process_time()
            try:
                return plain(*args, **options)
            finally:
                spent.append(time.process_time() - began)
        setattr(importlib.import_module(module), name, call)
    timed("equipoise.cells.gather", "fetch")
    timed("equipoise.plan.run", "read")
    timed("equipoise", "read")
    def audit(path):
        words = ["audit", path, "--across", "race,sex,age", "--label", "label"]
        words += ["--prediction", "prediction", "--out", tempfile.mkdtemp(), "--quiet"]
        if execute(words):
            raise RuntimeError(path)
    def thrice(path):
        trail = eq.read(path, label="label", prediction="prediction")
        for name in ("race", "sex", "age"):
            eq.describe(trail, eq.gap("accuracy", across=name))
    # the first call imports what it needs
    {asked}({small!r})
    spent.clear()
"""
_BARE = """
    import duckdb
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
"""
_QUERY = (
    "SELECT race, sex, age, label, prediction, count(*) FROM '{}' GROUP BY race, sex, age, label, "
    "prediction"
)


_ROLES = ("--label", "label", "--prediction", "prediction")
#: What is measured, and how it is called.
_ASKED = {
    "audit": "equipoise audit (3 rates, flags, bounds, the page)",
    "thrice": "read once, described by 3 attributes in turn",
}


#: Whole commands, start-up included: CPU seconds that each may take.
_WHOLE = {
    "audit of 2,000 rows by race and sex (3 rates, flags, bounds, the page)": (
        ("audit", "people.csv", "--across", "race,sex", *_ROLES, "--quiet", "--out", "people"),
        1.5,
    ),
    "plan init of 2,000 rows and 300 columns": (
        ("plan", "init", "wide.csv", *_ROLES, "--out", "wide.yaml", "--force"),
        2.0,
    ),
    # groups of a few people are written out, one outcome at a time; there is no bar for it
    "audit of 100 rows by 3 attributes (59 groups)": (
        ("audit", "few.csv", "--across", "race,sex,age", *_ROLES, "--quiet", "--out", "few"),
        math.inf,
    ),
}


def _commands(folder: Path) -> list[Line]:
    """CPU seconds of whole commands as a shell would run them, after ``pip install``.

    An environment in which no module is compiled takes a second more to start.
    """
    import duckdb

    installed = fresh(folder)

    for name, rows, wide in (("people", 2000, 0), ("few", 100, 0), ("wide", 2000, 300)):
        more = ", ".join(f"hash(i + {j}) % 1000 / 7.0 AS c{j}" for j in range(100, 100 + wide))
        made = _MAKE.format(rows=rows, path=folder / f"{name}.csv", form="FORMAT csv, HEADER")
        duckdb.connect().execute(made.replace("i AS id", f"i AS id{', ' * bool(wide)}{more}"))
    lines = []
    for told, (words, aim) in _WHOLE.items():
        spent = min(_spent(installed, words, folder) for _ in range(3))
        lines.append(at_most(told, spent, aim, "CPU s"))
    return lines


def _spent(installed: Path, words: Sequence[str], folder: Path) -> float:
    def children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = children()
    command = [str(installed / "bin" / "equipoise"), *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return children() - before


def run(folder: Path, rows: int = ROWS) -> list[Line]:
    """Whole commands; then each kind of file: one audit, and three descriptions of one trail."""
    lines: list[Line] = _commands(folder)
    for ending, aim in _AIMS.items():
        path = _made(folder, rows, ending)
        bare = _bare(path)
        if bare.answer != str(rows):
            raise RuntimeError(f"{bare.answer} rows of {rows}")
        for asked in _ASKED:
            lines += _compared(path, _made(folder, SMALL, ending), asked, bare, aim)
        path.unlink()
    return lines


def _made(folder: Path, rows: int, ending: str) -> Path:
    import duckdb

    path = folder / f"first-hour-{rows}.{ending}"
    if not path.exists():
        made = _MAKE.format(rows=rows, path=path, form=_FORMS[ending])
        duckdb.connect().execute(made).fetchall()
    return path


def _bare(path: Path) -> Measured:
    code = f'answer = sum(row[5] for row in connection.execute("{_QUERY.format(path)}").fetchall())'
    return measure(code, _BARE, repeat=5)


def _compared(path: Path, small: Path, asked: str, bare: Measured, aim: float) -> list[Line]:
    ours = measure(
        f"{asked}({str(path)!r})\nanswer = json.dumps([len(spent), sum(spent)])",
        _SETUP.format(asked=asked, small=str(small)),
        repeat=3,
    )
    calls, cpu = json.loads(ours.answer)
    ending, size = path.name.split(".", 1)[1], path.stat().st_size / 1e6
    told = f"{ending} of {int(bare.answer):,} rows ({size:.0f} MB), {_ASKED[asked]}"
    part = f"{cpu:.2f} against {bare.cpu:.2f} CPU s, {calls} calls"
    whole = f"{ours.cpu:.2f} against {bare.cpu:.2f} CPU s, {ours.peak_mb:.0f} MB"
    return [
        at_most(f"{told}: work on the file", cpu / bare.cpu, aim, "× bare GROUP BY", part),
        at_most(f"{told}: all of it", ours.cpu / bare.cpu, aim, "× bare GROUP BY", whole),
    ]


if __name__ == "__main__":
    import tempfile

    # a smaller table to try it out: python first_hour.py 200000
    with tempfile.TemporaryDirectory(prefix="equipoise-bench-") as place:
        for line in run(Path(place), int(sys.argv[1]) if len(sys.argv) > 1 else ROWS):
            print(line.as_row())
