"""Evidence that was changed and sealed again: every kind of forgery is noticed."""

import base64
import copy
import hashlib
import itertools
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.findings.evidence import Evidence
from equipoise.plan import Plan, run, signing, verify
from tests.safety.conftest import number

PLAN = """
equipoise: 1
title: Release
seed: 7
trail: {source: decisions.csv, label: y, prediction: d}
audits:
  - audit: certify
    name: bounds
    claim: {kind: gap, metric: accuracy, across: [g]}
    tolerance: 0.05
  - audit: flag
    name: flags
    claim: {kind: gap, metric: false_positive_rate, across: [g, h]}
    above: 0.1
"""
Data = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, rng = tmp_path_factory.mktemp("forged"), np.random.default_rng(3)
    n = 400
    frame = pl.DataFrame(
        {
            "y": rng.integers(0, 2, n),
            "d": rng.integers(0, 2, n),
            "g": rng.choice(["a", "b", "c"], n),
            "h": rng.choice(["u", "v"], n),
        }
    )
    frame.write_csv(made / "decisions.csv")
    (made / "audit.yaml").write_text(PLAN)
    run(Plan.parse(PLAN), folder=made).save(made / "evidence.json")
    return made


def entry(data: Data, name: str = "bounds") -> Data:
    return next(item for item in data["entries"] if item["name"] == name)


def row(data: Data, name: str = "bounds") -> Data:
    return entry(data, name)["finding"]["rows"][0]


def put(*path: Any, to: Any) -> Callable[[Data], None]:
    """A forgery that sets one value; a function works on the value that is there."""

    def change(data: Data) -> None:
        holder: Any = data
        for step in path[:-1]:
            holder = holder[step]
        old = holder.get(path[-1]) if isinstance(holder, dict) else holder[path[-1]]
        holder[path[-1]] = to(old) if callable(to) else to

    return change


def in_finding(*path: Any, to: Any, name: int = 0) -> Callable[[Data], None]:
    return put("entries", name, "finding", *path, to=to)


def second_entry(data: Data) -> None:
    twin = copy.deepcopy(entry(data))
    for line in twin["finding"]["rows"]:
        line["verdict"] = "kept"
    data["entries"].append(twin)


def invented(data: Data) -> None:
    data["entries"].append(
        {**copy.deepcopy(entry(data)), "name": "another", "asked": "exploratory"}
    )


def swapped_rows(data: Data) -> None:
    rows = entry(data)["finding"]["rows"]
    rows[0], rows[1] = rows[1], rows[0]


def swapped_findings(data: Data) -> None:
    first, second = data["entries"]
    first["finding"], second["finding"] = second["finding"], first["finding"]


def all_kept(data: Data) -> None:
    for line in entry(data)["finding"]["rows"]:
        line["verdict"] = "kept"


def other_plan(data: Data) -> None:
    data["plan"]["audits"][0]["tolerance"] = 0.5
    data["plan_hash"] = Plan.from_plain(data["plan"]).hash


