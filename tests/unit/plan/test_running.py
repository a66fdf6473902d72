"""Plans performed, judged, and performed again."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings.evidence import Evidence
from equipoise.plan import Exit, Plan, TrailPlan, gate, run, verify
from equipoise.plan.run import columns_read, open_trail

PLAN = """
equipoise: 1
title: Decisions
seed: 7
trail: {source: decisions.csv, label: y, prediction: d}
audits:
  - audit: flag
    claim: {kind: gap, metric: false_positive_rate, across: [g, h]}
    above: 0.05
  - audit: certify
    name: bounds
    claim: {kind: gap, metric: false_positive_rate, across: [g, h]}
    tolerance: 0.3
    resamples: 200
  - audit: joint_test
    claim: {kind: gap, metric: accuracy, across: [g]}
  - audit: summarize
    metric: selection_rate
    across: [g]
    resamples: 50
"""


def _table(rows: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(11)
    return pl.DataFrame(
        {
            "y": rng.integers(0, 2, rows),
            "d": rng.integers(0, 2, rows),
            "g": rng.choice(["a", "b", "c"], rows),
            "h": rng.choice(["x", "y"], rows),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _table().write_csv(tmp_path / "decisions.csv")
    (tmp_path / "audit.yaml").write_text(PLAN)
    return tmp_path


def _run(folder: Path) -> Evidence:
    return run(Plan.load(folder / "audit.yaml"), folder=folder)


def test_a_plan_gives_what_python_gives(folder: Path) -> None:
    evidence = _run(folder)
    trail = eq.read(folder / "decisions.csv", label="y", prediction="d")
    claim = eq.gap("false_positive_rate", across=["g", "h"])
    by_hand = eq.certify(trail, claim, tolerance=0.3, resamples=200, rng=7)
    assert evidence.entry("bounds").finding == by_hand
    assert [entry.name for entry in evidence.entries] == [
        "flag",
        "bounds",
        "joint test",
        "summarize",
    ]
    assert all(entry.asked == "confirmatory" for entry in evidence.entries)
    assert evidence.plan_hash == Plan.load(folder / "audit.yaml").hash


def test_evidence_comes_back_from_its_file(folder: Path) -> None:
    evidence = _run(folder)
    path = evidence.save(folder / "out" / "evidence.json")
    again = Evidence.load(path)
    assert again == evidence
    assert again.seal == evidence.seal
    assert sorted(p.name for p in path.parent.iterdir()) == ["evidence.json"]


def test_row_order_and_engine_leave_the_fingerprint_alone(folder: Path) -> None:
    first = _run(folder)
    shuffled = _table().sample(fraction=1.0, shuffle=True, seed=3)
    shuffled.write_parquet(folder / "shuffled.parquet")
    second = run(
        Plan.load(folder / "audit.yaml"), folder=folder, data=str(folder / "shuffled.parquet")
    )
    assert first.fingerprint == second.fingerprint
    assert verify(first, folder=folder, data=str(folder / "shuffled.parquet")).holds


def test_an_error_names_the_audit(folder: Path) -> None:
    plan = Plan.parse(PLAN.replace("tolerance: 0.3", "tolerance: -0.3"))
    with pytest.raises(eq.OptionError, match="bounds: tolerance must be above 0"):
        run(plan, folder=folder)


def test_verification_holds_on_what_was_not_touched(folder: Path) -> None:
    found = verify(_run(folder), folder=folder)
    assert found.holds
    assert found.compared > 100


def test_findings_added_later_are_exploratory_and_not_performed(folder: Path) -> None:
    evidence = _run(folder)
    later = evidence.add(evidence.entry("flag").finding, "asked later")
    assert later.entry("asked later").asked == "exploratory"
    assert verify(later, folder=folder).not_performed == ("asked later",)
    with pytest.raises(eq.EquipoiseError, match="already"):
        evidence.add(evidence.entry("flag").finding, "flag")


def test_evidence_without_a_plan_cannot_be_verified() -> None:
    found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    with pytest.raises(eq.EquipoiseError, match="no plan"):
        verify(Evidence.of(found))


def test_changed_data_are_noticed(folder: Path) -> None:
    evidence = _run(folder)
    table = _table()
    flipped = table.with_columns(
        d=pl.when(pl.int_range(pl.len()) == 5).then(1 - pl.col("d")).otherwise(pl.col("d"))
    )
    flipped.write_csv(folder / "decisions.csv")
    found = verify(evidence, folder=folder)
    assert not found.holds
    assert any("rows" in difference.where for difference in found.differences)


def test_a_changed_plan_is_noticed(folder: Path) -> None:
    evidence = _run(folder)
    other = Plan.parse(PLAN.replace("0.3", "0.31"))
    found = verify(evidence, plan=other, folder=folder)
    assert {"plan", "bounds / tolerance"} <= {d.where for d in found.differences}


def _leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(data, dict):
        return [leaf for key, item in data.items() for leaf in _leaves(item, (*path, key))]
    if isinstance(data, list):
        return [leaf for i, item in enumerate(data) for leaf in _leaves(item, (*path, i))]
    return [path]


def _tampered(data: Any, path: tuple[Any, ...]) -> Any:
    changed = json.loads(json.dumps(data))
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    value = holder[path[-1]]
    if isinstance(value, bool):
        holder[path[-1]] = not value
    elif isinstance(value, int | float):
        holder[path[-1]] = value + 1
    else:
        holder[path[-1]] = f"{value} changed"
    return changed


def _noticed(changed: Any, folder: Path) -> bool:
    try:
        loaded = Evidence.from_dict(changed, strict=False)
        return not verify(loaded, folder=folder).holds
    except eq.EquipoiseError:
        # what is left cannot be read as evidence, or not be performed
        return True


def test_any_tampering_with_the_evidence_is_noticed(folder: Path) -> None:
    evidence = _run(folder)
    data = json.loads(evidence.to_json())
    places = _leaves(data)
    rng = np.random.default_rng(5)
    chosen = [places[i] for i in rng.choice(len(places), 30, replace=False)]
    top = [("title",), ("verdict",), ("created",), ("plan_hash",), ("seal",), ("plan", "seed")]
    for path in chosen + top:
        changed = _tampered(data, path)
        with pytest.raises(eq.EquipoiseError):
            Evidence.from_dict(changed)
        assert _noticed(changed, folder), path


def test_a_changed_number_is_named(folder: Path) -> None:
    data = json.loads(_run(folder).to_json())
    row = data["entries"][1]["finding"]["rows"][0]
    row["lower"] = row["lower"] - 0.001
    found = verify(Evidence.from_dict(data, strict=False), folder=folder)
    named = [d for d in found.differences if d.where == f"bounds / rows / {row['group']} / lower"]
    assert len(named) == 1
    assert "the evidence says" in str(named[0])


SMALL = """
equipoise: 1
seed: 7
trail: {source: decisions.csv, label: y, prediction: d}
audits:
  - audit: flag
    claim: {kind: gap, metric: accuracy, across: [source]}
    above: 0.05
