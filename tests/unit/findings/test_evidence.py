"""Evidence: one verdict for many findings, and files that cannot be changed unnoticed."""

import copy
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.cli.common import telling
from equipoise.findings.evidence import first_headlines, headlines
from equipoise.findings.finding import Finding
from equipoise.findings.words import together
from equipoise.report.ask import tables_of

KEPT, EXCEEDED, UNDETERMINED = eq.Verdict.KEPT, eq.Verdict.EXCEEDED, eq.Verdict.UNDETERMINED
TRAIL, CLAIM = eq.datasets.compas(), eq.gap("false_positive_rate", across="race")


@pytest.fixture(scope="module")
def evidence() -> eq.Evidence:
    return eq.Evidence.of(
        eq.flag(TRAIL, CLAIM, above=0.05, rng=1),
        eq.describe(TRAIL, CLAIM),
        eq.certify(TRAIL, CLAIM, tolerance=0.9, rng=1),
        eq.certify(TRAIL, CLAIM, tolerance=0.2, rng=1),
        title="COMPAS",
    )


CONCLUSIONS = (KEPT, EXCEEDED, UNDETERMINED, None)


@pytest.mark.parametrize("said", list(itertools.product(CONCLUSIONS, repeat=3)))
def test_one_violation_outweighs_everything_and_doubt_outweighs_the_rest(said: Any) -> None:
    if EXCEEDED in said:
        assert together(said) is EXCEEDED
    elif UNDETERMINED in said or KEPT not in said:
        assert together(said) is UNDETERMINED
    else:
        assert together(said) is KEPT


def test_nothing_at_all_is_undetermined() -> None:
    assert eq.Evidence.of().verdict is UNDETERMINED


def test_it_says_how_many_findings_show_what(evidence: eq.Evidence) -> None:
    assert [entry.finding.conclusion for entry in evidence.entries] == [
        EXCEEDED, None, KEPT, UNDETERMINED,
    ]  # fmt: skip
    verdict, counts, asked = evidence.sentences()
    assert verdict.startswith("A violation is shown")
    assert counts == (
        "4 findings: 1 shows a violation, 1 shows that the limit is kept, 1 cannot tell, "
        "1 sets no limit."
    )
    assert asked.startswith("None of them was fixed in a plan beforehand")


def test_findings_are_named_by_kind_and_number(evidence: eq.Evidence) -> None:
    names = [entry.name for entry in evidence.entries]
    assert names == ["flags", "description", "bounds", "bounds 2"]
    assert evidence.entry("bounds 2").finding is evidence.entries[3].finding
    with pytest.raises(eq.EquipoiseError, match=r"'bound' does not exist. Did you mean 'bounds'"):
        evidence.entry("bound")


def test_later_findings_are_marked_and_names_are_not_taken_twice(evidence: eq.Evidence) -> None:
    found = evidence.entries[1].finding
    more = evidence.add(found, "once more")
    assert more.entries[:4] == evidence.entries
    assert (more.entries[4].name, more.entries[4].asked) == ("once more", "exploratory")
    with pytest.raises(eq.EquipoiseError, match="There is a finding 'once more' already"):
        more.add(found, "once more")
    with pytest.raises(eq.EquipoiseError, match="Evidence is made of findings"):
        eq.Evidence.of(5)  # type: ignore[arg-type]


def test_it_survives_being_stored(evidence: eq.Evidence, tmp_path: Path) -> None:
    again = eq.Evidence.load(evidence.save(tmp_path / "evidence.json"))
    assert again == evidence
    assert again.contradictions() == ()
    assert again.stated == {
        "verdict": "exceeded", "fingerprint": evidence.fingerprint, "seal": evidence.seal,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["verdict", "fingerprint", "seal"])
def test_what_a_file_states_of_itself_must_follow_from_it(evidence: eq.Evidence, name: str) -> None:
    data = {**evidence.to_dict(), name: "kept"}
    with pytest.raises(eq.EquipoiseError, match=f"its {name} is stated as 'kept'"):
        eq.Evidence.from_dict(data)
    lenient = eq.Evidence.from_dict(data, strict=False)
    assert lenient.contradictions() == ((name, "kept", evidence.to_dict()[name]),)


def test_any_changed_number_breaks_the_seal(evidence: eq.Evidence) -> None:
    for change in ("title", "created", "value", "guarantee"):
        data = copy.deepcopy(json.loads(evidence.to_json()))
        if change == "value":
            data["entries"][1]["finding"]["rows"][0]["value"] += 1e-9
        elif change == "guarantee":
            data["entries"][1]["finding"]["guarantee"] += " always"
        else:
            data[change] += "x"
        with pytest.raises(eq.EquipoiseError, match="was changed after it was written: its seal"):
            eq.Evidence.from_dict(data)


