"""The first hour with a file of one's own: `equipoise audit` of a CSV, a gzipped CSV and a Parquet file.

Both sides begin with the path. The other side is what one would type into DuckDB to get the same
counts: one group-by over the file, with types as DuckDB guesses them. What an audit costs whatever
the rows (imports, bounds, the page) is measured on a table of 100 rows and taken off, so that the
ratio says how often the file is worked through; the whole is shown beside it.
"""

import json
from pathlib import Path

from measure import Line, Measured, at_most, measure

ROWS = 1_000_000

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

# The first audit imports what it needs, so a small one comes before the clock starts.
_SETUP = """
    import contextlib, io, json, tempfile
    import duckdb
    import equipoise as eq
    from equipoise.cli.main import execute
    from equipoise.trail import engine
    def audit(path):
        words = ["audit", path, "--across", "race,sex,age", "--label", "label"]
        words += ["--prediction", "prediction", "--out", tempfile.mkdtemp(), "--quiet"]
        if execute(words):
            raise RuntimeError(path)
    def levels(path):
        trail = eq.read(path, label="label", prediction="prediction")
        return [eq.describe(trail, eq.gap("accuracy", across=name)).provenance.counted
                for name in ("race", "sex", "age")]
    audit({small!r})
    levels({small!r})
    path = {path!r}
"""
_BARE = """
    import duckdb
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    path = {path!r}
"""
_QUERY = (
    "SELECT race, sex, age, label, prediction, count(*) FROM '{}' GROUP BY race, sex, age, label, "
    "prediction"
)


def run(folder: Path, rows: int = ROWS) -> list[Line]:
    """Each kind of file: one audit, and three audits of one trail."""
    lines: list[Line] = []
    for ending, aim in _AIMS.items():
        path, small = _made(folder, rows, ending), _made(folder, 100, ending)
        bare = _bare(path)
        if bare.answer != str(rows):
            raise RuntimeError(f"{bare.answer} rows of {rows}")
        lines += _compared(path, small, bare, rows, aim)
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
    query = _QUERY.format(path)
    code = f'answer = sum(row[5] for row in connection.execute("{query}").fetchall())'
    return measure(code, _BARE.format(path=str(path)), repeat=5)


def _compared(path: Path, small: Path, bare: Measured, rows: int, aim: float) -> list[Line]:
    ending = path.name.split(".", 1)[1]
    size = path.stat().st_size / 1e6
    what = {
        "audit(path)": "equipoise audit: 3 rates, flags, bounds, the page",
        "answer = json.dumps(levels(path))": "read once, described by 3 attributes in turn",
    }
    lines = []
    for code, words in what.items():
        ours = measure(code, _SETUP.format(path=str(path), small=str(small)), repeat=3)
        if ours.answer and json.loads(ours.answer) != [rows] * 3:
            raise RuntimeError(f"{ours.answer} of {rows} rows")
        fixed = measure(code, _SETUP.format(path=str(small), small=str(small)), repeat=3)
        detail = (
            f"{ours.cpu:.2f} CPU s, of which {fixed.cpu:.2f} whatever the rows, against "
            f"{bare.cpu:.2f}; with all of it {ours.cpu / bare.cpu:.1f} ×; {ours.peak_mb:.0f} MB"
        )
        ratio = (ours.cpu - fixed.cpu) / bare.cpu
        told = f"{ending} of {rows:,} rows ({size:.0f} MB), {words}"
        lines.append(at_most(told, ratio, aim, "× bare GROUP BY", detail))
    return lines


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory(prefix="equipoise-bench-") as place:
        for line in run(Path(place), int(sys.argv[1]) if len(sys.argv) > 1 else ROWS):
            print(line.as_row())
