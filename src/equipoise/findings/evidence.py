"""The evidence: every finding of an audit with all that is needed to perform it again."""

import dataclasses
import datetime
import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from equipoise._codec import DRAFT, Schema
from equipoise._files import read_text, write_atomically
from equipoise._validate import known_name, listing, short
from equipoise._version import __version__
from equipoise.errors import EquipoiseError
from equipoise.findings.finding import STORED, Finding, from_dict, kinds_of_findings
from equipoise.findings.words import Verdict, level_text, percent, plural, together

SCHEMA = "equipoise-evidence/1"
"""Name and version of the file format."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "duckdb")

Asked = Literal["confirmatory", "exploratory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One finding of the evidence, under a name."""

    name: str
    """The name under which the plan, or whoever added it, asked for it."""
    asked: Asked
    """Confirmatory if a plan fixed beforehand asked for it, exploratory if it was asked later."""
    finding: Finding
    """What was found, also where that is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All findings of an audit, the plan behind them, and where the numbers come from.

    >>> import equipoise as eq
    >>> found = eq.flag(eq.datasets.compas(), eq.gap("false_positive_rate", across="race"))
    >>> evidence = eq.Evidence.of(found, title="COMPAS")
    >>> evidence.verdict, [entry.asked for entry in evidence.entries]
    (<Verdict.EXCEEDED: 'exceeded'>, ['exploratory'])
    """

    title: str
    """What was audited, in words."""
    entries: tuple[Entry, ...]
    """The findings, in the order they were asked for."""
    plan: Mapping[str, Any] | None
    """The plan in plain form; None if there was none."""
    plan_hash: str | None
    """Digest of the plan."""
    versions: Mapping[str, str]
    """Versions of the packages that computed the numbers."""
    created: str
    """When the evidence was made, in universal time."""
    notes: tuple[str, ...] = ()
    """What was decided in reading the table, such as which words were taken as missing."""
    input: Mapping[str, str] | None = None
    """Name and SHA-256 digest of the file the rows came from; None if they came from no file."""
    stated: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    """What the file it was read from states of itself; empty if it was made here."""

    @classmethod
    def of(cls, *findings: Finding, title: str = "Audit") -> "Evidence":
        """Findings that were asked for one by one, as evidence to store or report."""
        for found in findings:
            if not isinstance(found, Finding):
                raise EquipoiseError(
                    f"Evidence is made of findings, such as flag(…) returns; got {found!r}."
                )
        named = zip(_names(findings), findings, strict=True)
        return assemble(title, [(name, "exploratory", found) for name, found in named])

    @property
    def fingerprint(self) -> str:
        """Digest of the data behind all findings: alike from every engine and row order."""
        # Neither the order of the findings nor how many share a table makes other data of it.
        marks = sorted({entry.finding.provenance.fingerprint for entry in self.entries})
        return hashlib.sha256("\n".join(marks).encode()).hexdigest()

    @property
    def seal(self) -> str:
        """Digest of everything in the evidence: it shows a slip, not a forgery.

        There is no key in it, so whoever changes the content can work it out anew. `equipoise
        verify` performs the audit again, and only a signature says who answers for the file.
        """
        return _seal_of(self._content())

    def contradictions(self) -> tuple[tuple[str, str, str], ...]:
        """What the file states of itself but its content does not give: name, stated, given."""
        # The verdict and the fingerprint follow from the findings; the seal covers all the rest.
        given = {"verdict": str(self.verdict), "fingerprint": self.fingerprint, "seal": self.seal}
        return tuple(
            (name, self.stated[name], value)
            for name, value in given.items()
            if name in self.stated and self.stated[name] != value
        )

    @property
    def verdict(self) -> Verdict:
        """What all findings show together; a single violation outweighs everything else.

        Audits that can only find violations, such as flags, say nothing when they find none: fair
        is shown only by audits that could have shown otherwise.
        """
        found = [entry.finding for entry in self.entries]
        return together(one.conclusion for one in found if not one.silent)

    @property
    def conclusion(self) -> Verdict | None:
        """The verdict; None if no finding has a limit to judge by."""
        limited = any(entry.finding.conclusion is not None for entry in self.entries)
        return self.verdict if limited or not self.entries else None

    def stops(self, conclusion: Verdict | None, *, undetermined_fails: bool) -> bool:
        """Whether a finding of this conclusion stops a build that asks for all of them."""
        return stops(conclusion, self.verdict, undetermined_fails=undetermined_fails)

    def entry(self, name: str) -> Entry:
        """The entry of that name; an error says which there are."""
        known_name("Finding", name, [entry.name for entry in self.entries], EquipoiseError)
        return next(entry for entry in self.entries if entry.name == name)

    def add(self, finding: Finding, name: str) -> "Evidence":
        """The evidence with one more finding, marked as asked after looking."""
        if any(entry.name == name for entry in self.entries):
            raise EquipoiseError(f"There is a finding {name!r} already; choose another name.")
        later = Entry(name=name, asked="exploratory", finding=finding)
        return dataclasses.replace(self, entries=(*self.entries, later))

    def sentences(self) -> tuple[str, ...]:
        """The verdict in plain words, and what it rests on."""
        conclusions = [entry.finding.conclusion for entry in self.entries]
        return (
            self._said(),
            *counted_words(conclusions, [entry.asked for entry in self.entries]),
        )

    def _said(self) -> str:
        """The verdict in one sentence."""
        if self.conclusion is not None:
            return _VERDICTS[self.conclusion]
        shown = any(getattr(entry.finding, "tells_apart", False) for entry in self.entries)
        first = "Differences are shown; no" if shown else "No"
        return f"{first} limit was named, so none is kept or exceeded."

    def to_dict(self) -> dict[str, object]:
        """Plain data, which `Evidence.from_dict` reads back."""
        content = self._content()
        return {**content, "seal": _seal_of(content)}

    def _content(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "title": self.title,
            "verdict": str(self.verdict),
            "created": self.created,
            "plan_hash": self.plan_hash,
            "fingerprint": self.fingerprint,
            **({} if self.input is None else {"input": dict(self.input)}),
            "versions": dict(self.versions),
            "plan": self.plan,
            # files without any stay as they were
            **({"notes": list(self.notes)} if self.notes else {}),
            "entries": [
                {"name": e.name, "asked": e.asked, "finding": e.finding.to_dict()}
                for e in self.entries
            ],
        }

    def to_json(self) -> str:
        """The evidence as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    def save(self, path: str | Path) -> Path:
        """Write the evidence to a file: all of it or, if anything fails, nothing."""
        return write_atomically(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path, *, strict: bool = True) -> "Evidence":
        """Read the evidence that `save` wrote; ``strict=False`` lets changed files through."""
        return cls.from_json(read_text(path, "evidence"), called=Path(path).name, strict=strict)

    @classmethod
    def from_json(cls, text: str, *, called: str = "this text", strict: bool = True) -> "Evidence":
        """The evidence that `to_json` wrote."""
        try:
            data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
        # besides bad JSON: numbers of more digits than Python reads, and nesting without end
        except (ValueError, RecursionError) as error:
            line = f" from line {error.lineno} on" if hasattr(error, "lineno") else ""
            raise EquipoiseError(
                f"{called} is not evidence: it is no JSON{line}. Pass an evidence.json "
                "as run, check or audit wrote it."
            ) from error
        return cls.from_dict(data, called=called, strict=strict)

    @classmethod
    def from_dict(cls, data: object, *, called: str = "this", strict: bool = True) -> "Evidence":
        """The evidence that `to_dict` wrote; it must not contradict itself if ``strict``."""
        _refuse_impossible(data, called)
        whole = _whole(data, called)
        entries = tuple(_entry(item, called) for item in whole["entries"])
        _refuse_doubles([entry.name for entry in entries], called)
        made = cls(
            title=whole["title"],
            entries=entries,
            plan=whole["plan"],
            plan_hash=whole["plan_hash"],
            versions=whole["versions"],
            created=whole["created"],
            notes=tuple(whole.get("notes", ())),
            input=_input(whole.get("input"), called),
            stated={name: whole[name] for name in ("verdict", "fingerprint", "seal")},
        )
        for name, stated, given in made.contradictions() if strict else ():
            raise EquipoiseError(
                f"{called} was changed after it was written: its {name} is stated as {stated!r}, "
                f"but its content gives {given!r}. `equipoise verify` says which numbers differ."
            )
        return made


def assemble(
    title: str,
    found: Iterable[tuple[str, Asked, Finding]],
    plan: Mapping[str, object] | None = None,
    plan_hash: str | None = None,
    notes: tuple[str, ...] = (),
    input: Mapping[str, str] | None = None,
) -> Evidence:
    """Evidence made here and now, with the versions of this environment."""
    return Evidence(
        title=title,
        entries=tuple(Entry(name=n, asked=asked, finding=f) for n, asked, f in found),
        plan=plan,
        plan_hash=plan_hash,
        versions=_versions(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        notes=notes,
        input=input,
    )


_VERDICTS = {
    Verdict.EXCEEDED: "A violation is shown: at least one finding exceeds its limit.",
    Verdict.KEPT: "Within the limits: every audit that set one shows that it is kept.",
    Verdict.UNDETERMINED: "Undetermined: no violation is shown, and the data do not show that "
    "there is none.",
}

#: The fields of the file, and what each may hold.
_FIELDS: dict[str, Any] = {
    "schema": str,
    "title": str,
    "verdict": str,
    "created": str,
    "plan_hash": str | None,
    "fingerprint": str,
    "versions": Mapping,
    "plan": Mapping | None,
    "entries": list | tuple,
    "seal": str,
}


def _seal_of(content: Mapping[str, object]) -> str:
    # Sorted keys: the same content has one text only, in whatever order a file lists it.
    plain = json.dumps(content, sort_keys=True, ensure_ascii=False)
    # half a pair of surrogates, which a table may hold, has no place in UTF-8
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def stops(conclusion: Verdict | None, together: Verdict, *, undetermined_fails: bool) -> bool:
    """Whether a finding stops a build that asks for all of them, which say this ``together``."""
    if conclusion is not Verdict.UNDETERMINED:
        return conclusion is Verdict.EXCEEDED
    # beside limits that are kept, an audit that can only find violations may find none
    return undetermined_fails and together is not Verdict.KEPT


def counted_words(conclusions: Sequence[Verdict | None], asked: Sequence[Asked]) -> tuple[str, str]:
    """How many findings say what, and how many were planned."""
    planned = list(asked).count("confirmatory")
    return (
        f"{plural(len(conclusions), 'finding')}: "
        f"{_do(conclusions.count(Verdict.EXCEEDED), 'show')} a violation, "
        f"{_do(conclusions.count(Verdict.KEPT), 'show')} that the limit is kept, "
        f"{conclusions.count(Verdict.UNDETERMINED)} cannot tell, "
        f"{_do(conclusions.count(None), 'set')} no limit.",
        f"{planned} of them {'was' if planned == 1 else 'were'} fixed in a plan beforehand."
        if planned
        else "None of them was fixed in a plan beforehand: read them as exploratory.",
    )


def _do(number: int, verb: str) -> str:
    return f"{number} {verb}{'s' if number == 1 else ''}"


def _whole(data: object, called: str) -> Mapping[str, Any]:
    """The fields of a file, every one of them there and of its type."""
    if not isinstance(data, Mapping) or "schema" not in data:
        raise EquipoiseError(f"{called} is not evidence: it does not name its schema.")
    if str(data["schema"]).startswith("equipoise-published/"):
        raise EquipoiseError(
            f"{called} is what was published with small groups left out, from which nothing can be "
            "verified or reported again. Ask whoever ran the audit for the full evidence."
        )
    if not isinstance(data["schema"], str) or data["schema"] not in _READERS:
        raise EquipoiseError(
            f"{called} follows {short(repr(data['schema']))}; "
            f"this version of equipoise reads {listing(_READERS)}."
        )
    return _READERS[data["schema"]](data, called)


def _version_1(data: Mapping[str, Any], called: str) -> Mapping[str, Any]:
    missing = [name for name in _FIELDS if name not in data]
    strange = [name for name in data if name not in (*_FIELDS, "input", "notes")]
    if missing or strange:
        raise EquipoiseError(
            f"{called} is not whole: it lacks {listing(missing)}"
            f" and has the unknown fields {listing(strange)}."
        )
    wrong = [name for name, kind in _FIELDS.items() if not isinstance(data[name], kind)]
    if not wrong and not all(isinstance(number, str) for number in data["versions"].values()):
        wrong = ["versions"]
    notes = data.get("notes", [])
    if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
        wrong.append("notes")
    if wrong:
        raise EquipoiseError(f"{called} has fields of the wrong type: {listing(wrong)}.")
    return data


#: A reader for each version of the format. A version that was released keeps its reader: a new one
#: is added beside it, and turns old files into the fields of today.
_READERS: dict[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]] = {SCHEMA: _version_1}


def _entry(item: object, called: str) -> Entry:
    if not isinstance(item, Mapping) or set(item) != {"name", "asked", "finding"}:
        raise EquipoiseError(f"An entry of {called} needs name, asked and finding.")
    name, asked = item["name"], item["asked"]
    if not isinstance(name, str):
        raise EquipoiseError(f"The name of a finding in {called} must be text.")
    if asked != "confirmatory" and asked != "exploratory":
        known_name("asked", short(str(asked)), ("confirmatory", "exploratory"), EquipoiseError)
        raise EquipoiseError(f"asked must be text; got {short(repr(asked))}.")
    try:
        found = from_dict(item["finding"])
        _refuse_unspeakable(found)
    except EquipoiseError as error:
        raise EquipoiseError(f"In {called}, finding {short(name)!r}: {error}") from error
    return Entry(name=name, asked=asked, finding=found)


def _refuse_impossible(data: object, called: str) -> None:
    """Refuse numbers that no float holds, and texts that no file does, wherever they stand."""
    left = [data]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            left += one
        elif isinstance(one, str):
            if not _is_encodable(one):
                raise EquipoiseError(f"{called} holds {short(ascii(one))}, which is no text.")
        elif isinstance(one, int | float) and not -_LARGEST <= one <= _LARGEST:
            raise EquipoiseError(f"{called} holds a number that is larger than any of an audit.")


#: Beyond this a number is infinite, which evidence writes in words.
_LARGEST = sys.float_info.max


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: Fields that hold a confidence or a share of errors.
_SHARES = ("level", "rate")


def _refuse_unspeakable(found: Finding) -> None:
    """Refuse a finding whose fields have the right types and make no sense together."""
    for name in _SHARES:
        share = getattr(found, name, 0.5)
        if isinstance(share, int | float) and not 0 < share < 1:
            raise EquipoiseError(f"{name} must lie between 0 and 1; it is {short(repr(share))}.")
    try:
        # what is said of a finding rests on every part of it
        _ = (found.conclusion, found.question, found.headline(), found.sentences())
        _ = (found.cautions(), found.provenance.left_out(), found.sureness)
        part = getattr(found, "part", None)
        parts = [] if part is None else [part(name) for name in getattr(found, "names", ())]
    except EquipoiseError:
        raise
    except SENSELESS as error:
        raise EquipoiseError(
            f"its fields make no sense together ({type(error).__name__}: {short(str(error))}); "
            "it was not written by equipoise."
        ) from error
    for one in parts:
        _refuse_unspeakable(one)


#: What comes of numbers and words that no audit finds.
SENSELESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def _refuse_doubles(names: list[str], called: str) -> None:
    # A second entry under a name could say anything while the first one is looked at.
    for place, name in enumerate(names):
        if name in names[:place]:
            raise EquipoiseError(
                f"{called} has two findings named {short(name)!r}; evidence has one of each name, "
                "so this file was not written by equipoise."
            )


def _input(data: object, called: str) -> Mapping[str, str] | None:
    if data is None:
        return None
    if not isinstance(data, Mapping) or set(data) != {"name", "sha256"}:
        raise EquipoiseError(f"input of {called} needs name and sha256; got {short(repr(data))}.")
    if not all(isinstance(text, str) for text in data.values()):
        raise EquipoiseError(f"input of {called} must hold text; got {short(repr(data))}.")
    return data


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of a JSON text, in which no name may stand twice: readers would differ on it."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise EquipoiseError(f"{short(twice)!r} is given a second time in one object of the file.")
    return made


def _names(findings: Iterable[Finding]) -> list[str]:
    """A name for each finding: its kind, numbered where there are several."""
    names: list[str] = []
    for found in findings:
        base = found.kind.replace("_", " ")
        taken = sum(name == base or name.startswith(f"{base} ") for name in names)
        names.append(f"{base} {taken + 1}" if taken else base)
    return names


def _versions() -> dict[str, str]:
    found = {"equipoise": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # an engine that is not installed computed nothing
            continue
    return found


def _no_constant(word: str) -> float:
    raise EquipoiseError(f"Evidence holds no {word}; this file was not written by equipoise.")


# --- What the findings say together: who and how much, and what keeps them from speaking ---

_RANK = {Verdict.EXCEEDED: 0, Verdict.UNDETERMINED: 2, Verdict.KEPT: 3, None: 4}


def headlines(findings: Iterable[Finding]) -> list[str]:
    """Who differs and by how much: one sentence for each claim, violations first.

    Of these the most surely shown come first, whatever the metric: by strength of evidence, since
    sizes of different metrics are not in one unit. Two findings of a claim that show different
    groups to violate it are both quoted.

    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across="race")
    >>> flags = eq.flag(eq.datasets.compas(), claim, rng=7)
    >>> headlines([flags])[0].split(":")[0]
    'African-American'
    """
    told: list[tuple[int, float, int, str, str, str]] = []
    for place, found in enumerate(findings):
        said = found.headline()
        # bounds say how much at least, so of two findings that violate they go first
        rank = 2 * _RANK[found.conclusion] + (found.kind == "flags")
        claim = json.dumps(found.claim, sort_keys=True, default=str)
        who = said.partition(f": {getattr(found, 'metric', '')} ")[0]
        if said:
            told.append((rank, found.sureness, place, claim, who, said))
    chosen: dict[str, dict[str, str]] = {}
    violated = 2 * _RANK[Verdict.EXCEEDED] + 1
    for rank, *_, claim, who, said in sorted(told):
        names = chosen.setdefault(claim, {})
        if not names or (rank <= violated and who not in names):
            names[who] = said
    return [said for names in chosen.values() for said in names.values()]


def first_headlines(findings: Iterable[Finding], most: int) -> list[str]:
    """The first of them, and how many more there are."""
    every = headlines(findings)
    more = len(every) - most
    return every if more <= 0 else [*every[:most], f"… and {more:,} more, with the findings below."]


#: Sentences of a finding that terminals and builds show; the page has them all.
_BRIEF = 4
#: Share of the rows beyond which a reader must know at once that they are not there.
_MUCH = 0.01
#: Confidence below which "shown" is a strong word.
_WEAK = 0.8


def brief(found: Finding) -> tuple[str, ...]:
    """The first sentences, and whatever else is said the one on rows that were left out."""
    first, lost = found.sentences()[:_BRIEF], found.provenance.left_out()
    return first if not found.provenance.lost or lost in first else (*first, lost)


def warnings_of(findings: Iterable[Finding]) -> list[str]:
    """What a reader must know before the numbers.

    That rows are missing, that confidence is low, that nothing can differ, or that most groups are
    too small to speak.
    """
    said: list[str] = []
    for found in findings:
        said += [*_cautions(found), *found.cautions()]
        if found.kind not in ("flags", "bounds") or len(found) <= 4:
            continue
        silent = sum(_says_little(found, row) for row in found.rows)
        if 2 * silent > len(found):
            said.append(
                f"{silent:,} of {plural(len(found), found.noun)} are too small to speak: "
                f"{_to_larger_groups(found)}."
            )
    return list(dict.fromkeys(said))


def _to_larger_groups(found: Finding) -> str:
    """What makes larger groups of these: words cannot be cut into ranges."""
    wheres = [getattr(row, "where", None) or {} for row in found.rows]
    ways = []
    if any(len(where) > 1 for where in wheres):
        ways.append("combine fewer attributes (depth)")
    if any(isinstance(level, Mapping) for where in wheres for level in where.values()):
        ways.append("cut numbers into fewer ranges (bins)")
    if any(not isinstance(level, Mapping) for where in wheres for level in where.values()):
        ways.append("join levels that belong together")
    return ", or ".join(ways) or "make larger groups"


def _says_little(found: Finding, row: object) -> bool:
    """Whether a row is not answered, or its bounds leave open half of what is possible."""
    if getattr(row, "note", ""):
        return True
    least, most = getattr(found, "limits", (None, None))
    lower, upper = getattr(row, "lower", None), getattr(row, "upper", None)
    if least is None or most is None or lower is None or upper is None:
        return False
    return bool(upper - lower >= (most - least) / 2)


def _cautions(found: Finding) -> Iterator[str]:
    source = found.provenance
    if source.fingerprint and source.lost > _MUCH * source.scanned:
        yield f"{source.left_out()} Whoever they are is not in these numbers."
    level = getattr(found, "level", None)
    if level is not None and level < _WEAK and found.conclusion is not None:
        yield f"What is shown here is shown with {level_text(level)} confidence only."
    values = {getattr(row, "value", None) for row in found.rows} - {None}
    if getattr(found, "share", False) and len(found) > 1 and values in ({0.0}, {1.0}):
        metric = str(getattr(found, "metric", "metric"))
        yield f"The {metric} is {percent(values.pop() or 0)} in every group: nothing can differ."


# --- The JSON Schema of evidence, from the annotations that its reader goes by ---


def evidence_schema() -> Schema:
    """What an evidence file of this version holds.

    >>> schema = evidence_schema()
    >>> schema["properties"]["schema"]["const"]
    'equipoise-evidence/1'
    >>> "bounds" in schema["$defs"]
    True
    """
    # ours alone, and sorted: neither what others added nor what was imported first must show
    known = sorted(kinds_of_findings().items())
    kinds = {kind: cls for kind, cls in known if cls.__module__.startswith("equipoise.")}
    parts: dict[str, Schema] = {}
    definitions = {kind.replace(" ", "_"): _schema_of(cls, parts) for kind, cls in kinds.items()}
    text, some_text = {"type": "string"}, {"type": ["string", "null"]}
    entry = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "asked", "finding"],
        "properties": {
            "name": text,
            "asked": {"enum": ["confirmatory", "exploratory"]},
            "finding": {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in definitions]},
        },
    }
    properties: Schema = {
        "schema": {"const": SCHEMA},
        "title": text,
        "verdict": {"enum": ["kept", "exceeded", "undetermined"]},
        "created": text,
        "plan_hash": some_text,
        "fingerprint": text,
        "input": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "sha256"],
            "properties": {"name": text, "sha256": text},
        },
        "versions": {"type": "object", "additionalProperties": text},
        "plan": {"type": ["object", "null"]},
        "notes": {"type": "array", "items": text},
        "entries": {"type": "array", "items": entry},
        "seal": text,
    }
    return {
        "$schema": DRAFT,
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        "title": "Evidence of an audit by equipoise",
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in properties if name not in ("input", "notes")],
        "properties": properties,
        "$defs": {**definitions, **dict(sorted(parts.items()))},
    }


def _schema_of(cls: type[Finding], parts: dict[str, Schema]) -> Schema:
    made = STORED.fields_schema(cls, parts)
    rows = {"type": "array", "items": STORED.schema(cls.row_type, parts)}
    properties = {"kind": {"const": cls.kind}, **made["properties"], "rows": rows}  # type: ignore[dict-item]
    return {**made, "required": ["kind", *made["required"]], "properties": properties}  # type: ignore[misc]
