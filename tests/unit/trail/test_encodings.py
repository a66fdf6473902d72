"""Text in other encodings than UTF-8."""

import gzip
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.trail.delimited import BEGINNING, encoding_of
from equipoise.trail.engine import fetch

TEXT = "y,p,größe\n1,0,é\n0,1,ü\n"


def names(trail: eq.Trail) -> list[str]:
    return fetch(trail.frame.select("größe"), "t")["größe"].tolist()


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_encodings_are_found_out(tmp_path: Path, encoding: str, ending: str) -> None:
    path, content = tmp_path / f"t.{ending}", TEXT.encode(encoding)
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    trail = eq.read(path, label="y", prediction="p")
    assert names(trail) == ["é", "ü"]
    assert any("was read as" in note for note in trail.notes) == ("utf-8" not in encoding)
    # whoever names it is not told about it
    assert eq.read(path, encoding=encoding).notes == ()


def test_signs_of_cp1252_and_latin_1_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("y,größe\n1,€ é\n".encode("cp1252"))
    (tmp_path / "b.csv").write_bytes("y,größe\n1,\x81 é\n".encode("latin-1"))
    assert encoding_of(str(tmp_path / "a.csv")) == "cp1252"
    assert names(eq.read(tmp_path / "a.csv")) == ["€ é"]
    assert encoding_of(str(tmp_path / "b.csv")) == "latin-1"


def test_a_late_sign_is_enough(tmp_path: Path) -> None:
    plain = b"1,0,a\n" * (BEGINNING // 6 + 10)
    (tmp_path / "t.csv").write_bytes(b"y,p,g\n" + plain + "0,1,ü\n".encode("cp1252"))
    trail = eq.read(tmp_path / "t.csv", label="y", prediction="p")
    assert "read as cp1252" in trail.notes[0]
    found = eq.describe(trail, eq.gap("accuracy", across="g"))
    assert [row.group for row in found.rows] == ["a", "ü"]


def test_a_sign_cut_in_two_by_the_sample_is_utf_8(tmp_path: Path) -> None:
    content = b"g\n" + b"x" * (BEGINNING - 3) + "é\n".encode()
    (tmp_path / "t.csv").write_bytes(content)
    assert encoding_of(str(tmp_path / "t.csv")) == "utf-8"


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        ("utf-16", "t.csv could not be read: it is not written in utf-16.*Pass encoding="),
        ("utf-8", "t.csv could not be read: it is not written in utf-8. It may be cp1252"),
        ("ascii", "not written in ascii"),
    ],
)
def test_wrong_encodings(tmp_path: Path, encoding: str, says: str) -> None:
    (tmp_path / "t.csv").write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(eq.TrailError, match=says):
        eq.read(tmp_path / "t.csv", encoding=encoding)


@pytest.mark.parametrize("encoding", ["nonsense", "hex", "", 3])
def test_encodings_that_do_not_exist(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_text(TEXT, encoding="utf-8")
    with pytest.raises(eq.OptionError, match=r"encoding=.* is not known. There is 'utf-8'"):
        eq.read(tmp_path / "t.csv", encoding=encoding)
