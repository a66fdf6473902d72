"""Logs of evaluations of language models as tables: one row for each answer to each item.

Inspect writes `.eval` files (a zip of `header.json` and one JSON file for each sample), or the same
in one `.json`; the LM Evaluation Harness writes `samples_*.jsonl`. Both tell which item a row is an
answer to, so that several answers to one item are not taken for independent people.
"""

import json
import math
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from equipoise._validate import listing
from equipoise.errors import TrailError

INSPECT_VERSIONS = (1, 2)
LARGEST = 4_000_000_000
"""Bytes of all samples of a log, unpacked."""
LONGEST = 200
"""Signs of a text that may be an attribute; longer ones are prompts and answers."""
#: How Inspect's scorers write correct, incorrect, partly correct and no answer.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
#: What the harness writes beside the metrics of a sample.
_BESIDE = frozenset(
    ["doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
     "doc_hash", "prompt_hash", "target_hash"]
)  # fmt: skip

#: Numbers of answers of which one should be right, for which the chance is worked out.
PASSES = (2, 3, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100)
_ABOUT = frozenset(["item", "epoch", "task", "model"])

Row = dict[str, object]


def is_harness(file: str) -> bool:
    """Whether a file of JSON lines is a log of samples of the harness."""
    if not re.fullmatch(r"samples_.*\.jsonl", Path(file).name):
        return False
    with open(file, encoding="utf-8", errors="replace") as stream:
        first = stream.readline()
    try:
        found = json.loads(first)
    except ValueError:
        return False
    return isinstance(found, dict) and {"doc_id", "doc"} <= found.keys()