FORGERIES: dict[str, Callable[[Data], object]] = {
    "second entry of the same name": second_entry,
    "invented finding": invented,
    "invented confirmatory finding": lambda d: d["entries"].append(
        {**copy.deepcopy(entry(d)), "name": "another", "asked": "confirmatory"}
    ),
    "note of reading added": put("notes", to=["No value was missing."]),
    "finding removed": lambda d: d["entries"].pop(),
    "all findings removed": lambda d: d["entries"].clear(),
    "findings in another order": lambda d: d["entries"].reverse(),
    "findings exchanged": swapped_findings,
    "finding renamed": put("entries", 0, "name", to="limits"),
    "one finding marked as asked later": put("entries", 0, "asked", to="exploratory"),
    "title": put("title", to="Another release"),
    "title of plan and evidence": lambda d: (d["plan"].update(title="x"), d.update(title="x")),
    "made in the future": put("created", to="2999-01-01T00:00:00+00:00"),
    "made at no time": put("created", to="yesterday"),
    "made at a time without a zone": put("created", to="2026-01-01T00:00:00"),
    "version of equipoise": put("versions", "equipoise", to="9.9"),
    "version of equipoise everywhere": lambda d: (
        d["versions"].update(equipoise="9.9"),
        [e["finding"]["provenance"].update(version="9.9") for e in d["entries"]],
    ),
    "version of numpy": put("versions", "numpy", to="0.1"),
    "version of a package that is not here": put("versions", "unheard-of", to="1.0"),
    "version left out": lambda d: d["versions"].pop("scipy"),
    "version of one finding": in_finding("provenance", "version", to="0.0.1"),
    "source": in_finding("provenance", "source", to="another.csv"),
    "rows looked at": in_finding("provenance", "scanned", to=lambda n: n + 1),
    "rows counted": in_finding("provenance", "counted", to=lambda n: n - 1),
    "rows left out": in_finding("provenance", "excluded", to={"no label": 3}),
    "ineligible rows": in_finding("provenance", "ineligible", to=5),
    "cells": in_finding("provenance", "cells", to=1),
    "fingerprint of a finding": in_finding("provenance", "fingerprint", to="0" * 64),
    "seed of a finding": in_finding("provenance", "seed", to=8),
    "digest of the input": put("input", "sha256", to="0" * 64),
    "name of the input": put("input", "name", to="better.csv"),
    "plan": put("plan", "seed", to=8),
    "plan with its hash": other_plan,
    "plan hash": put("plan_hash", to="0" * 64),
    "plan with a field at its default": put("plan", "trail", "weight", to=None),
    "no plan": lambda d: d.update(plan=None, plan_hash=None),
    "verdicts": all_kept,
    "estimate": in_finding("rows", 0, "disparity", to=lambda x: x + 1e-6),
    "lower bound": in_finding("rows", 0, "lower", to=lambda x: x + 0.01),
    "upper bound removed": in_finding("rows", 0, "upper", to=None),
    "size of a group": in_finding("rows", 0, "n", to=lambda n: n + 1),
    "name of a group": in_finding("rows", 0, "group", to="z"),
    "group as data": in_finding("rows", 0, "where", to={"g": "z"}),
    "note": in_finding("rows", 0, "note", to="nothing to see"),
    "group removed": lambda d: entry(d)["finding"]["rows"].pop(),
    "group twice": lambda d: entry(d)["finding"]["rows"].append(copy.deepcopy(row(d))),
    "groups exchanged": swapped_rows,
    "level": in_finding("level", to=0.99),
    "tolerance": in_finding("tolerance", to=0.5),
    "guarantee": in_finding("guarantee", to="certainly"),
    "assumptions": in_finding("assumptions", to=[]),
    "question": in_finding("question", to="is everything well"),
    "claim": in_finding("claim", "metric", to="error_rate"),
    "method": in_finding("method", "kind", to="bootstrap"),
    "critical value": in_finding("critical", to=lambda x: x + 0.001),
    "flag removed": in_finding("rows", 0, "flagged", to=lambda x: not x, name=1),
    "p-value": in_finding("rows", 0, "p", to=lambda x: x / 2, name=1),
    "rate of false flags": in_finding("rate", to=0.01, name=1),
    "what a flag speaks against": in_finding("null", to="is fine", name=1),
}
#: What only a signature can show; it is listed by its stated value.
LISTED: dict[str, tuple[Callable[[Data], object], str]] = {
    "made on another day": (put("created", to="2020-01-01T00:00:00+00:00"), "2020-01-01"),
    "all exploratory made confirmatory": (
        lambda d: [e.update(asked="confirmatory") for e in d["entries"]],
        "2 confirmatory",
    ),
}


def resealed(data: Data) -> Data:
    """The file as a forger would hand it on: verdict, fingerprint and seal worked out anew."""
    try:
        made = Evidence.from_dict(data, strict=False)
    except eq.EquipoiseError:
        return data
    return made.to_dict()


def noticed(data: Data, folder: Path) -> bool:
    try:
        return not verify(Evidence.from_dict(data, strict=False), folder=folder).complete
    except eq.EquipoiseError:
        return True


