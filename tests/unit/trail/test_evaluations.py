"""Logs of evaluations of language models: Inspect's and the harness's, as they are documented."""

import itertools
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq

GROUPS = ("man", "woman", "Kemal", "Maria", "Wei", "Ana")


def inspect_log(path: Path, samples: list[dict[str, Any]], **header: Any) -> Path:
    """A log as Inspect writes it."""
    top = {"version": 2, "status": "success", "eval": {"task": "hiring", "model": "m"}, **header}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", json.dumps(top))
    return path


def sample(item: int, epoch: int, grade: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "id": f"q{item}",
        "epoch": epoch,
        "input": "prompt\n" * 50,
        "target": "yes",
        "messages": [],
        "metadata": metadata,
        "scores": {"correct": {"value": grade, "answer": "x"}, "tone": {"value": {"kind": 0.25}}},
    }


def _grade() -> eq.Claim:
    return eq.gap(eq.metric("grade", "score"), across="name")


def test_answers_of_inspect_are_rows_and_items_clusters(tmp_path: Path) -> None:
    samples = [
        sample(i, e, "CIPN"[(i + e) % 4], name=GROUPS[i % 2], prompt="long " * 100)
        for i in range(8)
        for e in (1, 2, 3)
    ]
    trail = eq.read(inspect_log(tmp_path / "run.eval", samples), score="correct")
    assert trail.roles.cluster == "item"
    assert "items are clusters" in trail.notes[0]
    assert set(trail.attributes) == {"epoch", "task", "model", "tone.kind", "name"}
    found = eq.describe(trail, eq.gap(eq.metric("grade", "score"), across="name"))
    assert sum(row.n for row in found) == 24
    wanted = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
    for g in (0, 1):
        own = [wanted["CIPN"[(i + e) % 4]] for i in range(8) if i % 2 == g for e in (1, 2, 3)]
        assert found.ask(name=GROUPS[g]).value == pytest.approx(float(np.mean(own)))
    # one answer to every item leaves rows as they are
    once = inspect_log(tmp_path / "once.eval", [s for s in samples if s["epoch"] == 1])
    assert eq.read(once).roles.cluster is None
    cut = inspect_log(tmp_path / "cut.eval", samples[:3], status="error")
    unfinished = eq.read(cut, score="correct")
    assert "status 'error'" in unfinished.notes[0]
    # what is wrong with a log stands in the findings made of it
    one = eq.describe(unfinished, _grade())
    assert one.provenance.source == "cut.eval (the evaluation ended with the status 'error')"


def test_pass_at_k_is_that_of_all_choices_of_k_answers(tmp_path: Path) -> None:
    right = np.random.default_rng(4).random((6, 5)) < 0.4
    samples = [
        sample(i, e + 1, "C" if right[i, e] else "I", name=GROUPS[i % 2])
        for i in range(6)
        for e in range(5)
    ]
    trail = eq.read(inspect_log(tmp_path / "run.eval", samples), score="correct")
    names = {name for name in trail.schema if "pass@" in name}
    assert names == {f"correct.pass@{k}" for k in (2, 3, 4, 5)}
    for k in (2, 5):
        passes = eq.metric("passes", f"column('correct.pass@{k}')", low=0, high=1)
        found = eq.describe(trail, eq.gap(passes, across="name"))
        for g in (0, 1):
            each = [
                np.mean([any(some) for some in itertools.combinations(right[i], k)])
                for i in range(6)
                if i % 2 == g
            ]
            assert found.ask(name=GROUPS[g]).value == pytest.approx(float(np.mean(each)))


def test_samples_of_the_harness(tmp_path: Path) -> None:
    lines = [
        {
            "doc_id": i,
            "doc": {"question": "why " * 100, "dialect": "ab"[i % 2], "acc": "taken"},
            "target": "A",
            "arguments": [],
            "resps": [["A"]],
            "filtered_resps": ["A"],
            "filter": filter_name,
            "doc_hash": "x",
            "acc": float(i % 3 == 0),
        }
        for i in range(12)
        for filter_name in ("strict", "loose")
    ]
    path = tmp_path / "samples_toy_2026-01-01T00-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    trail = eq.read(path, prediction="acc")
    assert trail.roles.cluster == "item"
    assert set(trail.attributes) == {"task", "filter", "dialect", "doc.acc"}
    found = eq.describe(trail, eq.gap("selection_rate", across="dialect"))
    assert {row.group: row.n for row in found} == {"a": 12, "b": 12}
    # another file of that name is what it always was
    other = tmp_path / "samples_of_mine.jsonl"
    other.write_text('{"a": 1, "b": "x"}\n{"a": 0, "b": "y"}\n')
    assert eq.read(other, prediction="a").roles.cluster is None