def test_the_fingerprint_is_that_of_the_data_in_any_order(evidence: eq.Evidence) -> None:
    other = evidence.add(eq.describe(TRAIL, eq.gap("accuracy", across="sex")), "other")
    assert other.fingerprint != evidence.fingerprint
    turned = dataclasses.replace(other, entries=other.entries[::-1])
    assert turned.fingerprint == other.fingerprint
    assert turned.seal != other.seal


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": "equipoise-evidence/9"}, "follows 'equipoise-evidence/9'; this version"),
        ({"extra": 1}, "it lacks none and has the unknown fields 'extra'"),
        ({"plan_hash": 5}, "fields of the wrong type: 'plan_hash'"),
        ({"versions": None}, "fields of the wrong type: 'versions'"),
        ({"entries": "none", "title": 3}, "fields of the wrong type: 'title', 'entries'"),
        ({"entries": [{"name": "a"}]}, "needs name, asked and finding"),
        (
            {"entries": [{"name": "a", "asked": "later", "finding": {}}]},
            "'later' does not exist. There is: 'confirmatory', 'exploratory'",
        ),
        (
            {"entries": [{"name": "a", "asked": "exploratory", "finding": {}}]},
            "finding 'a': None is not a kind of finding",
        ),
    ],
)
def test_what_is_no_evidence(evidence: eq.Evidence, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=says):
        eq.Evidence.from_dict({**evidence.to_dict(), **changes})


def test_what_is_not_even_a_file_of_ours(evidence: eq.Evidence) -> None:
    for text, says in (
        ("{", "it is no JSON"),
        ("[]", "does not name its schema"),
        ('{"title": NaN}', "holds no NaN"),
    ):
        with pytest.raises(eq.EquipoiseError, match=says):
            eq.Evidence.from_json(text)
    data = evidence.to_dict()
    del data["seal"]
    with pytest.raises(eq.EquipoiseError, match="it lacks 'seal'"):
        eq.Evidence.from_dict(data)


def test_the_first_lines_go_by_strength_of_evidence_across_metrics() -> None:
    metrics = ("false_negative_rate", "selection_rate", "false_positive_rate")
    claims = [eq.gap(metric, across="race") for metric in metrics]
    audits: tuple[list[Finding], ...] = (
        [eq.certify(TRAIL, claim, tolerance=0.01, rng=1) for claim in claims],
        [eq.flag(TRAIL, claim, outside=(-0.01, 0.01), rng=1) for claim in claims],
    )
    for found in audits:
        assert all(one.conclusion is EXCEEDED for one in found)
        strength = {one.headline(): one.sureness for one in found}
        assert len(set(strength.values())) == len(claims)
        # the order in which they were asked says nothing
        for asked in itertools.permutations(found):
            assert headlines(asked) == sorted(strength, key=lambda said: strength[said])


def test_lines_that_are_left_out_are_counted() -> None:
    names = ("accuracy", "false_positive_rate", "false_negative_rate")
    found = [eq.certify(TRAIL, eq.gap(m, across="race"), tolerance=0.01, rng=1) for m in names]
    every = headlines(found)
    assert first_headlines(found, 3) == every
    assert first_headlines(found, 1) == [every[0], "… and 2 more, with the findings below."]
    many = [
        eq.certify(TRAIL, eq.gap("accuracy", across="race"), tolerance=i / 100, rng=1)
        for i in range(1, 4)
    ]
    others = [eq.gap(m, across=across) for m in names for across in ("race", "sex")]
    page = eq.report(*many, *(eq.certify(TRAIL, claim, rng=1) for claim in others)).html
    assert "more, with the findings below." in page


def test_several_metrics_stand_in_one_table_by_evidence() -> None:
    joint = eq.flag(TRAIL, eq.equalized_odds(across=["race", "sex"]), rng=1)
    assert isinstance(joint, eq.findings.Joint)
    rows = joint.by_evidence()
    p = []
    for row in rows:
        part = joint.part(row.metric)
        assert isinstance(part, eq.findings.Flags)
        p.append(next(one.p or 1.0 for one in part.rows if one.group == row.group))
    assert p == pytest.approx(sorted(p), rel=1e-9)
    assert p[0] < p[1] < 1e-9
    assert [row.group for row in rows] != [row.group for row in joint.rows]
    (table, *_) = tables_of(joint)
    assert [cells[0].text for cells in table.rows] == [row.group for row in rows]
    assert telling(joint) == rows[: len(telling(joint))]