def test_every_forgery_is_noticed(folder: Path) -> None:
    honest = json.loads((folder / "evidence.json").read_text())
    assert not noticed(resealed(copy.deepcopy(honest)), folder)
    assert len(FORGERIES) + len(LISTED) >= 40
    unnoticed = []
    for name, forge in FORGERIES.items():
        data = copy.deepcopy(honest)
        forge(data)
        assert data != honest, name
        if not noticed(resealed(data), folder):
            unnoticed.append(name)
    assert unnoticed == []
    for name, (forge, said) in LISTED.items():
        data = copy.deepcopy(honest)
        forge(data)
        found = verify(Evidence.from_dict(resealed(data)), folder=folder)
        assert any(said in one for one in found.stated), name


def test_the_command_fails_on_what_was_not_performed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    data = json.loads((folder / "evidence.json").read_text())
    invented(data)
    (folder / "more.json").write_text(json.dumps(resealed(data)))
    assert execute(["verify", "evidence.json"]) == 0
    assert "shown by nothing but a signature" in " ".join(capsys.readouterr().out.split())
    assert execute(["verify", "more.json"]) == 1
    assert execute(["verify", "more.json", "--allow-extra"]) == 0
    assert "Not performed again: another" in capsys.readouterr().out
    second_entry(data)
    (folder / "twice.json").write_text(json.dumps(data))
    assert execute(["verify", "twice.json", "--allow-extra"]) == 3
    (folder / "keys.json").write_text('{"schema": 1, "schema": 2}')
    assert execute(["verify", "keys.json"]) == 3
    assert "second time" in capsys.readouterr().err


# --- Signatures ---