def test_pass_at_k_counts_items_and_not_how_often_they_were_asked(tmp_path: Path) -> None:
    # half of the items are always right and asked twice, the others never, and ten times
    samples = [
        sample(i, e, "C" if i < 20 else "I", name=GROUPS[i % 2])
        for i in range(40)
        for e in range(1, (2 if i < 20 else 10) + 1)
    ]
    trail = eq.read(inspect_log(tmp_path / "run.eval", samples))
    assert trail.roles.cluster == "item"
    passes = eq.metric("passes", "column('correct.pass@2')", low=0, high=1)
    for found in (
        eq.describe(trail, eq.gap(passes, across="name")),
        eq.certify(trail, eq.gap(passes, across="name"), rng=1),
    ):
        assert [(row.n, row.value) for row in found.rows] == [(20, 0.5), (20, 0.5)]


def test_answers_written_twice_are_refused(tmp_path: Path) -> None:
    samples = [sample(i, e, "C", name="Wei") for i in range(3) for e in (1, 2)]
    path = tmp_path / "run.eval"
    with zipfile.ZipFile(inspect_log(path, samples), "a") as archive:
        archive.writestr("samples/again.json", json.dumps(samples[2]))
    with pytest.raises(eq.TrailError, match=r"'q1', epoch 1, more than once; in all 1 rows"):
        eq.read(path)
    line = json.dumps({"doc_id": 1, "doc": {}, "acc": 1, "filter": "none"}) + "\n"
    log = tmp_path / "samples_a.jsonl"
    log.write_text(line * 2)
    with pytest.raises(eq.TrailError, match="'none', more than once"):
        eq.read(log)


def test_samples_that_ended_with_an_error_are_left_out_and_told(tmp_path: Path) -> None:
    samples = [sample(i, 1, "CI"[i % 2], name=GROUPS[i % 2]) for i in range(10)]
    samples[3]["error"] = {"message": "no answer"}
    samples[4] |= {"error": {"message": "no answer"}, "scores": {}}
    samples[5]["error"] = None
    path = inspect_log(tmp_path / "run.eval", samples)
    trail = eq.read(path, score="correct")
    assert trail.notes[0] == "2 of 10 samples ended with an error and have no score."
    found = eq.describe(trail, _grade())
    assert found.provenance.excluded == {"missing score": 2}
    assert found.provenance.source.endswith(
        "(2 of 10 samples ended with an error and have no score)"
    )


def test_what_is_left_of_an_archive_is_said_to_be_broken(tmp_path: Path) -> None:
    path = inspect_log(tmp_path / "run.eval", [sample(i, 1, "C") for i in range(9)])
    whole = path.read_bytes()
    torn = tmp_path / "torn.eval"
    torn.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(eq.TrailError, match="broken archive"):
        eq.read(torn)
    # a sample whose bytes were changed
    place = whole.index(b'"target"')
    torn.write_bytes(whole[:place] + b"#target#" + whole[place + 8 :])
    with pytest.raises(eq.TrailError, match="broken archive"):
        eq.read(torn)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"version": 9}, "version 9; known are 1, 2"),
        ({"version": None}, "version None"),
    ],
)
def test_a_log_of_another_version_is_refused(
    tmp_path: Path, header: dict[str, Any], said: str
) -> None:
    path = inspect_log(tmp_path / "run.eval", [sample(1, 1, "C")], **header)
    with pytest.raises(eq.TrailError, match=said):
        eq.read(path)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    empty = inspect_log(tmp_path / "empty.eval", [])
    with pytest.raises(eq.TrailError, match="holds no sample"):
        eq.read(empty)
    started = tmp_path / "started.eval"
    with zipfile.ZipFile(started, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    with pytest.raises(eq.TrailError, match=r"no header\.json"):
        eq.read(started)
    text = tmp_path / "text.eval"
    text.write_text("hello")
    with pytest.raises(eq.TrailError, match="no JSON"):
        eq.read(text)
    torn = tmp_path / "samples_torn.jsonl"
    torn.write_text('{"doc_id": 1, "doc": {}, "acc": 1}\n{"doc_id": 2, "do')
    with pytest.raises(eq.TrailError, match="line 2, is no JSON"):
        eq.read(torn)


def test_epochs_as_independent_rows_would_ring_far_too_often(tmp_path: Path) -> None:
    """Answers to one item are alike: 40 items of 5 epochs in each of six groups, all alike."""
    alarms = {"items": 0, "rows": 0}
    worlds = 20
    for world in range(worlds):
        rng = np.random.default_rng([7, world])
        skill = rng.beta(0.4, 0.4, 240)
        samples = [
            sample(i, e, bool(rng.random() < skill[i]), name=GROUPS[i % 6])
            for i in range(240)
            for e in range(1, 6)
        ]
        log = inspect_log(tmp_path / f"{world}.eval", samples)
        trail = eq.read(log, prediction="correct")
        claim = eq.gap("selection_rate", across="name")
        alarms["items"] += bool(eq.flag(trail, claim, fdr=0.05, rng=1).flagged)
        columns = [trail.frame.to_native().fetchnumpy()[name] for name in ("correct", "name")]
        plain = eq.from_arrays(y_pred=columns[0], sensitive_features={"name": columns[1]})
        alarms["rows"] += bool(eq.flag(plain, claim, fdr=0.05, rng=1).flagged)
    # at 5 %, more than four of twenty have a chance of 0.3 %
    assert alarms["items"] <= 4
    assert alarms["rows"] >= 8
