"""What every case must end in: a finding that is sound, or an error that names the problem."""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equipoise as eq
from equipoise.findings import Finding, Verdict, from_dict

#: Longer messages bury what they say.
LONGEST = 4000
#: Fields that repeat what was asked, or a group's own level in the table: these may be infinite.
ECHOED = {"method", "claim", "budget", "where"}


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or None where it refuses properly; a warning counts as a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return call()
        except eq.EquipoiseError as error:
            check_message(error)
            return None


def check_message(error: eq.EquipoiseError) -> None:
    said = str(error)
    assert len(said.split()) >= 4, f"says nothing: {said!r}"
    assert len(said) <= LONGEST, f"{len(said)} characters: {said[:300]!r}"
    assert "Traceback" not in said, said


def check_finding(found: Any) -> None:
    """Numbers are numbers, words are words, and the finding survives being stored."""
    assert isinstance(found, Finding), type(found)
    plain = found.to_dict()
    wrong = list(_not_numbers(plain, ()))
    assert not wrong, f"not a number: {wrong[:5]}"
    stored = json.loads(json.dumps(plain, allow_nan=False, ensure_ascii=False))
    again = from_dict(stored).to_dict()
    assert json.dumps(again) == json.dumps(stored), "changed by being stored"
    sentences = found.sentences()
    assert sentences
    assert all(isinstance(sentence, str) and sentence for sentence in sentences), sentences
    said = _without_names(found, " ".join(sentences)).split()
    assert not {"nan", "inf", "-inf", "nan,", "nan.", "inf."} & set(said), sentences
    assert str(found)
    assert found._repr_html_()
    check_sense(found)


def check_sense(found: Finding) -> None:
    """No bound excludes its estimate, no adjustment helps, nobody differs from themselves."""
    method = getattr(found, "method", None)
    default = isinstance(method, Mapping) and method.get("kind") == "pivotal"
    for row in found.rows:
        p, adjusted = getattr(row, "p", None), getattr(row, "p_adjusted", None)
        assert p is None or adjusted is None or adjusted >= p, row
        if getattr(row, "note", "") == "the group is its own target":
            ends = [getattr(row, name, None) for name in ("lower", "upper", "verdict", "p")]
            assert ends == [None] * 4, row
            assert not getattr(row, "flagged", False), row
            assert not getattr(row, "certified", False), row
        seen = getattr(row, "disparity", None)
        if default and seen is not None:
            low, high = getattr(row, "lower", None), getattr(row, "upper", None)
            assert low is None or low <= seen + 1e-12 * abs(seen), row
            assert high is None or high >= seen - 1e-12 * abs(seen), row


def _without_names(found: Finding, said: str) -> str:
    """Sentences without the names of groups and metric: those may well be called inf."""
    names = {str(getattr(row, "group", "")) for row in found.rows} | {getattr(found, "metric", "")}
    for name in sorted((name for name in names if "nan" in name or "inf" in name), key=len)[::-1]:
        said = said.replace(name, "this one")
    return said


def _not_numbers(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Places that hold NaN or an infinity; options that are echoed may be infinite."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{'.'.join(path)} is {value}"
    elif isinstance(value, Mapping):
        if set(value) == {"number"} and not ECHOED & set(path):
            yield f"{'.'.join(path)} is {value}"
        for key, item in value.items():
            yield from _not_numbers(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _not_numbers(item, (*path, str(i)))


def shows_nothing(found: Any) -> None:
    """No flag, no certificate, and no verdict but that nothing can be told."""
    said = found.conclusion
    assert said in (None, Verdict.UNDETERMINED), (said, found.sentences())
    for row in found.rows:
        state = {name: getattr(row, name, None) for name in ("flagged", "certified", "verdict")}
        assert not state["flagged"], row
        assert not state["certified"], row
        assert str(state["verdict"]) not in ("kept", "exceeded"), row
