"""What nobody had tried: strange targets, packed files that are damaged or made to fill a machine,
commands that would replace what they read, and numbers that are changed a little."""

import copy
import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.errors import EquipoiseError, OptionError, TrailError
from equipoise.findings.evidence import Evidence
from equipoise.plan import Plan, run, verify
from equipoise.report.exchange import FORMS, export

PLAN = """
equipoise: 1
title: Release
seed: 7
trail: {source: decisions.csv, label: y, prediction: d}
audits:
  - {audit: certify, claim: {kind: gap, metric: accuracy, across: [g]}, tolerance: 0.0625}
  - {audit: flag, claim: {kind: gap, metric: accuracy, across: [g]}, above: 0.0625}
  - {audit: joint_test, claim: {kind: gap, metric: accuracy, across: [g]}}
  - {audit: describe, claim: {kind: gap, metric: accuracy, across: [g]}}
  - {audit: summarize, metric: accuracy, across: [g], resamples: 50}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng, n = np.random.default_rng(3), 300
    pl.DataFrame(
        {
            "y": rng.integers(0, 2, n),
            "d": rng.integers(0, 2, n),
            "g": rng.choice(["a", "b", "=cmd|' /C calc'!A0"], n),
        }
    ).write_csv(tmp_path / "decisions.csv")
    (tmp_path / "audit.yaml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(data: object, name: str = "") -> list[tuple[str, float]]:
    if isinstance(data, dict):
        # a quoted claim or method is what was asked, and tells of nobody
        items = [] if name in ("claim", "method", "where") else list(data.items())
        return [found for key, value in items for found in numbers(value, key)]
    if isinstance(data, list):
        return [found for value in data for found in numbers(value, name)]
    return [(name, data)] if isinstance(data, float) else []


@pytest.mark.parametrize(("least", "kinds"), [(2, 20), (5, 20), (50, 5), (80, 0)])
def test_every_published_number_has_three_digits(folder: Path, least: int, kinds: int) -> None:
    evidence = run(Plan.parse(PLAN), folder=folder)
    trail = eq.read("decisions.csv", label="y", prediction="d")
    odds = eq.flag(trail, eq.equalized_odds(across="g"), rng=1)
    evidence = evidence.add(odds, "odds")
    text = str(eq.report(evidence, suppress=least).published)
    # parts of findings are published as findings are
    assert odds.part(odds.names[0]).provenance.fingerprint not in text
    found = numbers(json.loads(text))
    # below 50 rows of a class somebody is hidden; below 80 everybody is, and no number is left
    assert len({name for name, _ in found}) > kinds if kinds else not found
    asked = ("level", "tolerance", "rate", "alpha")
    long = [pair for pair in found if float(f"{pair[1]:.3g}") != pair[1] and pair[0] not in asked]
    assert long == []


def test_an_input_that_is_not_named_is_missed(folder: Path) -> None:
    data = run(Plan.parse(PLAN), folder=folder).to_dict()
    del data["input"]
    made = Evidence.from_dict(data, strict=False)
    Path("forged.json").write_text(json.dumps({**data, "seal": made.seal}))
    (folder / "other").mkdir()
    Path("other/copy.csv").write_bytes(Path("decisions.csv").read_bytes())
    for more in ([], ["--data", "other/copy.csv"], ["--data", "other/copy.csv", "--allow-extra"]):
        assert execute(["verify", "forged.json", *more]) == 1


@pytest.mark.parametrize("share", [1e-6, 1e-8, -1e-8, 1e-10, 1e-13])
def test_a_number_that_is_changed_a_little_is_told(
    folder: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    data: Any = run(Plan.parse(PLAN), folder=folder).to_dict()
    row = data["entries"][0]["finding"]["rows"][0]
    row["upper"] *= 1 + share
    made = Evidence.from_dict(data, strict=False)
    Path("forged.json").write_text(json.dumps({**data, "seal": made.seal}))
    code = execute(["verify", "forged.json"])
    said = capsys.readouterr()
    # nine digits must agree; whether all do is told
    assert code == (1 if abs(share) > 1e-9 else 0)
    assert code or "not the same to the last digit" in said.out + said.err


def test_tiny_p_values_are_judged_by_their_own_size(folder: Path) -> None:
    evidence = run(Plan.parse(PLAN), folder=folder)
    data: Any = copy.deepcopy(evidence.to_dict())
    data["entries"][1]["finding"]["rows"][0]["p"] = 5e-10
    near: Any = copy.deepcopy(data)
    near["entries"][1]["finding"]["rows"][0]["p"] = 1e-10
    made = Evidence.from_dict(data, strict=False)
    from equipoise.plan.run import compared_with

    assert compared_with(made, Evidence.from_dict(near, strict=False)).differences


def test_what_was_planned_cannot_become_exploratory_unseen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data: Any = run(Plan.parse(PLAN), folder=folder).to_dict()
    for entry in data["entries"]:
        entry["asked"] = "exploratory"
    made = Evidence.from_dict(data, strict=False)
    sealed = Evidence.from_dict({**data, "seal": made.seal})
    found = verify(sealed, folder=folder, plan=Plan.parse(PLAN))
    assert [one.where for one in found.differences] == ["asked"]
    # without the registered plan nothing contradicts it, and so it is told as stated
    Path("forged.json").write_text(json.dumps(sealed.to_dict()))
    assert execute(["verify", "forged.json"]) == 0
    said = capsys.readouterr()
    assert "none confirmatory: all was asked after looking" in " ".join(said.out.split())


def test_full_evidence_does_not_go_where_the_published_goes(folder: Path) -> None:
    for full in ("x/evidence.json", "x/./evidence.json", "x/report.html"):
        words = ["run", "audit.yaml", "--suppress", "5", "--out", "x", "--full-evidence", full]
        assert execute([*words, "-q"]) == 3
    assert not Path("x").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "init", "decisions.csv", "--label", "y", "--prediction", "d", "--out", "{}"],
        ["check", "audit.yaml", "-q", "--junit", "{}"],
        ["check", "audit.yaml", "-q", "--sarif", "{}"],
        ["run", "audit.yaml", "-q", "--suppress", "5", "--out", "x", "--full-evidence", "{}"],
        ["report", "out/evidence.json", "--out", "{}"],
        ["export", "out/evidence.json", "{}", "--to", "xlsx"],
        ["sign", "out/evidence.json", "--key", "k", "--out", "{}"],
    ],
    ids=lambda words: words[0],
)
def test_no_command_replaces_what_it_reads(folder: Path, words: list[str]) -> None:
    assert execute(["run", "audit.yaml", "-q", "--out", "out"]) == 0
    assert execute(["keygen", "k"]) == 0
    kept = {
        path: path.read_bytes()
        for path in (Path("decisions.csv"), Path("audit.yaml"), Path("out/evidence.json"))
    }
    reads = "out/evidence.json" if words[0] in ("report", "export", "sign") else "decisions.csv"
    assert execute([*(word.format(reads) for word in words), "--force"]) == 3
    assert all(path.read_bytes() == before for path, before in kept.items())
    # nor under another name
    Path("twin").hardlink_to(reads)
    assert execute([*(word.format("twin") for word in words), "--force"]) == 3
    assert all(path.read_bytes() == before for path, before in kept.items())


def test_a_library_may_write_again_what_it_read(folder: Path) -> None:
    run(Plan.parse(PLAN), folder=folder).save("evidence.json")
    Evidence.load("evidence.json").save("evidence.json")


def packed(path: Path, times: int) -> Path:
    piece = b"1,0,a\n" * 10_000
    if path.suffix == ".gz":
        with gzip.open(path, "wb") as out:
            out.write(b"y,d,g\n")
            for _ in range(times):
                out.write(piece)
    else:
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("t.csv", "w") as out,
        ):
            out.write(b"y,d,g\n")
            for _ in range(times):
                out.write(piece)
    return path


@pytest.mark.parametrize("name", ["t.csv.gz", "t.zip"])
def test_a_packed_file_does_not_fill_the_machine(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.trail.delimited.ALWAYS", 100_000)
    file = packed(tmp_path / name, 20)
    assert file.stat().st_size * 100 < 20 * 60_000
    with pytest.raises(TrailError, match="EQUIPOISE_UNPACK=1000"):
        eq.read(file, label="y", prediction="d")
    monkeypatch.setenv("EQUIPOISE_UNPACK", "1000")
    assert eq.describe(eq.read(file, label="y", prediction="d"), eq.gap("accuracy", across="g"))
    monkeypatch.setenv("EQUIPOISE_UNPACK", "much")
    with pytest.raises(OptionError, match="a whole number such as 1000"):
        eq.read(file, label="y", prediction="d")


def test_a_workbook_is_a_packed_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.trail.delimited.ALWAYS", 100_000)
    file = tmp_path / "t.xlsx"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"<a/>" * 1_000_000)
    with pytest.raises(TrailError, match="unpacks to more"):
        eq.read(file, label="y", prediction="d")


def test_damaged_gzip_is_called_that(tmp_path: Path) -> None:
    whole = gzip.compress(b"y,d,g\n" + b"".join(b"%d,0,a\n" % (i % 2) for i in range(5000)))
    for number, text in enumerate((whole[:-9], whole[:40], whole[:30] + whole[60:], b"", b"no")):
        file = tmp_path / f"{number}.csv.gz"
        file.write_bytes(text)
        with pytest.raises(TrailError, match=r"could not be read|is empty|no header"):
            eq.read(file, label="y", prediction="d")
        assert execute(["audit", str(file), "--across", "g", "--label", "y", "-q"]) == 3


def test_names_of_a_megabyte_are_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("g," + "x" * (1 << 20) + ",p\n" + "a,1,0\n" * 50)
    with pytest.raises(EquipoiseError):
        eq.read(file, label="y", prediction="p")


@pytest.mark.parametrize("form", FORMS)
def test_no_export_holds_a_formula_or_a_hidden_group(folder: Path, form: str) -> None:
    frame = pl.read_csv("decisions.csv")
    small = frame.head(3).with_columns(pl.lit("@SUM(1+1)Tiny").alias("g"))
    found = eq.certify(
        eq.read(pl.concat([frame, small]), label="y", prediction="d"),
        eq.gap("accuracy", across="g"),
        rng=1,
    )
    made = export(eq.Evidence.of(found), folder / "e", form, suppress=5)
    for path in made:
        data = path.read_bytes()
        if form == "xlsx":
            with zipfile.ZipFile(path) as archive:
                data = b"".join(archive.read(name) for name in archive.namelist())
                assert b"<f>" not in data
        assert b"Tiny" not in data
        if form == "csv":
            lines = data.decode().splitlines()
            assert not any(cell[:1] in tuple("=@+") for line in lines for cell in line.split(","))
