"""Findings: read, tabulated, stored and restored."""

import json
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import equipoise as eq
from equipoise.findings import Description, from_dict, from_json
from equipoise.findings.finding import _KINDS, _readers, text_table
from equipoise.findings.words import (
    amount,
    cell_text,
    difference,
    left_out,
    level_text,
    percent,
    plural,
    unsigned,
)

NASTY = "<script>alert('x')</script> & \"q\""


def finding(**changes: Any) -> Description:
    table = pl.DataFrame(
        {
            "y": [1, 0, 1, 0, 1, 0, None],
            "p": [1, 1, 0, 0, 1, 0, 1],
            "n": ["a", "b", "a", None, NASTY, NASTY, "a"],
            "k": [1.0, 2.5, 1.0, 1.0, None, 2.5, 1.0],
            "flag": [True, False, True, None, True, False, True],
        }
    )
    claim = eq.gap("false_positive_rate", across=eq.intersections("n", "k", "flag", depth=2))
    return eq.describe(eq.read(table, label="y", prediction="p"), claim, **{"small": 2, **changes})


def test_html_is_escaped() -> None:
    html = finding()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;q&quot;" in html
    assert html.count("<tr>") == len(finding()) + 1


def test_str_is_sentences_and_a_table() -> None:
    text = str(finding())
    assert text.startswith("The false positive rate is 33.3 % over 3 rows of a polars table.")
    assert "n missing" in text
    head = next(line for line in text.splitlines() if line.startswith("group"))
    assert head.split() == ["group", "n", "value", "lower", "upper", "disparity", "note"]


def test_long_findings_are_cut() -> None:
    table = pl.DataFrame({"y": [0, 1] * 30, "p": [0, 1] * 30, "a": range(60)})
    found = eq.describe(eq.read(table, label="y", prediction="p"), eq.gap("accuracy", across="a"))
    assert len(found) == 60
    assert str(found).endswith("… and 20 more")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", None])
def test_to_frame(backend: str | None) -> None:
    found = finding()
    frame = found.to_frame(backend)
    kinds = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.Table,
        None: pd.DataFrame,
    }
    assert isinstance(frame, kinds[backend])
    plain = pl.DataFrame(frame) if backend != "pyarrow" else pl.DataFrame(pl.from_arrow(frame))
    # A column called n exists already, so the attribute of that name moves aside.
    assert plain.columns[:2] == ["group", "n"]
    assert {"where n", "k", "flag"} <= set(plain.columns)
    assert plain.height == len(found)
    assert plain["n"].to_list() == [row.n for row in found.rows]
    assert plain["group"].to_list() == [row.group for row in found.rows]
    values = [None if v is None or v != v else v for v in plain["value"].to_list()]
    assert values == [row.value for row in found.rows]


def test_to_frame_of_ranges() -> None:
    claim = eq.gap("accuracy", across=eq.intersections("sex", eq.binned("decile_score", cuts=(5,))))
    frame = eq.describe(eq.datasets.compas(), claim).to_frame("polars")
    assert '{"below": 5.0}' in frame["decile_score"].to_list()


def test_unknown_backend() -> None:
    with pytest.raises(
        eq.OptionError, match="pandas, polars, pyarrow, and installed; got 'pnadas'"
    ):
        finding().to_frame("pnadas")


def test_round_trip_and_strict_json() -> None:
    found = finding()
    text = found.to_json(indent=1)
    assert from_json(text) == found
    assert from_dict(found.to_dict()) == found
    assert "NaN" not in text
    assert json.loads(text)["kind"] == "description"
    claim = eq.from_plan(found.claim)
    assert isinstance(claim, eq.Claim)
    assert claim.metric is eq.false_positive_rate


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "This is not a finding"),
        ("[]", "not a finding but a list"),
        ("5", "not a finding but a int"),
        ("{}", "None is not a kind of finding. There is: .*description"),
        ('{"kind": "opinion"}', "'opinion' is not a kind of finding"),
        (
            '{"kind": "description"}',
            "description lacks the fields 'claim', 'question', 'guarantee'",
        ),
        (
            '{"kind": "description", "provenance": {}}',
            "'provenance' lacks the fields 'version', 'source'",
        ),
        ('{"kind": "description", "rows": 5}', "must be a list; got 5"),
        ('{"kind": "description", "rows": [5]}', "must be a mapping"),
        (
            '{"kind": "description", "rows": [{"group": "a", "zz": 1}]}',
            "row field 'zz' does not exist",
        ),
    ],
)
def test_what_is_no_finding(text: str, says: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=says):
        from_json(text)


def test_lacking_and_unknown_fields() -> None:
    data = finding().to_dict()
    with pytest.raises(
        eq.EquipoiseError, match=r"field 'levl' does not exist here. Did you mean 'level'"
    ):
        from_dict({**data, "levl": 1})
    del data["level"]
    with pytest.raises(eq.EquipoiseError, match="description lacks the field 'level'"):
        from_dict(data)