def harness_rows(files: Iterable[str]) -> list[Row]:
    """The samples of logs of the harness."""
    rows: list[Row] = []
    for file in files:
        called = Path(file).name
        task = re.sub(r"^samples_|(_\d{4}-\d\d-\d\dT.*)?\.jsonl$", "", called)
        own: list[Row] = []
        with open(file, encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    own.append(_harness_row(line, number, called, task))
        _check_once([row for row in own if "filter" in row], "filter", called)
        rows += own
    return rows


def _harness_row(line: str, number: int, called: str, task: str) -> Row:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise TrailError(f"{called}, line {number}, is no JSON: {error}.") from error
    if not isinstance(found, dict) or not {"doc_id", "doc"} <= found.keys():
        raise TrailError(
            f"{called}, line {number}, is no sample of the LM Evaluation Harness: it has no "
            "doc_id and doc."
        )
    row: Row = {"item": f"{task}/{found['doc_id']}", "task": task}
    if "filter" in found:
        row["filter"] = found["filter"]
    doc = found["doc"] if isinstance(found["doc"], dict) else {}
    scores = {name: value for name, value in found.items() if name not in _BESIDE}
    return _filled(row, {name: _score(value) for name, value in scores.items()}, doc, "doc")


def _check_once(rows: Sequence[Row], which: str, called: str) -> None:
    """Refuse a log in which an answer is written twice: it would count twice."""
    seen = Counter((row["item"], row[which]) for row in rows)
    again = [key for key, times in seen.items() if times > 1]
    if again:
        (item, of), more = again[0], sum(seen[key] - 1 for key in again)
        raise TrailError(
            f"{called} holds item {item!r}, {which} {of!r}, more than once; in all {more:,} rows "
            "repeat another one. Keep one of each: copies are no further answers."
        )


def inspect_rows(file: str) -> tuple[list[Row], tuple[str, ...]]:
    """The samples of a log of Inspect, and what a finding must tell of it.

    A sample that ended with an error has no score here, whatever was written, and so is left out.
    """
    called = Path(file).name
    header, samples = _inspect_parts(file, called)
    version = header.get("version")
    if version not in INSPECT_VERSIONS:
        raise TrailError(
            f"{called} is a log of Inspect of version {version!r}; known are "
            f"{listing(INSPECT_VERSIONS)}. Write it again with an Inspect that writes one of them."
        )
    about = header.get("eval")
    about = about if isinstance(about, dict) else {}
    rows, failed = [], 0
    for sample in samples:
        rows.append(_inspect_row(sample, about, called))
        failed += _failed(sample)
    if not rows:
        raise TrailError(f"{called} holds no sample. Was the evaluation run to its end?")
    _check_once(rows, "epoch", called)
    _add_passes(rows)
    status = header.get("status")
    told = [] if status == "success" else [f"the evaluation ended with the status {status!r}"]
    if failed:
        told.append(f"{failed:,} of {len(rows):,} samples ended with an error and have no score")
    return rows, tuple(told)


def _add_passes(rows: Sequence[Row]) -> None:
    """Beside each score of 0 and 1: the chance that one of k answers to the item is right.

    Of n answers of which c are right, 1 − C(n − c, k) / C(n, k) estimates it without bias. It is a
    value of the item, and stands in the first of its rows only: a mean over all rows would count
    items by how often they were asked.
    """
    items: dict[object, list[Row]] = {}
    for row in rows:
        items.setdefault(row["item"], []).append(row)
    fewest = min(len(own) for own in items.values())
    named = dict.fromkeys(name for row in rows for name in row if name not in _ABOUT)
    for name in named:
        if not all(row.get(name) in (0.0, 1.0) and type(row[name]) is float for row in rows):
            continue
        for k in (k for k in PASSES if k <= fewest):
            for own in items.values():
                wrong = sum(row[name] == 0.0 for row in own)
                passed = 1 - math.comb(wrong, k) / math.comb(len(own), k)
                for place, row in enumerate(own):
                    row.setdefault(f"{name}.pass@{k}", passed if place == 0 else None)


def _inspect_parts(file: str, called: str) -> tuple[Mapping[str, object], Iterator[object]]:
    if not zipfile.is_zipfile(file):
        whole = _plain(file, called)
        if not isinstance(whole, dict) or "eval" not in whole:
            raise TrailError(f"{called} is no log of Inspect: it has no part 'eval'.")
        samples = whole.get("samples")
        return whole, iter(samples if isinstance(samples, list) else ())
    with _whole(called), zipfile.ZipFile(file) as archive:
        if "header.json" not in archive.namelist():
            raise TrailError(
                f"{called} is no finished log of Inspect: it holds no header.json. Was the "
                "evaluation run to its end?"
            )
        header = _json(archive.read("header.json"), f"header.json in {called}")
        if not isinstance(header, dict):
            raise TrailError(f"header.json in {called} is no object.")
        if sum(part.file_size for part in archive.infolist()) > LARGEST:
            raise TrailError(f"{called} would take over {LARGEST / 1e9:g} GB unpacked.")
    return header, _samples(file, called)


def _plain(file: str, called: str) -> object:
    """A log in one JSON file, unless it is what is left of an archive."""
    with open(file, "rb") as stream:
        text = stream.read(4)
        if text == b"PK\x03\x04":
            raise TrailError(_BROKEN.format(called))
        return _json(text + stream.read(), called)


_BROKEN = "{} is a broken archive: its end is missing, or it is damaged. Copy it again."


@contextmanager
def _whole(called: str) -> Iterator[None]:
    """Say of a damaged archive that it is one."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise TrailError(_BROKEN.format(called)) from error


def _samples(file: str, called: str) -> Iterator[object]:
    with _whole(called), zipfile.ZipFile(file) as archive:
        for name in sorted(archive.namelist()):
            if re.fullmatch(r"samples/[^/]+\.json", name):
                yield _json(archive.read(name), f"{name} in {called}")


def _json(text: bytes, called: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise TrailError(f"{called} is no JSON: {error}.") from error


def _inspect_row(sample: object, about: Mapping[str, object], called: str) -> Row:
    if not isinstance(sample, dict) or "id" not in sample:
        raise TrailError(f"A sample of {called} has no id.")
    row: Row = {
        "item": str(sample["id"]),
        "epoch": sample.get("epoch", 1),
        "task": about.get("task"),
        "model": about.get("model"),
    }
    scores = None if _failed(sample) else sample.get("scores")
    graded: dict[str, object] = {}
    for name, score in (scores if isinstance(scores, dict) else {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            graded |= {f"{name}.{part}": _score(each) for part, each in value.items()}
        else:
            graded[name] = _score(value)
    metadata = sample.get("metadata")
    return _filled(row, graded, metadata if isinstance(metadata, dict) else {}, "metadata")


def _failed(sample: object) -> bool:
    return isinstance(sample, dict) and bool(sample.get("error"))


def _score(value: object) -> object:
    """A score as a number, where it is one: grades, truth values and numbers."""
    if isinstance(value, bool):
        return float(value)
    return _GRADES.get(value, value) if isinstance(value, str) else value


def _filled(
    row: Row, scores: Mapping[str, object], beside: Mapping[str, object], where: str
) -> Row:
    """A row with its scores and with what is known of its item, texts that are prompts left out."""
    for name, value in scores.items():
        if value is None or isinstance(value, int | float | str):
            row[name if name not in row else f"score.{name}"] = value
    for name, value in beside.items():
        plain = value is None or isinstance(value, int | float)
        if plain or (isinstance(value, str) and len(value) <= LONGEST and "\n" not in value):
            row[name if name not in row else f"{where}.{name}"] = value
    return row


def repeated(rows: Sequence[Row]) -> bool:
    """Whether some item has several answers."""
    return len({row["item"] for row in rows}) < len(rows)
