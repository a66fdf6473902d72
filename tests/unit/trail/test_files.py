"""Files of other kinds than CSV."""

import datetime
import gzip
import json
import sqlite3
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.feather  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

import equipoise as eq
from equipoise.trail.engine import fetch

CSV = "y,p,g\n1,0,a\n0,1,b\n1,1,b\n"
ROWS = pa.table({"y": [1, 0, 1], "p": [0, 1, 1], "g": ["a", "b", "b"]})


def counted(path: str | Path, **options: Any) -> int:
    trail = eq.read(path, label="y", prediction="p", **options)
    found = eq.describe(trail, eq.gap("accuracy", across="g"))
    assert [row.group for row in found.rows] == ["a", "b"]
    return found.provenance.counted


def values(trail: eq.Trail, name: str) -> list[Any]:
    return fetch(trail.frame.select(name), "t")[name].tolist()


# --- zip ---


def zipped(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_zip(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(ROWS, tmp_path / "t.parquet")
    lines = "\n".join(json.dumps(row) for row in ROWS.to_pylist()).encode()
    parquet = (tmp_path / "t.parquet").read_bytes()
    for name, content in (("t.csv", CSV.encode()), ("t.jsonl", lines), ("t.parquet", parquet)):
        files = {f"folder/{name}": content, "__MACOSX/._t.csv": b"x", "read me.md": b"x"}
        assert counted(zipped(tmp_path / "one.zip", **files)) == 3
    assert eq.read(tmp_path / "one.zip").source == "folder/t.parquet in one.zip"


def test_zip_of_several_tables(tmp_path: Path) -> None:
    path = zipped(tmp_path / "two.zip", **{"t.csv": CSV.encode(), "u.csv": b"a\n1\n"})
    assert counted(path, table="t.csv") == 3
    with pytest.raises(eq.TrailError, match=r"several tables; say which.*'t.csv', 'u.csv'"):
        eq.read(path)
    with pytest.raises(eq.TrailError, match=r"no table 'v.csv'. Did you mean"):
        eq.read(path, table="v.csv")


def test_zip_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(eq.TrailError, match=r"holds no table: 'a.md'.*may end in .parquet"):
        eq.read(zipped(tmp_path / "none.zip", **{"a.md": b"x"}))
    (tmp_path / "bad.zip").write_bytes(b"PK")
    with pytest.raises(eq.TrailError, match=r"bad.zip could not be read: File is not a zip file"):
        eq.read(tmp_path / "bad.zip")


# --- JSON ---


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json", "jsonl.gz"])
def test_json(tmp_path: Path, ending: str) -> None:
    rows = ROWS.to_pylist()
    text = json.dumps(rows) if ending == "json" else "\n".join(map(json.dumps, rows))
    path = tmp_path / f"t.{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    trail = eq.read(path, label="y", prediction="p")
    path.unlink()
    assert eq.describe(trail, eq.gap("accuracy", across="g")).provenance.counted == 3


def test_json_of_mixed_values(tmp_path: Path) -> None:
    lines = ['{"y":1,"s":0.5,"z":"01","m":1}', '{"y":"NA","s":"NA","z":"02","m":"x"}']
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    trail = eq.read(tmp_path / "t.jsonl")
    assert values(trail, "s") == [0.5, None]
    assert (values(trail, "z"), values(trail, "m")) == (["01", "02"], ["1", "x"])
    assert "In column 's', 1 field that says 'NA' was taken as missing." in trail.notes


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.jsonl", '{"y": 1', "t.jsonl could not be read.*Malformed"),
        ("t.json", "[1, 2]", "t.json holds no table: each line"),
    ],
)
def test_json_without_a_table(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(eq.TrailError, match=says):
        eq.read(tmp_path / name)


# --- Arrow ---


@pytest.mark.parametrize("name", ["t.feather", "t.arrow", "t.ipc"])
def test_arrow(tmp_path: Path, name: str) -> None:
    pyarrow.feather.write_feather(ROWS, tmp_path / name)
    assert counted(tmp_path / name) == 3


def test_arrow_stream(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, ROWS.schema) as stream:
        stream.write_table(ROWS)
    assert counted(path) == 3
    path.write_bytes(b"nothing")
    with pytest.raises(eq.TrailError, match=r"t.arrow could not be read"):
        eq.read(path)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("t.feather", "pyarrow", "arrow"), ("t.xlsx", "python_calamine", "excel")],
)
def test_packages_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(eq.TrailError, match=rf"pip install 'equipoise\[{extra}\]'"):
        eq.read(tmp_path / name)