@pytest.mark.parametrize(
    ("field", "wrong", "says"),
    [
        ("level", "0.9", r"description field 'level' must be a number; got '0.9'"),
        ("level", True, "'level' must be a number; got True"),
        ("level", None, "'level' must be a number; got None"),
        ("small", 2.0, "'small' must be a whole number; got 2.0"),
        ("share", 1, "'share' must be true or false; got 1"),
        ("metric", 5, "'metric' must be text; got 5"),
        ("assumptions", "none", "'assumptions' must be a list; got 'none'"),
        ("assumptions", [1], "'assumptions' must be text; got 1"),
        ("claim", 5, "'claim' must be a mapping; got 5"),
    ],
)
def test_fields_of_the_wrong_type_are_named(field: str, wrong: Any, says: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=says):
        from_dict({**finding().to_dict(), field: wrong})


@pytest.mark.parametrize(
    ("field", "wrong", "says"),
    [
        ("n", "many", "description row field 'n' must be a whole number; got 'many'"),
        ("value", "0.5", "description row field 'value' must be a number; got '0.5'"),
        ("where", ["a"], "description row field 'where' must be a mapping"),
    ],
)
def test_fields_of_rows_are_checked_too(field: str, wrong: Any, says: str) -> None:
    data = finding().to_dict()
    data["rows"][0][field] = wrong
    with pytest.raises(eq.EquipoiseError, match=says):
        from_dict(data)


def test_parts_words_and_counts_are_checked() -> None:
    claim = eq.gap("accuracy", across="race")
    data = eq.certify(eq.datasets.compas(), claim, tolerance=0.1, rng=1).to_dict()
    for changes, says in (
        ({"side": "left"}, "'side' must be one of 'lower', 'upper', 'both'; got 'left'"),
        ({"limits": [0.0]}, r"'limits' must be a list of 2; got \[0.0\]"),
        ({"rows": [{**data["rows"][0], "verdict": "yes"}]}, "'verdict' must be one of 'kept'"),
        ({"quantiles": [1.0, "2"]}, "'quantiles' must be a number; got '2'"),
        ({"recipe": [1]}, r"'recipe' must be a mapping; got \[1\]"),
        (
            {"provenance": {**data["provenance"], "excluded": {"no label": "3"}}},
            "'excluded' field 'no label' must be a whole number; got '3'",
        ),
    ):
        with pytest.raises(eq.EquipoiseError, match=says):
            from_dict({**data, **changes})


def test_long_names_and_values_do_not_bury_the_message() -> None:
    data, long = finding().to_dict(), "x" * 5000
    for wrong in ({long: 1}, {"level": long}, {"claim": [long]}, {"rows": long}):
        with pytest.raises(eq.EquipoiseError) as refused:
            from_dict({**data, **wrong})
        assert len(str(refused.value)) < 1000


def test_every_kind_of_finding_can_be_read_back() -> None:
    kinds: Any = _KINDS
    for cls in kinds.values():
        readers, needed = _readers(cls)
        assert set(readers) >= needed >= {"claim", "rows", "provenance"}
        assert _readers(cls.row_type)[1]


def test_findings_cannot_be_changed() -> None:
    found = finding()
    with pytest.raises((AttributeError, TypeError)):
        found.level = 0.5  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        found.rows[0].n = 3  # type: ignore[misc]


def test_words() -> None:
    assert (plural(1, "row"), plural(0, "row"), plural(2, "child", "children")) == (
        "1 row",
        "0 rows",
        "2 children",
    )
    assert (percent(0.5), amount(None, True), amount(0.5, False)) == (
        "50.0 %",
        "not available",
        "0.5",
    )
    assert [level_text(v) for v in (0.9, 0.95, 0.995, 0.9999)] == [
        "90 %",
        "95 %",
        "99.5 %",
        "99.99 %",
    ]
    assert [difference(v, True) for v in (0.1, -0.1, -0.0001)] == [
        "+10.0 points",
        "-10.0 points",
        "+0.0 points",
    ]
    assert [unsigned(v, True) for v in (0.05, -0.05)] == ["5.0 points", "5.0 points"]
    assert left_out({}, 0) == "No row was left out."
    assert left_out({"missing label": 1}, 1) == (
        "1 row was left out (1 missing label); the metric does not count on 1 other."
    )
    assert left_out({}, 2) == "No row was left out; the metric does not count on 2 rows."


def test_table_cells() -> None:
    assert [cell_text(v) for v in (None, "", True, 1234, 0.0, 1e-7, 2.5e6, "a\nb")] == [
        "–", "–", "yes", "1,234", "0.000", "1e-07", "2.5e+06", "a\nb",
    ]  # fmt: skip
    row = finding().rows[0]
    assert "\n" not in text_table([row], ["group"]).split("\n", 1)[1]