@pytest.fixture
def signed(folder: Path, tmp_path: Path) -> Path:
    """Evidence with its plan signed before, itself signed after, and a page."""
    for name in ("decisions.csv", "audit.yaml", "evidence.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    private, public = signing.new_key()
    (tmp_path / "key").write_bytes(private)
    (tmp_path / "key.pub").write_bytes(public)
    (tmp_path / "other").write_bytes(signing.new_key()[0])
    key = signing.private_key(tmp_path / "key")
    (tmp_path / "report.html").write_text("<!doctype html>")
    (tmp_path / "audit.yaml.sig").write_text(signing.sign_plan(tmp_path / "audit.yaml", key))
    made = signing.sign_evidence(tmp_path / "evidence.json", key, page=tmp_path / "report.html")
    (tmp_path / "evidence.json.sig").write_text(made)
    return tmp_path


def test_a_signature_covers_evidence_plan_data_and_page(
    signed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(signed)
    monkeypatch.setattr("equipoise.plan.signing._later", lambda *_: False)
    by_key = ["verify", "evidence.json", "--signer", "key.pub"]
    assert execute([*by_key, "--plan-signature", "audit.yaml.sig"]) == 0
    said = capsys.readouterr().out
    assert "The plan was signed by key" in said
    assert "nothing but a signature" not in said
    key = signing.public_key(signed / "key.pub")
    subjects = signing.read_signature(signed / "evidence.json.sig", key).subjects
    assert set(subjects) == {"evidence.json", "plan", "input:decisions.csv", "report.html"}
    for name in ("report.html", "evidence.json"):
        before = (signed / name).read_text()
        (signed / name).write_text(before + " ")
        assert execute(by_key) == 1, name
        (signed / name).write_text(before)
    assert execute(["verify", "evidence.json", "--signer", "other"]) == 3
    assert execute(["verify", "evidence.json", "--plan-signature", "audit.yaml.sig"]) == 3
    envelope = json.loads((signed / "evidence.json.sig").read_text())
    envelope["payload"] = envelope["payload"][:-8] + "AAAAAAA="
    (signed / "evidence.json.sig").write_text(json.dumps(envelope))
    assert execute(by_key) == 3
    # a signature of the plan is none of the evidence
    assert execute([*by_key, "--signature", "audit.yaml.sig"]) == 1


def test_a_plan_signed_after_the_run_shows_nothing(signed: Path) -> None:
    key = signing.public_key(signed / "key.pub")
    late = signing.read_signature(signed / "audit.yaml.sig", key)
    stored = Evidence.load(signed / "evidence.json")
    # the fixture signs the plan when the evidence exists already
    assert [what for what, *_ in signing.too_late(stored, late)] in ([], ["created"])
    early = {**stored.to_dict(), "created": "2020-01-01T00:00:00+00:00"}
    before = Evidence.from_dict(early, strict=False)
    assert [what for what, *_ in signing.too_late(before, late)] == ["created"]


def openssl(*arguments: str, folder: Path) -> bool:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0


def test_a_time_stamp_is_checked(signed: Path) -> None:
    subject = ("-subj", "/CN=authority", "-addext", "extendedKeyUsage=critical,timeStamping")
    made = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tsa.key")
    try:
        ready = openssl(*made, "-out", "tsa.pem", "-days", "9", *subject, folder=signed)
    except FileNotFoundError:
        pytest.skip("no openssl to play the authority")
    assert ready
    (signed / "serial").write_text("01")
    (signed / "ts.cnf").write_text(
        "[tsa]\ndefault_tsa=t\n[t]\nserial=serial\nsigner_digest=sha256\n"
        "default_policy=1.2.3.4\ndigests=sha256,sha512\n"
    )
    ask = ("ts", "-query", "-data", "audit.yaml.sig", "-sha512", "-cert", "-out", "q.tsq")
    assert openssl(*ask, folder=signed)
    reply = ("ts", "-reply", "-config", "ts.cnf", "-queryfile", "q.tsq", "-inkey", "tsa.key")
    assert openssl(*reply, "-signer", "tsa.pem", "-out", "audit.yaml.sig.tsr", folder=signed)
    key = signing.public_key(signed / "key.pub")
    found = signing.read_signature(signed / "audit.yaml.sig", key, authority=signed / "tsa.pem")
    assert found.stamped is not None
    assert found.stamp_checked
    response = bytearray((signed / "audit.yaml.sig.tsr").read_bytes())
    data = (signed / "audit.yaml.sig").read_bytes()
    with pytest.raises(eq.EquipoiseError, match="another file"):
        signing.time_of_stamp(bytes(response), data + b" ", signed / "tsa.pem")
    rng = np.random.default_rng(1)
    for place in rng.choice(len(response), number(60, 1000)):
        changed = bytearray(response)
        changed[place] ^= 1 << int(rng.integers(8))
        # a bit in the certificate that comes along, or in what nothing rests on, may be changed
        try:
            assert signing.time_of_stamp(bytes(changed), data, signed / "tsa.pem") == found.stamped
        except eq.EquipoiseError:
            continue


@pytest.mark.parametrize("kind", ["pipe", "device", "link out", "folder", "too large"])
@pytest.mark.parametrize("side", ["evidence.json.sig", "evidence.json.sig.tsr", "report.html"])
def test_what_comes_beside_evidence_is_a_file_or_is_not_read(
    signed: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    side: str,
    kind: str,
) -> None:
    """A page that was a link to another file was digested, a pipe was waited for."""
    monkeypatch.chdir(signed)
    private = tmp_path_factory.mktemp("private") / "secret"
    private.write_text("secret")
    Path(side).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(side)
    elif kind == "folder":
        Path(side).mkdir()
    elif kind == "too large":
        with Path(side).open("wb") as stream:
            stream.truncate(2**30 + 1)
    else:
        Path(side).symlink_to("/dev/zero" if kind == "device" else private)
    assert execute(["verify", "evidence.json", "--signer", "key.pub", "-q"]) in (1, 3)
    said = capsys.readouterr()
    assert hashlib.sha256(b"secret").hexdigest() not in said.out + said.err
    assert "unforeseen" not in said.err


def test_no_named_file_is_a_pipe_or_a_device(
    signed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(signed)
    os.mkfifo("pipe")
    Path("zero").symlink_to("/dev/zero")
    verify = ["verify", "evidence.json", "--signer"]
    for bad in ("pipe", "zero"):
        for command in (
            [*verify, bad],
            [*verify, "key.pub", "--signature", bad],
            [*verify, "key.pub", "--plan-signature", bad],
            ["report", "evidence.json", "--signature", bad, "--out", "new.html"],
            ["sign", "evidence.json", "--key", bad, "--force"],
            ["monitor", "verify", bad],
            ["monitor", "show", bad],
            ["monitor", "add", bad, "decisions.csv", "--period", "1"],
            ["verify", bad],
            ["explain", bad],
        ):
            assert execute(command) == 3, command
            assert "unforeseen" not in capsys.readouterr().err, command


def test_a_key_is_never_replaced(
    signed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sign … --out KEY --force` wrote the signature over the private key."""
    monkeypatch.chdir(signed)
    os.link("key", "second name")
    before = Path("key").read_bytes()
    for target in ("key", "second name", "audit.yaml"):
        command = ["sign", "audit.yaml", "--key", "key", "--out", target, "--force"]
        assert execute(command) == 3, target
        assert "what this command reads" in capsys.readouterr().err
    assert Path("key").read_bytes() == before
    quoted = ["report", "evidence.json", "--signature", "evidence.json.sig", "--force", "--out"]
    for target in ("evidence.json", "evidence.json.sig"):
        assert execute([*quoted, target]) == 3, target


def signed_anew(folder: Path, **changes: object) -> None:
    """The signature of the evidence, stating something else, signed by the same key."""
    key, place = signing.private_key(folder / "key"), folder / "evidence.json.sig"
    envelope = json.loads(place.read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["predicate"].update(changes)
    payload = json.dumps(statement).encode()
    kind = envelope["payloadType"].encode()
    framed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    envelope["payload"] = base64.b64encode(payload).decode()
    envelope["signatures"][0]["sig"] = base64.b64encode(key.sign(framed)).decode()
    place.write_text(json.dumps(envelope))


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "exceeded"},
        {"title": "Another audit"},
        {"seal": "0" * 64},
        {"signed": "2099-01-01T00:00:00+00:00"},
        {"signed": "some time"},
        {"verdict": None},
    ],
    ids=str,
)
def test_a_signed_statement_does_not_contradict_the_evidence(
    signed: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    monkeypatch.chdir(signed)
    verify = ["verify", "evidence.json", "--signer", "key.pub", "-q"]
    assert execute(verify) == 0
    signed_anew(signed, **changes)
    assert execute(verify) == 1


def test_small_numbers_and_small_chances_are_compared_by_their_own_size(tmp_path: Path) -> None:
    rows = ["race,dose,pred"]
    for race, mean, rate in (("a", 4, 0.2), ("b", 2, 0.7), ("c", 3, 0.3)):
        rows += [
            f"{race},{(mean + i % 7 / 7) * 1e-10:.6e},{int(i % 100 < 100 * rate)}"
            for i in range(700)
        ]
    (tmp_path / "d.csv").write_text("\n".join(rows))
    plan = Plan.parse(
        """
        equipoise: 1
        seed: 7
        trail: {source: d.csv, prediction: pred}
        audits:
          - {audit: certify, name: dose, claim: {kind: gap, metric: {kind: metric, name: dose,
             value: dose}, across: [race]}}
          - {audit: flag, name: flags, claim: {kind: gap, metric: selection_rate, across: [race]},
             above: 0.05}
          - {audit: joint_test, name: joint, claim: {kind: gap, metric: selection_rate,
             across: [race]}}
        """
    )
    true = run(plan, folder=tmp_path)
    assert verify(true, folder=tmp_path).complete
    changed = []
    for entry, field in [(0, name) for name in ("value", "lower", "upper", "disparity")] + [
        (1, "p"),
        (1, "p_adjusted"),
        (2, "p"),
    ]:
        for factor in (1 + 1e-5, 1000.0, 0.0):
            data = json.loads(true.to_json())
            finding = data["entries"][entry]["finding"]
            row = finding if entry == 2 else finding["rows"][1]
            if not isinstance(row.get(field), float):
                continue
            assert abs(row[field]) < 1e-9
            row[field] *= factor
            if not verify(eq.Evidence.from_dict(data, strict=False), folder=tmp_path).holds:
                changed.append((entry, field, factor))
    assert len(changed) >= 18
    assert {field for _, field, _ in changed} >= {"value", "lower", "upper", "disparity", "p"}


# --- Ledgers: a chain without a key, and what shows beside it ---


@pytest.fixture
def watched(signed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of three batches, and what can be made of it without the key."""
    monkeypatch.chdir(signed)
    claim = eq.gap("selection_rate", across="g")
    ledger = eq.Ledger.start("l", [claim])
    for month in range(3):
        rows = [i % (2 + month) % 2 for i in range(60)]
        made = eq.from_arrays(None, rows, sensitive_features={"g": ["a", "b"] * 30})
        ledger.add(made, f"2026-0{month + 1}")
    lines = [json.loads(line) for line in Path("l").read_text().splitlines()]

    def write(name: str, kept: list[dict[str, Any]]) -> None:
        kept = [dict(line) for line in kept]
        for before, line in itertools.pairwise(kept):
            line["previous"] = before["hash"]
            plain = {key: value for key, value in line.items() if key != "hash"}
            line["hash"] = hashlib.sha256(
                json.dumps(
                    plain, sort_keys=True, ensure_ascii=False, separators=(",", ":")
                ).encode()
            ).hexdigest()
        texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in kept)
        Path(name).write_text("".join(f"{text}\n" for text in texts))

    write("same", lines)
    write("cut", lines[:-1])
    write("without", [*lines[:2], lines[3]])
    assert Path("same").read_text() == Path("l").read_text()
    return signed


def test_what_a_chain_without_a_key_does_not_show_is_said_and_can_be_shown(
    watched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["monitor", "verify", "l"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    digest = eq.Ledger.open("l").digests()[-1]
    assert f"digest of the last of 3 batches: {digest}" in said
    assert "Nothing here shows that later batches were left out" in said
    early = eq.Ledger.open("l").digests()[2]
    for name in ("cut", "without"):
        # on their own they fit together
        assert execute(["monitor", "verify", name]) == 0
        assert execute(["monitor", "verify", name, "--expect", digest]) == 1
        assert execute(["monitor", "verify", name, "--expect", digest[:16]]) == 1
    assert execute(["monitor", "verify", "l", "--expect", digest]) == 0
    # batches added since are no fault
    assert execute(["monitor", "verify", "l", "--expect", early]) == 0
    assert execute(["monitor", "verify", "l", "--expect", "ab"]) == 3


def test_a_ledger_can_be_signed(watched: Path) -> None:
    assert execute(["sign", "l", "--key", "key"]) == 0
    by_key = ["--signer", "key.pub", "--signature", "l.sig", "-q"]
    assert execute(["monitor", "verify", "l", "--signer", "key.pub", "-q"]) == 0
    for name in ("cut", "without"):
        assert execute(["monitor", "verify", name, *by_key]) == 1
        assert execute(["monitor", "verify", name, "--signer", "key.pub"]) == 3
    rows = eq.from_arrays(None, [0, 1] * 30, sensitive_features={"g": ["a", "b"] * 30})
    eq.Ledger.open("l").add(rows, "2026-04")
    assert execute(["monitor", "verify", "l", *by_key]) == 0
    assert execute(["monitor", "verify", "l", "--signer", "other", "--signature", "l.sig"]) == 3
    # that of evidence is none of a ledger, and no signature shows anything without a key
    wrong = ["--signer", "key.pub", "--signature", "evidence.json.sig", "-q"]
    assert execute(["monitor", "verify", "l", *wrong]) == 1
    assert execute(["monitor", "verify", "l", "--signature", "l.sig"]) == 3


# --- Malformed files ---

JUNK: list[Any] = [
    None, True, -1, 0, 1e308, -1e-320, 10**40, "", "x", "\ud800", "\x00", "nan", [], {}, [[]],
    {"kind": "gap"}, {"number": "inf"}, {"mapping": [[1]]}, [None] * 3, {"": {}}, "9" * 5000,
    {"kind": ["list"]}, {"number": {}}, {"mapping": [["a", {"kind": 1}]]},
]  # fmt: skip


def mutated(data: Any, rng: np.random.Generator) -> Any:
    """The file with one to three places replaced, removed, doubled or wrapped."""
    made = json.loads(json.dumps(data))
    for _ in range(int(rng.integers(1, 4))):
        holder, key, steps = {"": made}, "", int(rng.integers(1, 9))
        for _ in range(steps):
            inner: Any = holder[key]
            if isinstance(inner, dict) and inner:
                holder, key = inner, list(inner)[int(rng.integers(len(inner)))]
            elif isinstance(inner, list) and inner:
                holder, key = inner, int(rng.integers(len(inner)))  # type: ignore[assignment]
            else:
                break
        if holder == {"": made}:
            continue
        what = int(rng.integers(6))
        if what == 0:
            del holder[key]
        elif what == 1:
            holder[key] = [holder[key], holder[key]]
        elif what == 2:
            holder[key] = {"kind": holder[key]}
        else:
            holder[key] = copy.deepcopy(JUNK[int(rng.integers(len(JUNK)))])
    return made


def test_malformed_evidence_gives_one_error(folder: Path) -> None:
    honest = json.loads((folder / "evidence.json").read_text())
    rng, read = np.random.default_rng(8), 0
    for _ in range(number(400, 10_000)):
        data = mutated(honest, rng)
        text = json.dumps(data)
        try:
            made = Evidence.from_json(text, strict=False)
            assert made.seal
            assert made.verdict
            made.sentences()
            for one in made.entries:
                one.finding.sentences()
            if made.plan is not None:
                Plan.from_plain(made.plan)
            read += 1
        except eq.EquipoiseError:
            continue
    assert read
    for text in ("", "[", "[" * 100_000, '{"a": ' * 5000, "9" * 5000, "NaN", '"\\ud800"', "{}"):
        with pytest.raises(eq.EquipoiseError):
            Evidence.from_json(text)


def given_a_number(data: dict[str, Any]) -> None:
    data["claim"]["given"] = [1]


SENSELESS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "a level of 401 digits": ("bounds", lambda found: found.update(level=10**400)),
    "a bound of 401 digits": ("bounds", lambda found: found["rows"][0].update(upper=10**400)),
    "an infinite bound": ("bounds", lambda found: found["rows"][0].update(upper=float("1e999"))),
    "half a sign": ("bounds", lambda found: found["provenance"].update(fingerprint="\ud800")),
    "half a sign as a name": ("bounds", lambda found: found["claim"].update({"\ud800": 1})),
    "a level of 1e308": ("table", lambda found: found.update(level=1e308)),
    "a level below nothing": ("table", lambda found: found.update(level=-0.5)),
    "an unknown family": ("joint", lambda found: found.update(family="x")),
    "factors that are no names": ("given", given_a_number),
    "an unknown side": ("bounds", lambda found: found.update(side="up")),
    "no claim": ("bounds", lambda found: found.update(claim=[])),
}


@pytest.fixture(scope="module")
def plenty(folder: Path) -> dict[str, Any]:
    """Evidence of several kinds, as data."""
    text = (
        "{equipoise: 1, seed: 7, trail: {source: decisions.csv, label: y, prediction: d}, audits: ["
        "{audit: certify, name: bounds, claim: CLAIM, tolerance: 0.4},"
        "{audit: describe, name: table, claim: CLAIM}, {audit: joint_test, name: joint, claim: "
        "CLAIM}, {audit: certify, name: given, claim: {kind: gap, metric: accuracy, across: [g], "
        "given: [h]}, tolerance: 0.4}]}"
    ).replace("CLAIM", "{kind: gap, metric: accuracy, across: [g]}")
    made: dict[str, Any] = json.loads(run(Plan.parse(text), folder=folder).to_json())
    return made


@pytest.mark.parametrize("case", SENSELESS)
def test_what_makes_no_sense_is_one_error_at_the_door(
    plenty: dict[str, Any],
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each of these was an exception of some other kind, in one command or another."""
    monkeypatch.chdir(tmp_path)
    name, change = SENSELESS[case]
    data = copy.deepcopy(plenty)
    change(next(one["finding"] for one in data["entries"] if one["name"] == name))
    content = {key: value for key, value in data.items() if key != "seal"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    data["seal"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    Path("e.json").write_text(json.dumps(data).replace("Infinity", "1e999"))
    for command in (
        ["verify", "e.json"],
        ["report", "e.json"],
        ["export", "e.json", "card.md", "--to", "model-card"],
        ["explain", "e.json"],
    ):
        assert execute(command) == 3, command
        said = capsys.readouterr()
        assert "unforeseen" not in said.err
        assert said.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.json"]
