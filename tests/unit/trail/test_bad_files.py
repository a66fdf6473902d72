"""Files that cannot be read, or cannot be read together."""

import random
import re
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

import equipoise as eq

ROWS = pa.table({"y": [1, 0, 1], "p": [1, 1, 0], "g": ["a", "b", "a"]})
CLAIM = eq.gap("accuracy", across="g")


def counted(path: str | Path) -> int:
    return eq.describe(eq.read(path, label="y", prediction="p"), CLAIM).provenance.counted


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("zero.csv", b"", "zero.csv is empty. A CSV file needs a header line and rows"),
        ("header.csv", b"y,p,g\n", "header.csv has no rows. A CSV file needs a header"),
        ("open.csv", b'y,p,g\n1,0,"abc\n1,1', "open.csv could not be read.*quotation mark"),
        ("ragged.csv", b"y,p,g\n1,0,a\n1,1\n0,0,b,c,d\n", "ragged.csv could not be read"),
        ("binary.csv", random.Random(1).randbytes(4000), "binary.csv could not be read"),
        ("zero.parquet", b"", "zero.parquet could not be read.*too small"),
        ("text.parquet", b"y,p,g\n1,0,a\n", "text.parquet could not be read"),
        ("table.docx", b"PK", "is of no kind that can be read .'.docx'.*\\.parquet"),
        ("table", b"a,b\n1,2\n", "no kind that can be read .'no suffix'"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(eq.TrailError, match=f"(?s){says}"):
        counted(tmp_path / name)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_truncated_parquet(tmp_path: Path, keep: float) -> None:
    whole = tmp_path / "whole.parquet"
    pyarrow.parquet.write_table(ROWS, whole)
    content = whole.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(eq.TrailError, match=r"cut\.parquet could not be read"):
        counted(tmp_path / "cut.parquet")


def test_damaged_parquet_pages(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pyarrow.parquet.write_table(ROWS, path)
    content = bytearray(path.read_bytes())
    content[10:60] = random.Random(2).randbytes(50)
    path.write_bytes(content)
    with pytest.raises(eq.TrailError, match=r"damaged\.parquet could not be read"):
        counted(path)


def test_nowhere(tmp_path: Path) -> None:
    with pytest.raises(eq.TrailError, match=r"No file or folder .*nowhere.csv.*Pass the path"):
        eq.read(tmp_path / "nowhere.csv")
    with pytest.raises(eq.TrailError, match=r"No file or folder .*zip"):
        eq.read(str(tmp_path / "*.zip"))
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(eq.TrailError, match="holds no CSV or Parquet file"):
        eq.read(tmp_path)


def test_folder_of_different_schemas(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"a": [1.5], "c": ["x"]}), tmp_path / "2.parquet")
    says = r"do not share one schema: 1\.parquet and 2\.parquet differ in 'a', 'b', 'c'.*rewrite"
    with pytest.raises(eq.TrailError, match=says):
        eq.read(tmp_path)


def test_folder_of_different_headers(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n1,2\n")
    with pytest.raises(eq.TrailError, match=r"1\.csv and 2\.csv differ in 'a', 'b'"):
        eq.read(tmp_path)
    (tmp_path / "2.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(eq.TrailError, match="differ in 'c'"):
        eq.read(tmp_path)


def test_folder_of_different_kinds(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(ROWS, tmp_path / "1.parquet")
    (tmp_path / "2.csv").write_text("y,p,g\n1,1,a\n")
    with pytest.raises(eq.TrailError, match=r"different kinds: '.csv', '.parquet'.*glob"):
        eq.read(tmp_path)
    assert counted(tmp_path / "*.csv") == 1


@pytest.mark.parametrize("name", ["odd [1] name", "it's", "a*b", "what?", "größe"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    pyarrow.parquet.write_table(ROWS, tmp_path / f"{name}.parquet")
    assert counted(tmp_path / f"{name}.parquet") == 3
    (tmp_path / f"{name}.csv").write_text("y,p,g\n1,1,a\n0,0,b\n")
    assert counted(str(tmp_path / f"{name}.csv")) == 2


def test_folder_within_folders_and_partitions(tmp_path: Path) -> None:
    for part in ("year=2020", "year=2021"):
        (tmp_path / part).mkdir()
        pyarrow.parquet.write_table(ROWS, tmp_path / part / "x.parquet")
    trail = eq.read(tmp_path, label="y", prediction="p")
    found = eq.describe(trail, eq.gap("accuracy", across="year"))
    assert [(row.group, row.n) for row in found.rows] == [("year 2020", 3), ("year 2021", 3)]


def test_words_stay_words_in_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y,p,g\nyes,true,t\nno,false,f\nyes,true,t\n")
    trail = eq.read(tmp_path / "t.csv", label="y", prediction="p", positive="yes")
    found = eq.describe(trail, CLAIM)
    assert (found.overall, [row.group for row in found.rows]) == (1.0, ["f", "t"])


def test_semicolons_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\ufeffy;p;g\n1;1;a\n0;1;b\n", encoding="utf-8")
    assert counted(tmp_path / "t.csv") == 2


def test_a_late_word_does_not_end_an_audit(tmp_path: Path) -> None:
    lines = ["y,p,g", *["1,1,7"] * 30_000, "0,1,n/a"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert counted(tmp_path / "t.csv") == 30_001


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\n\n", "is empty"),
        ("a,b,c\n1,2,3\n1,2\n", "Line 3 has 2 fields where the first has 3"),
        ('a,b\n"1\n2",x\n1,2,3\n', "different numbers of fields (2, 3)"),
        ("x,1,0,1\ny,0,1,1\n", "seems to be a row, not the names of columns: 'x', '1', '0', '1'"),
    ],
)
def test_what_is_wrong_with_lines_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(eq.TrailError, match=re.escape(said)):
        eq.read(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.xlsx"])
def test_a_file_of_another_kind_than_its_name_says(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("race,label\na,1\n")
    with pytest.raises(eq.TrailError, match="of another kind than its name says: save it again"):
        eq.read(tmp_path / name)


def test_words_are_named_where_it_is_not_said_which_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("deny,race\nno,a\nyes,b\n")
    trail = eq.read(path, prediction="deny")
    with pytest.raises(eq.TrailError, match=r"holds text: 'no', 'yes'\. Pass positive="):
        eq.describe(trail, eq.gap("selection_rate", across="race"))
