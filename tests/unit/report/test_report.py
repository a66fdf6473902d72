"""Reports: what goes in, what comes out, and what cannot get out."""

import base64
import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

import equipoise as eq
from equipoise.findings import Verdict
from equipoise.findings.describe import DescribedGroup
from equipoise.findings.evidence import assemble
from equipoise.findings.words import clipped, tidy
from equipoise.report.ask import MOST_ROWS, strongest, tables_of, tidied
from equipoise.report.page import embedded


@pytest.fixture(scope="module")
def bounds() -> eq.Finding:
    claim = eq.gap("false_positive_rate", across=eq.intersections("race", "sex"))
    found: eq.Finding = eq.certify(eq.datasets.compas(), claim, tolerance=0.1, rng=7)
    return found


@pytest.fixture(scope="module")
def page(bounds: eq.Finding) -> str:
    return eq.report(bounds, title="COMPAS").html


def test_it_is_a_frozen_value_that_saves_itself(bounds: eq.Finding, tmp_path: Path) -> None:
    made = eq.report(bounds)
    assert made.title == "Audit"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.html = ""  # type: ignore[misc]
    path = made.save(tmp_path / "new folder" / "report.html")
    assert path.read_text(encoding="utf-8") == made.html
    assert list(path.parent.iterdir()) == [path]
    assert "<iframe" in made._repr_html_()
    assert "<script" not in made._repr_html_()
    assert "html" not in repr(made)


@pytest.mark.parametrize("given", [(), (5,), ("flags",), (None,)])
def test_what_is_no_finding_is_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(eq.OptionError, match=r"report takes findings, such as flag\(…\) returns"):
        eq.report(*given)


def test_evidence_comes_alone(bounds: eq.Finding) -> None:
    evidence = eq.Evidence.of(bounds)
    with pytest.raises(eq.OptionError, match="got Evidence, Bounds"):
        eq.report(evidence, bounds)
    assert eq.report(evidence, title="Other").title == "Other"


@pytest.mark.parametrize("least", [0, 1, 2.5, "10", True])
def test_strange_suppression_is_refused(bounds: eq.Finding, least: Any) -> None:
    with pytest.raises(eq.OptionError, match="suppress must be a whole number"):
        eq.report(bounds, suppress=least)


def test_nothing_is_fetched_from_anywhere(page: str) -> None:
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["'](?!#)""", own)
    assert "url(" not in own
    assert "@import" not in own
    assert "default-src &#39;none&#39;" in own
    assert "unsafe-eval" not in own


def test_the_policy_names_exactly_the_scripts_that_are_there(page: str) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    # charts of groups are part of the page, and need no library
    assert len(scripts) == 1
    assert re.findall(r"sha256-([\w+/=]+)", page[:1500]) == digests


def test_data_cannot_end_the_element_they_stand_in() -> None:
    nasty = {"</script>": "<!--\u2028&]]>"}
    text = str(embedded(nasty))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == nasty
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded(float("nan"))


def test_the_evidence_is_told(bounds: eq.Finding) -> None:
    flags = eq.flag(eq.datasets.compas(), eq.gap("accuracy", across="race"), above=0.3, rng=1)
    found = [("limits", "confirmatory", bounds), ("later", "exploratory", flags)]
    evidence = assemble("Both", found, plan={}, plan_hash="abc123")  # type: ignore[arg-type]
    text = eq.report(evidence).html
    assert "abc123" in text
    assert "Confirmatory: fixed in the plan" in text
    assert "Exploratory: asked after looking" in text
    assert "1 of them was fixed in a plan beforehand." in text
    assert evidence.fingerprint in text
    assert all(f"{name} {number}" in text for name, number in evidence.versions.items())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Odd(eq.Finding):
    """A kind of finding nobody has heard of: no chart, no note."""

    kind: ClassVar[str] = "odd"
    row_type: ClassVar[type] = DescribedGroup
    columns: ClassVar[tuple[str, ...]] = ("group", "n", "value", "note")

    def sentences(self) -> tuple[str, ...]:
        return ("It is odd.",)


@pytest.mark.parametrize("rows", [0, 3])
def test_findings_without_chart_note_or_rows_are_shown(bounds: eq.Finding, rows: int) -> None:
    shared = {f.name: getattr(bounds, f.name) for f in dataclasses.fields(eq.Finding)}
    found = Odd(**{**shared, "rows": bounds.rows[:rows]})
    text = eq.report(found).html
    assert "It is odd." in text
    assert "<figure" not in text
    assert ("<table" in text) is bool(rows)
    assert "vegaEmbed" in text  # only as a name in the page's own script
    assert len(text) < 100_000