"""


@pytest.mark.parametrize(
    ("field", "change", "named"),
    [
        # what another processor's rounding may do is forgiven, and nothing more
        ("value", lambda value: value * (1 + 1e-12), []),
        ("value", lambda value: value * (1 + 1e-6), ["value"]),
        ("flagged", lambda value: not value, ["flagged"]),
        # a column may well be called as the circumstances of an audit are
        ("where", lambda where: {"source": f"{where['source']}x"}, ["where / source"]),
    ],
)
def test_what_differs_is_named_whatever_the_seal_says(
    tmp_path: Path, field: str, change: Callable[[Any], Any], named: list[str]
) -> None:
    _table().rename({"g": "source"}).write_csv(tmp_path / "decisions.csv")
    data = json.loads(run(Plan.parse(SMALL), folder=tmp_path).to_json())
    finding = data["entries"][0]["finding"]
    row = finding["rows"][0]
    row[field] = change(row[field])
    finding["provenance"]["source"] = "another.csv"
    found = verify(Evidence.from_dict(data, strict=False), folder=tmp_path)
    place = f"flag / rows / {row['group']} / "
    # where the rows are said to come from is a statement of its own
    wanted = [*(place + name for name in named), "flag / source"]
    assert sorted(d.where for d in found.differences if " / " in d.where) == sorted(wanted)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON"),
        ("[]", "does not name its schema"),
        ('{"schema": "equipoise-evidence/99"}', "follows 'equipoise-evidence/99'"),
        ('{"schema": "equipoise-evidence/1"}', "lacks"),
        ('{"schema": NaN}', "no NaN"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_what_is_no_evidence(text: str, says: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=says):
        Evidence.from_json(text)


def _bounds(tolerance: float) -> eq.Finding:
    claim = eq.gap("accuracy", across="sex")
    return eq.certify(eq.datasets.compas(), claim, tolerance=tolerance, rng=7)


def test_the_gate() -> None:
    shown, unknown = Evidence.of(_bounds(0.2)), Evidence.of(_bounds(0.02))
    flags = eq.flag(eq.datasets.compas(), eq.gap("false_positive_rate", across="race"), above=0.05)
    silent = eq.flag(eq.datasets.compas(), eq.gap("accuracy", across="sex"), above=0.3)
    assert gate(shown).code is Exit.KEPT
    assert gate(unknown).code is Exit.UNDETERMINED
    assert gate(unknown, "pass").code is Exit.KEPT
    assert gate(unknown, "fail").code is Exit.VIOLATION
    assert gate(Evidence.of(flags)).code is Exit.VIOLATION
    assert gate(Evidence.of(_bounds(0.2), flags)).code is Exit.VIOLATION
    # no flag is no evidence of fairness, and it takes none away
    assert gate(Evidence.of(silent)).code is Exit.UNDETERMINED
    assert gate(Evidence.of(_bounds(0.2), silent)).code is Exit.KEPT
    assert gate(Evidence.of(flags), "pass").code is Exit.VIOLATION


def test_assert_shown() -> None:
    from equipoise.testing import assert_shown

    assert_shown(_bounds(0.2))
    assert_shown(_bounds(0.02), undetermined="pass")
    with pytest.raises(AssertionError, match=r"(?s)Undetermined.*undetermined"):
        assert_shown(_bounds(0.02))
    flags = eq.flag(eq.datasets.compas(), eq.gap("false_positive_rate", across="race"), above=0.05)
    with pytest.raises(AssertionError, match=r"(?s)violation.*flagged"):
        assert_shown(_bounds(0.2), flags, undetermined="pass")
    with pytest.raises(eq.OptionError, match="at least one"):
        assert_shown()


def test_names_are_made_unique_and_looked_up() -> None:
    evidence = Evidence.of(_bounds(0.2), _bounds(0.1), title="Two")
    assert [entry.name for entry in evidence.entries] == ["bounds", "bounds 2"]
    with pytest.raises(eq.EquipoiseError, match="Did you mean 'bounds'"):
        evidence.entry("bound")
    with pytest.raises(eq.EquipoiseError, match="made of findings"):
        Evidence.of("text")  # type: ignore[arg-type]


def test_bundled_sources() -> None:
    plan = Plan.parse(
        "{equipoise: 1, seed: 1, trail: {source: 'equipoise:nowhere'}, audits: [{audit: describe,"
        " claim: {kind: gap, metric: accuracy, across: [sex]}}]}"
    )
    with pytest.raises(eq.PlanError, match="Bundled source"):
        run(plan)
    other = dataclasses.replace(plan.trail, source="equipoise:adult")
    adult = run(dataclasses.replace(plan, trail=other))
    assert (
        adult.entries[0].finding.provenance.counted
        == dataclasses.asdict(
            eq.describe(
                eq.datasets.adult_predictions(), eq.gap("accuracy", across=["sex"])
            ).provenance
        )["counted"]
    )


def test_roles_given_for_a_bundled_table_are_added_to_its_own() -> None:
    asked = TrailPlan(source="equipoise:compas", score="decile_score")
    trail = open_trail(asked, folder=Path())
    own = dict(eq.datasets.compas().roles)
    assert dict(trail.roles) == {**own, "score": "decile_score"}
    assert own["score"] == "risk"


def test_a_file_given_in_place_of_a_database_needs_no_table(folder: Path) -> None:
    asked = TrailPlan(source="duckdb:///nowhere.duckdb", table="decisions", label="y")
    given = folder / "decisions.csv"
    assert open_trail(asked, folder=folder, data=str(given)).source == "decisions.csv"
    with pytest.raises(eq.TrailError, match="no database"):
        open_trail(asked, folder=folder)


GAP = "claim: {kind: gap, metric: accuracy, across: [g]}"


@pytest.mark.parametrize(
    ("audit", "columns"),
    [
        (f"audit: certify, {GAP}", {"y", "d", "g"}),
        ("audit: flag, claim: {kind: gap, metric: accuracy, across: [g], "
         "target: {kind: reference, where: {h: x}}}", {"y", "d", "g", "h"}),
        ("audit: certify, claim: {kind: gap, metric: accuracy, across: "
         "[{kind: binned, column: w, quantiles: 4}]}", {"y", "d", "w"}),
        ("audit: certify, claim: {kind: gap, across: [g], metric: "
         "{kind: metric, name: old, value: w > 3}}", None),
        ("audit: certify, claim: {kind: gap, metric: accuracy, across: [g], given: [h]}", None),
        ("audit: discover, metric: accuracy, features: [g, h]", None),
    ],
)  # fmt: skip
def test_columns_that_no_audit_reads_are_not_read(audit: str, columns: set[str] | None) -> None:
    head = "equipoise: 1\nseed: 7\ntrail: {source: t.csv, label: y, prediction: d}\naudits:\n"
    plan = Plan.parse(f"{head}  - {{{audit}}}")
    assert columns_read(plan) == (None if columns is None else frozenset(columns))


def test_what_is_said_of_reading_is_about_columns_that_were_read(folder: Path) -> None:
    table = _table().with_columns(
        w=pl.Series([str(i) for i in range(599)] + ["NA"]),
        y=pl.Series(["NA", *map(str, _table()["y"].to_list()[1:])]),
    )
    table.write_csv(folder / "decisions.csv")
    plan = "equipoise: 1\nseed: 7\ntrail: {source: decisions.csv, label: y, prediction: d}\naudits:"
    evidence = run(Plan.parse(f"{plan}\n  - {{audit: certify, {GAP}}}"), folder=folder)
    assert [note[:13] for note in evidence.notes] == ["In column 'y'"]
    assert verify(evidence, folder=folder).complete
