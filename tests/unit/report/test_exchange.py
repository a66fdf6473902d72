"""What other tools take in: each form read back by a reader that is not ours, or by its rules."""

import csv
import dataclasses
import io
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast, get_args, get_type_hints
from xml.etree import ElementTree

import jsonschema
import numpy as np
import polars as pl
import pytest
import yaml

import equipoise as eq
from equipoise.errors import EquipoiseError
from equipoise.findings.evidence import evidence_schema
from equipoise.findings.finding import kinds_of_findings
from equipoise.report.exchange import (
    FORMS,
    Sheet,
    csv_of,
    export,
    model_card,
    model_index,
    openlineage,
    sheets_of,
    xlsx_of,
)
from tests.browser.audits import battery as audited


@pytest.fixture(scope="module")
def evidence() -> eq.Evidence:
    claim = eq.gap("false_positive_rate", across=["race", "sex"])
    trail = eq.datasets.compas()
    return eq.Evidence.of(
        eq.flag(trail, claim, above=0.05, rng=1),
        eq.certify(trail, claim, tolerance=0.10, rng=1),
        eq.certify(trail, eq.gap("accuracy", across="sex"), tolerance=0.3, rng=1),
        eq.describe(trail, claim),
        title="COMPAS",
    )


def test_tables_hold_all_digits(evidence: eq.Evidence) -> None:
    sheets = {sheet.name: sheet for sheet in sheets_of(evidence)}
    assert list(sheets) == ["audit", "flags", "bounds", "bounds 2", "description"]
    read = list(csv.DictReader(io.StringIO(csv_of(sheets["bounds"]))))
    found = evidence.entry("bounds").finding
    assert len(read) == len(found)
    for line, row in zip(read, found.rows, strict=True):
        assert line["group"] == row.group
        assert (float(line["lower"]) if line["lower"] else None) == row.lower
        assert json.loads(line["where"]) == row.where


def test_excel_reads_the_workbook(evidence: eq.Evidence, tmp_path: Path) -> None:
    calamine = pytest.importorskip("python_calamine")
    file = tmp_path / "tables.xlsx"
    file.write_bytes(xlsx_of(sheets_of(evidence)))
    book = calamine.load_workbook(str(file))
    assert book.sheet_names == ["audit", "flags", "bounds", "bounds 2", "description"]
    rows = book.get_sheet_by_name("flags").to_python()
    assert len(rows) == len(evidence.entry("flags").finding) + 1
    first = dict(zip(rows[0], rows[1], strict=True))
    assert first["value"] == evidence.entry("flags").finding.rows[0].value
    assert xlsx_of(sheets_of(evidence)) == file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))


def test_hostile_names_stay_text() -> None:
    calamine = pytest.importorskip("python_calamine")
    rows = (("=HYPERLINK(1)", 1), ("@x", 2), ("  -1+1", 3), ("<b>&\x00\ud800", 2**60), ("", None))
    sheet = Sheet(name="a/b:[c]*" + "x" * 40, heads=("group", "n"), rows=rows)
    lines = csv_of(sheet).splitlines()
    assert [line[0] for line in lines[1:4]] == ["'", "'", "'"]
    made = xlsx_of([sheet, sheet])
    book = calamine.load_workbook(io.BytesIO(made))
    assert all(len(name) <= 31 for name in book.sheet_names)
    assert len(set(book.sheet_names)) == 2
    read = book.get_sheet_by_index(0).to_python()
    assert read[1][0] == "=HYPERLINK(1)"
    assert read[4] == ["<b>&", str(2**60)]


def test_a_model_card_cannot_be_written_on_by_the_table() -> None:
    table = pl.DataFrame(
        {"g": ["<script>x</script>", "a|b", "[l](http://x)"] * 40, "p": [0, 1, 1] * 40}
    )
    found = eq.certify(eq.read(table, prediction="p"), eq.gap("selection_rate", across="g"), rng=1)
    card = model_card(eq.Evidence.of(found))
    assert "<script>" not in card
    assert "a\\|b" in card
    assert "[l](" not in card
    assert card.startswith("## Fairness audit\n")


def test_the_model_index_has_what_hugging_face_asks_for(evidence: eq.Evidence) -> None:
    made = yaml.safe_load(model_index(evidence, "m"))
    (model,) = made["model-index"]
    assert model["name"] == "m"
    for result in model["results"]:
        assert set(result["task"]) == {"type"}
        assert set(result["dataset"]) == {"type", "name"}
        for metric in result["metrics"]:
            assert isinstance(metric["type"], str)
            assert isinstance(metric["value"], float)
            assert metric["args"]["lower"] <= metric["value"] <= metric["args"]["upper"]
    described = eq.Evidence.of(evidence.entry("description").finding)
    with pytest.raises(EquipoiseError, match="ask for them with certify"):
        model_index(described, "m")


#: The facet as OpenLineage defines it (DataQualityAssertionsDatasetFacet 1-0-1).
_FACET: dict[str, Any] = {
    "type": "object",
    "required": ["_producer", "_schemaURL", "assertions"],
    "properties": {
        "_producer": {"type": "string", "format": "uri"},
        "_schemaURL": {"type": "string", "format": "uri"},
        "assertions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["assertion", "success"],
                "properties": {
                    "assertion": {"type": "string"},
                    "success": {"type": "boolean"},
                    "column": {"type": "string"},
                },
            },
        },
    },
}


