"""Text files: header, types, missing words, and how often they are read."""

import datetime
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.trail import delimited
from equipoise.trail.engine import fetch

#: More rows than a guess at the types looks at.
MANY = 25_000


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def values(trail: eq.Trail, name: str) -> list[Any]:
    return fetch(trail.frame.select(name), "t")[name].tolist()


def types(trail: eq.Trail) -> dict[str, str]:
    return {name: str(kind).split("(")[0] for name, kind in trail.schema.items()}


@pytest.fixture(params=["kept", "left where it is"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small files are kept in memory, large ones are read by every query."""
    if request.param != "kept":
        monkeypatch.setattr(delimited, "KEPT", 0)
    return str(request.param)


@pytest.mark.parametrize(
    ("above", "skipped"),
    [
        ("", 0),
        ("Decisions of 2024\n", 1),
        ("Decisions of 2024\nmade on 2024-01-01\n\n", 3),
        ("# by: us\n# of, all\n", 2),
        ("sep=,\n", 1),
        ("Decisions,,\nof,2024,\n", 2),
    ],
)
def test_lines_above_the_header(tmp_path: Path, way: str, above: str, skipped: int) -> None:
    trail = eq.read(written(tmp_path, f"{above}y,p,g\n1,0,a\n0,1,b\n1,1,b\n"))
    assert types(trail) == {"y": "Int64", "p": "Int64", "g": "String"}
    assert values(trail, "g") == ["a", "b", "b"]
    said = "1 line before the header was skipped." if skipped == 1 else f"{skipped} lines before"
    assert [note[: len(said)] for note in trail.notes] == ([said] if skipped else [])


def test_lines_of_different_length_are_no_title(tmp_path: Path) -> None:
    path = written(tmp_path, "y,p,g\n1,0,a\n0,1,b\n" + "1,0,5,6,c\n" * 5)
    with pytest.raises(eq.TrailError, match=r"different numbers of fields \(3, 5\)"):
        eq.read(path)


def test_decimal_commas(tmp_path: Path, way: str) -> None:
    path = written(tmp_path, "y;s;t;g\n1;0,5;1;a,b\n0;-1;0,25;c\n1;1,5e2;NA;1,5\n")
    trail = eq.read(path)
    assert types(trail) == {"y": "Int64", "s": "Float64", "t": "Float64", "g": "String"}
    assert values(trail, "s") == [0.5, -1.0, 150.0]
    assert values(trail, "t") == [1.0, 0.25, None]
    assert "Decimal commas were read in 's', 't'." in trail.notes


def test_a_number_that_may_be_thousands_stays_text(tmp_path: Path) -> None:
    trail = eq.read(written(tmp_path, "y;s\n1;1.234,5\n0;0,5\n"))
    assert types(trail)["s"] == "String"


@pytest.mark.parametrize(
    ("early", "late", "kind", "last"),
    [
        ("1", "1.5", "Float64", 1.5),
        ("1", "15e-1", "Float64", 1.5),
        ("1", "x", "String", "x"),
        ("1", "NA", "Int64", None),
        ("1", "9007199254740993", "Int64", 9007199254740993),
        ("0.5", "?", "Float64", None),
        ("", "7", "Int64", 7),
        ("", "0.5", "Float64", 0.5),
        ("", "word", "String", "word"),
        ("true", "false", "Boolean", False),
        ("true", "yes", "String", "yes"),
        ("true", "N/A", "Boolean", None),
        ("2020-01-01", "2020-01-02 10:00:00", "Datetime", datetime.datetime(2020, 1, 2, 10)),
        ("2020-01-01", "-", "Date", None),
        ("03/02/2020", "13/02/2020", "Date", datetime.date(2020, 2, 13)),
        ("03/02/2020", "02/13/2020", "Date", datetime.date(2020, 2, 13)),
    ],
)
def test_the_last_row_counts_for_the_type(
    tmp_path: Path, way: str, early: str, late: str, kind: str, last: object
) -> None:
    trail = eq.read(written(tmp_path, "x,g\n" + f"{early},a\n" * MANY + f"{late},b\n"))
    assert types(trail) == {"x": kind, "g": "String"}
    rows = fetch(trail.frame, "t")
    assert [x for x, g in zip(rows["x"], rows["g"], strict=True) if g == "b"] == [last]


def test_words_for_missing(tmp_path: Path, way: str) -> None:
    text = "y,n,g,all\n1,NA,NA,NA\n0,2,Namibia,NA\n1,n/a,,NA\n1,-,x,NA\n"
    trail = eq.read(written(tmp_path, text), label="y")
    # in a column of text, and in one of which nothing else is known, a word stays a word
    assert types(trail) == {"y": "Int64", "n": "Int64", "g": "String", "all": "String"}
    assert values(trail, "n") == [None, 2, None, None]
    assert values(trail, "g") == ["NA", "Namibia", None, "x"]
    assert trail.notes == (
        "In column 'n', 3 fields that say '-', 'NA', 'n/a' were taken as missing.",
        "Every line counts as one person. If it stands for several, name 'n' as the count.",
    )


def test_no_answer_in_label_and_prediction(tmp_path: Path, way: str) -> None:
    path = written(tmp_path, "y,p,g\nyes,none,NA\nNA,some,a\nno,none,a\n")
    trail = eq.read(
        path, label="y", prediction="p", positive={"label": "yes", "prediction": "some"}
    )
    assert values(trail, "y") == ["yes", None, "no"]
    assert values(trail, "p") == ["none", "some", "none"]
    assert trail.notes == ("In column 'y', 1 field that says 'NA' was taken as missing.",)
    found = eq.describe(trail, eq.gap("accuracy", across="g"))
    assert found.provenance.excluded == {"missing label": 1}
    assert values(eq.read(path), "y") == ["yes", "NA", "no"]


def test_the_callers_words_for_missing(tmp_path: Path, way: str) -> None:
    path = written(tmp_path, "y,n,g\n1,-9,unknown\n0,2,NA\n1,NA,a\n")
    trail = eq.read(path, missing=["-9", "unknown", "NA"])
    assert (values(trail, "n"), values(trail, "g")) == ([None, 2, None], [None, None, "a"])
    assert values(eq.read(path, missing=[]), "n") == ["-9", "2", "NA"]
    with pytest.raises(eq.OptionError, match=r"missing must be a list of words.*got 'NA'"):
        eq.read(path, missing="NA")


def test_a_small_file_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path, "y,p,g,h\n1,0,a,NA\n0,1,b,1\n1,1,b,2\n")
    trail = eq.read(path, label="y", prediction="p")
    path.unlink()
    for across in ("g", "h"):
        assert eq.describe(trail, eq.gap("accuracy", across=across)).provenance.counted == 3


def test_a_large_file_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "KEPT", 0)
    path = written(tmp_path, "y,p,g\n1,0,a\n0,1,b\n1,1,b\n")
    trail = eq.read(path, label="y", prediction="p")
    path.unlink()
    with pytest.raises(eq.TrailError, match=r"t\.csv could not be read"):
        eq.describe(trail, eq.gap("accuracy", across="g"))


def test_types_do_not_depend_on_where_the_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "i,x,d,t,b,g\n1,0.5,2020-01-01,2020-01-01 10:00:00,true,a b\n-2,NA,2020-02-01,,FALSE,é\n"
    path = written(tmp_path, text)
    kept = eq.read(path)
    monkeypatch.setattr(delimited, "KEPT", 0)
    left = eq.read(path)
    assert (kept.schema, kept.notes) == (left.schema, left.notes)
    assert [*map(list, fetch(kept.frame, "t").values())] == [
        *map(list, fetch(left.frame, "t").values())
    ]


def test_files_together(tmp_path: Path, way: str) -> None:
    written(tmp_path, "y,g\n1,a\n0,b\n", "1.csv")
    written(tmp_path, "y,g\n0.5,c\n", "2.csv")
    trail = eq.read(tmp_path)
    assert types(trail) == {"y": "Float64", "g": "String"}
    assert sorted(values(trail, "y")) == [0, 0.5, 1]
    written(tmp_path, "y;g\n0.5;c\n", "2.csv")
    with pytest.raises(eq.TrailError, match="differ in how they are written"):
        eq.read(tmp_path)


@pytest.mark.parametrize("sign", ["\t", ";", "|"])
def test_other_delimiters(tmp_path: Path, sign: str) -> None:
    text = 'y,p,g\n1,0,"a b"\n0,1,c\n'.replace(",", sign)
    for name in ("t.tsv", "t.txt", "t.csv"):
        assert values(eq.read(written(tmp_path, text, name)), "g") == ["a b", "c"]


def test_names_and_quotation_marks(tmp_path: Path, way: str) -> None:
    path = written(tmp_path, 'it\'s,"a ""b""","c, d"\n1,"x, y","say ""z"""\n0,u,v\n')
    trail = eq.read(path)
    assert [*trail.schema] == ["it's", 'a "b"', "c, d"]
    assert values(trail, "c, d") == ['say "z"', "v"]


@pytest.mark.parametrize("option", ["encoding", "missing"])
def test_options_for_text_are_refused_elsewhere(tmp_path: Path, option: str) -> None:
    given: dict[str, Any] = {option: "utf-8" if option == "encoding" else ["NA"]}
    trail = eq.read(written(tmp_path, "y\n1\n"))
    for source in (trail, {"y": [1]}, fetch):
        with pytest.raises(eq.EquipoiseError):
            eq.read(source, **given)  # type: ignore[arg-type]
    with pytest.raises(eq.OptionError, match=f"{option}="):
        eq.read(trail, **given)


def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path, way: str) -> None:
    lines = "".join(f"{i % 2},{i},x\n" for i in range(MANY))
    path = written(tmp_path, f"label,late,note\n{lines}1,word,NA\n")
    with delimited.only(frozenset({"label"})):
        assert types(eq.read(path, label="label")) == {"label": "Int64"}
    # a name that is not there is told beside those that are
    with (
        delimited.only(frozenset({"label", "lable"})),
        pytest.raises(eq.TrailError, match="The table has: 'label', 'late', 'note'"),
    ):
        eq.read(path, label="lable")
    assert types(eq.read(path, label="label"))["late"] == "String"


@pytest.mark.parametrize("line", ["1,2", "1,2,3,4", '1,"2,3'])
def test_a_broken_line_is_an_error_whatever_is_asked_for(
    tmp_path: Path, way: str, line: str
) -> None:
    lines = "".join(f"{i % 2},{i},x\n" for i in range(MANY))
    path = written(tmp_path, f"label,late,note\n{lines}{line}\n{lines}")
    with delimited.only(frozenset({"label"})), pytest.raises(eq.TrailError, match="Line"):
        fetch(eq.read(path, label="label").frame, "t")