def test_no_finding_at_all() -> None:
    text = eq.report(eq.Evidence.of(title="Empty")).html
    assert "There is no finding in this report." in text
    assert "Undetermined" in text


def test_long_tables_are_cut_and_say_so() -> None:
    row = DescribedGroup(
        group="g", where={}, n=1, value=0.5, lower=0.1, upper=0.9, target=0.5, disparity=0.0
    )
    rows = tuple(
        dataclasses.replace(row, group=f"g{i}", n=i, lower=i / 5000) for i in range(MOST_ROWS + 500)
    )
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="sex")
    found = dataclasses.replace(eq.describe(trail, claim), rows=rows)
    (table,) = tables_of(found)
    assert (len(table.rows), table.total) == (MOST_ROWS, MOST_ROWS + 500)
    assert [cells[0].text for cells in table.rows[:2]] == ["g500", "g501"]
    text = eq.report(found).html
    assert "The table has the 2,000 rows with the strongest" in text
    assert "of 2,500" in text


def test_the_strongest_rows_are_those_with_small_p_values() -> None:
    flags = eq.flag(
        eq.datasets.compas(), eq.gap("accuracy", across=eq.intersections("race", "age")), rng=1
    )
    kept = strongest(flags.rows, 5)
    best = sorted(row.p for row in flags.rows if row.p is not None)[:5]
    assert sorted(row.p for row in kept if row.p is not None) == best


def test_names_are_escaped_in_text_and_attributes() -> None:
    found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    nasty = "<img src=x onerror=alert(1)>\"'&" + "x" * 200
    row = dataclasses.replace(found.rows[0], group=nasty, note=nasty)
    text = eq.report(dataclasses.replace(found, rows=(row,), question=nasty), title=nasty).html
    own = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    assert "<img" not in own
    assert "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;x" in own


def test_long_texts_keep_their_end() -> None:
    assert clipped("a" * 100 + "b" * 100).endswith("b" * 45)


def test_verdicts_are_told_in_signs_as_well() -> None:
    assert {str(v) for v in Verdict} == {"kept", "exceeded", "undetermined"}
    claim = eq.gap("false_positive_rate", across=eq.intersections("sex", "age"))
    text = eq.report(eq.certify(eq.datasets.compas(), claim, tolerance=0.1, rng=1)).html
    assert all(f">{word}</bdi>" in text for word in ("✓ kept", "✕ exceeded"))
    assert "Limit exceeded" in text


def test_text_is_made_fit_to_show() -> None:
    assert tidy("a\r\n\tb\u2028c") == "a b c"
    assert tidy("\x1b[31m\u202eevil\ud800") == "�[31m�evil�"
    assert tidy("שלום 👩🏽‍⚖️") == "שלום 👩🏽‍⚖️"
    assert len(clipped("x" * 10_000)) == 120
    assert clipped("a" * 200 + "1") != clipped("a" * 200 + "2")
    assert tidied({"a": ["x" * 999, 5, None]}) == {"a": [clipped("x" * 999), 5, None]}


def test_lone_surrogates_do_not_break_the_file(tmp_path: Path) -> None:
    found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    row = dataclasses.replace(found.rows[0], group="\ud800", note="\udfff")
    eq.report(dataclasses.replace(found, rows=(row,)), title="\ud800").save(tmp_path / "r.html")


def test_every_table_and_axis_about_shares_is_in_per_cent_and_points() -> None:
    trail = eq.datasets.compas()
    claim = eq.gap("accuracy", across="race")
    found: list[Any] = [
        eq.certify(trail, eq.equalized_odds(across="race"), rng=7),
        eq.joint_test(trail, claim, rng=7),
        eq.joint_test(trail, claim, method="likelihood"),
        eq.shift(trail, eq.gap("accuracy"), over=eq.gaussian("age"), rng=7),
    ]
    for finding in found:
        heads = [head for head, _ in tables_of(finding)[0].heads]
        assert {"value (%)", "disparity (points)"} <= {*heads}
        spec = json.dumps(finding.plot().to_dict())
        assert "disparity (points)" in spec
        assert "100 * datum.value" in spec
    assert "effective (rows)" in heads
    scored = eq.read(trail, **{**dict(trail.roles), "score": "risk"})
    residual = eq.joint_test(scored, eq.gap("residual", across="race"), rng=7)
    assert "disparity" in [head for head, _ in tables_of(residual)[0].heads]


def test_a_bound_that_rounds_to_nothing_is_said_in_words() -> None:
    found = eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="race"), rng=7)
    above = max(found.rows, key=lambda row: row.disparity or -1.0)
    near = dataclasses.replace(above, lower=0.0003)
    assert "that it is above at all is shown" in dataclasses.replace(found, rows=(near,)).headline()