def test_openlineage_takes_no_silence_for_success(evidence: eq.Evidence) -> None:
    made: dict[str, Any] = openlineage(evidence)
    jsonschema.validate(made["dataQualityAssertions"], _FACET)
    said = {one["assertion"].split(":")[0]: one["success"]
            for one in made["dataQualityAssertions"]["assertions"]}  # fmt: skip
    assert said == {"flags": False, "bounds": False, "bounds 2": True}
    few = eq.certify(
        pl.DataFrame({"g": ["a", "b"] * 5, "p": [0, 1, 1, 0, 1] * 2}),
        eq.gap("selection_rate", across="g"),
        tolerance=0.1,
        prediction="p",
    )
    assert few.verdict is eq.Verdict.UNDETERMINED
    unsure: dict[str, Any] = openlineage(eq.Evidence.of(few))
    assert unsure["dataQualityAssertions"]["assertions"] == []
    assert unsure["equipoise_audit"]["audits"][0]["verdict"] == "undetermined"


@pytest.mark.parametrize("form", FORMS)
def test_small_groups_are_left_out_of_every_form(
    evidence: eq.Evidence, form: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    written = export(evidence, out, form, suppress=25)
    texts = []
    for path in written:
        content = path.read_bytes()
        if form == "xlsx":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = b"".join(archive.read(name) for name in archive.namelist())
        texts.append(content.decode())
    said = "".join(texts)
    assert "Native American" not in said
    assert evidence.seal not in said
    if form not in ("model-index", "openlineage"):
        assert "African-American" in said
    with pytest.raises(EquipoiseError, match="--force"):
        export(evidence, out, form)
    export(evidence, out, form, force=True)


def test_evidence_follows_its_schema(evidence: eq.Evidence) -> None:
    schema = evidence_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    every = eq.Evidence.of(*audited())
    for one in (evidence, every):
        data = json.loads(one.to_json())
        assert [error.message for error in check.iter_errors(data)] == []
    data = json.loads(evidence.to_json())
    data["entries"][0]["finding"]["rows"][0]["value"] = "much"
    assert not check.is_valid(data)
    del data["entries"][0]["finding"]["rows"]
    assert not check.is_valid(data)


def test_rules_of_repairs_and_of_subgroups_each_follow_their_own_schema() -> None:
    draw = np.random.default_rng(1)
    score = draw.random(800).round(3)
    frame = pl.DataFrame({"sex": ["f", "m"] * 400, "score": score, "y": draw.random(800) < score})
    trail = eq.read(frame, label="y", score="score")
    repaired = eq.repair(trail, eq.gap("selection_rate", across="sex"), tolerance=0.3, rng=1)
    found = eq.calibration(trail, method="cusum", resamples=50, rng=1)
    data = json.loads(eq.Evidence.of(repaired, found).to_json())
    assert data["entries"][0]["finding"]["rule"]["how"] == "threshold"
    check = jsonschema.Draft202012Validator(evidence_schema())
    assert [error.message for error in check.iter_errors(data)] == []


def test_no_two_parts_of_findings_have_one_name() -> None:
    # the schema tells them apart by it
    parts: dict[str, set[type]] = {}

    def look(hint: Any) -> None:
        known = parts.setdefault(getattr(hint, "__name__", ""), set())
        if dataclasses.is_dataclass(hint) and hint not in known:
            known.add(cast(type, hint))
            for inner in get_type_hints(hint).values():
                look(inner)
        for inner in get_args(hint):
            look(inner)

    for kind in kinds_of_findings().values():
        look(kind)
        look(kind.row_type)
    assert len(parts) > 50
    assert [name for name, classes in parts.items() if len(classes) > 1] == []


def test_weights_and_biases_get_both_files(
    evidence: eq.Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise.wandb import log_evidence

    kept: dict[str, str] = {}
    summary: dict[str, Any] = {}

    class Artifact:
        def __init__(self, name: str, *, type: str, metadata: dict[str, str]) -> None:
            self.name, self.type = name, type

        def add_file(self, path: str) -> None:
            kept[Path(path).name] = Path(path).read_text(encoding="utf-8")

    module: Any = ModuleType("wandb")
    module.Artifact, module.run = Artifact, None
    monkeypatch.setitem(sys.modules, "wandb", module)
    with pytest.raises(EquipoiseError, match=r"wandb\.init"):
        log_evidence(evidence)
    module.run = SimpleNamespace(log_artifact=lambda artifact: None, summary=summary)
    log_evidence(evidence, suppress=25)
    assert set(kept) == {"evidence.json", "report.html"}
    assert "Native American" not in "".join(kept.values())
    assert summary["equipoise.verdict"] == "exceeded"
    log_evidence(evidence)
    assert eq.Evidence.from_json(kept["evidence.json"]) == evidence


def test_the_query_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from equipoise.cli.main import execute

    file = tmp_path / "people.csv"
    file.write_text("g,p\n" + "a,0\nb,1\n" * 30)
    words = ["audit", str(file), "--prediction", "p", "--across", "g", "--explain-query"]
    execute([*words, "--json", "--out", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert said.err.count("-- query") == 1
    assert "GROUP BY" in said.err
    assert json.loads(said.out)