# --- workbooks ---

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TIES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACK = "http://schemas.openxmlformats.org/package/2006"


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    """A workbook as Excel writes it, as far as a reader looks."""
    names = [*enumerate(sheets, 1)]
    book = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="rId{i}"/>' for i, n in names)
    ties = "".join(
        f'<Relationship Id="rId{i}" Type="{_TIES}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i, _ in names
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACK}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACK}/relationships"><Relationship Id="rId1" '
        f'Type="{_TIES}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_TIES}"><sheets>{book}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACK}/relationships">{ties}'
        "</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"/>',
    }
    for i, name in names:
        rows = "".join(_row(number, row) for number, row in enumerate(sheets[name], 1))
        files[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return zipped(path, **{name: (_HEAD + text).encode() for name, text in files.items()})


def _row(number: int, row: list[object]) -> str:
    cells = []
    for column, value in zip("ABCDEFGH", row, strict=False):
        place = f'r="{column}{number}"'
        if isinstance(value, bool):
            cells.append(f'<c {place} t="b"><v>{int(value)}</v></c>')
        elif isinstance(value, int | float):
            cells.append(f"<c {place}><v>{value}</v></c>")
        elif value is not None:
            said = escape(str(value))
            cells.append(f'<c {place} t="inlineStr"><is><t>{said}</t></is></c>')
    return f'<row r="{number}">{"".join(cells)}</row>'


TABLE: list[list[object]] = [["y", "p", "g"], [1, 0, "a"], [0, 1, "b"], [1, 1, "b"]]


def test_workbook(tmp_path: Path) -> None:
    assert counted(workbook(tmp_path / "t.xlsx", Data=TABLE)) == 3
    assert counted(workbook(tmp_path / "t.xlsx", Empty=[], Data=TABLE)) == 3
    two = workbook(tmp_path / "two.xlsx", Data=TABLE, Notes=[["a"], ["b"]])
    assert counted(two, table="Data") == 3
    with pytest.raises(eq.TrailError, match=r"several sheets; say which.*'Data', 'Notes'"):
        eq.read(two)
    with pytest.raises(eq.TrailError, match=r"no sheet 'data'. Did you mean 'Data'"):
        eq.read(two, table="data")
    with pytest.raises(eq.TrailError, match="no rows on any sheet"):
        eq.read(workbook(tmp_path / "t.xlsx", Data=[]))
    with pytest.raises(eq.OptionError, match="encoding= is for CSV files"):
        eq.read(two, table="Data", encoding="cp1252")


def test_types_of_a_workbook(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Decisions of 2024", None, None, None],
        ["y", "s", "post", "b"],
        [1, 0.5, "01234", True],
        [0, "NA", "5", False],
        [None, None, None, None],
    ]
    trail = eq.read(workbook(tmp_path / "t.xlsx", Data=rows), label="y")
    assert (values(trail, "y"), values(trail, "s")) == ([1, 0], [0.5, None])
    # text that looks like numbers is text all the same
    assert (values(trail, "post"), values(trail, "b")) == (["01234", "5"], [True, False])
    assert trail.notes == (
        "1 line before the header was skipped.",
        "In column 's', 1 field that says 'NA' was taken as missing.",
    )


def test_no_workbook(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(eq.TrailError, match=r"t.xlsx could not be read"):
        eq.read(tmp_path / "t.xlsx")


# --- SQLite ---


def database(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


PEOPLE = "CREATE TABLE people (y INTEGER, p INTEGER, g TEXT, post TEXT, s REAL, day TEXT)"
FILLED = (
    "INSERT INTO people VALUES (1, 0, 'a', '01', 0.5, '2020-01-01'), "
    "(0, 1, 'b', '2', NULL, '2020-01-02'), (1, 1, 'b', '3', 1, '2020-01-03')"
)


@pytest.mark.parametrize("name", ["t.db", "t.sqlite", "t.sqlite3", "it's.db3"])
def test_sqlite(tmp_path: Path, name: str) -> None:
    path = database(tmp_path / name, PEOPLE, FILLED)
    assert counted(path) == 3
    assert counted(f"sqlite://{path}") == 3
    trail = eq.read(path)
    assert trail.source == f"table 'people' of {name}"
    assert (values(trail, "post"), values(trail, "s")) == (["01", "2", "3"], [0.5, None, 1.0])
    assert values(trail, "day")[0] == datetime.date(2020, 1, 1)


def test_sqlite_of_several_tables(tmp_path: Path) -> None:
    path = database(
        tmp_path / "t.db",
        PEOPLE,
        FILLED,
        "CREATE VIEW some AS SELECT y, p, g FROM people",
        "CREATE TABLE pictures AS SELECT x'00FF' AS picture",
    )
    assert counted(path, table="some") == 3
    with pytest.raises(eq.TrailError, match=r"say which table with table=.*'people', 'pictures'"):
        eq.read(path)
    with pytest.raises(eq.TrailError, match=r"no table 'peopel'. Did you mean 'people'"):
        eq.read(path, table="peopel")
    with pytest.raises(eq.TrailError, match="2 bytes that are no text"):
        eq.read(path, table="pictures")


def test_no_database(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_text("y,p\n1,0\n")
    with pytest.raises(eq.TrailError, match=r"neither a database of DuckDB nor one of SQLite"):
        eq.read(tmp_path / "t.db")
    path = database(tmp_path / "u.db", PEOPLE)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(eq.TrailError, match=r"u.db could not be read"):
        eq.read(path)


def test_one_of_these_at_a_time(tmp_path: Path) -> None:
    for name in ("1.xlsx", "2.xlsx"):
        workbook(tmp_path / name, Data=TABLE)
    with pytest.raises(eq.TrailError, match=r"matches 2 files; of '.xlsx', one can be read"):
        eq.read(str(tmp_path / "*.xlsx"))
