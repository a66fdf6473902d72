"""The plan: what is audited and how, fixed in a file before looking at the answers."""

import hashlib
import inspect
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, cast

import yaml

from equipoise import audits
from equipoise._codec import (
    DRAFT,
    Fault,
    Format,
    Keys,
    Misfit,
    Schema,
    at_default,
    from_plain,
    made_from,
    unknown,
)
from equipoise._files import read_text
from equipoise._validate import did_you_mean, listing, short
from equipoise.audits._common import judge_options
from equipoise.claims import Claim, Metric, Together, from_plan
from equipoise.claims.metric import as_metric
from equipoise.errors import EquipoiseError, PlanError
from equipoise.trail.engine import scrub, without_password

# --- YAML read strictly: plain values only, and for every value the line it stands on ---

#: Characters; a plan is written by hand.
LIMIT = 1_000_000
DEPTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Plain data with the line of each of its parts."""

    data: Any
    """Dictionaries, lists and scalars."""
    lines: Mapping[Keys, int]
    """Where each part stands, by the keys that lead to it."""
    called: str
    """The file, in words."""

    def at(self, path: Keys) -> str:
        """The file and line of a part, or of the nearest part around it."""
        if not self.lines:
            # quoted in evidence, or put together by a command: nothing that a line could point to
            return self.called
        while path not in self.lines and path:
            path = path[:-1]
        return f"{self.called}, line {self.lines.get(path, 1)}"


def read_yaml(text: str, called: str) -> Marked:
    """Parse a YAML text of mappings, lists, text, numbers and true/false.

    Anchors, tags, merge keys and repeated keys are refused: a plan says everything once, where it
    applies. Words such as "yes" and dates stay the text they are.

    >>> read_yaml("a: [1, yes]", "plan").data
    {'a': [1, 'yes']}
    """
    if len(text) > LIMIT:
        raise PlanError(f"{called} has {len(text):,} characters; a plan has at most {LIMIT:,}.")
    try:
        _refuse_features(text, called)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise PlanError(_syntax(error, called)) from error
    except yaml.YAMLError as error:
        raise PlanError(f"{called} is not YAML: {error}.") from error
    lines: dict[Keys, int] = {}
    data = None if node is None else _value(node, (), lines, called)
    return Marked(data=data, lines=lines, called=called)


class _Loader(yaml.SafeLoader):
    """Only true and false are truth values, and dates are text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":bool", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_TRUTH = {"true": True, "True": True, "false": False, "False": False}


def _refuse_features(text: str, called: str) -> None:
    """Refuse what goes beyond plain values before anything is built from it."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = f"{called}, line {event.start_mark.line + 1}"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise PlanError(f"{line}: anchors and aliases (& and *) are not read; write it out.")
        if getattr(event, "tag", None):
            raise PlanError(f"{line}: the tag {event.tag!r} is not read; write a plain value.")
        if depth > DEPTH:
            raise PlanError(f"{line}: nested more than {DEPTH} deep, which no plan needs.")
        if documents > 1:
            raise PlanError(f"{line}: a second document begins; a plan is one.")


def _value(node: yaml.Node, path: Keys, lines: dict[Keys, int], called: str) -> object:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, called)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), lines, called) for i, item in enumerate(node.value)]
    return _scalar(cast(yaml.ScalarNode, node), f"{called}, line {lines[path]}")


def _mapping(
    node: yaml.MappingNode, path: Keys, lines: dict[Keys, int], called: str
) -> dict[str, object]:
    made: dict[str, object] = {}
    for key_node, item in node.value:
        line = f"{called}, line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise PlanError(f"{line}: a key must be a word; got a list or a mapping.")
        key = str(key_node.value)
        if key == "<<":
            raise PlanError(f"{line}: merge keys (<<) are not read; write the fields out.")
        if key in made:
            raise PlanError(f"{line}: {key!r} is given a second time.")
        made[key] = _value(item, (*path, key), lines, called)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return made


def _scalar(node: yaml.ScalarNode, line: str) -> object:
    # a quoted word is text whatever it looks like
    if node.style is None and node.value in _TRUTH:
        return _TRUTH[node.value]
    try:
        value: object = _Loader("").construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise PlanError(f"{line}: {node.value!r:.60} cannot be read as a value.") from error
    if isinstance(value, int) and abs(value) >= 2**63:
        raise PlanError(f"{line}: {node.value!r:.60} is too large a number.")
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{line}: {node.value!r} is no number; write {{number: inf}} if meant.")
    return value


def _syntax(error: yaml.MarkedYAMLError, called: str) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"{called}, line {mark.line + 1}" if mark else called
    return f"{where}: this is not YAML: {error.problem or error.context}."


# --- The plan: what is audited and how, fixed in a file before looking at the answers ---

#: The verbs a plan may hold. Two more, select_fair and compare of models, need models in memory.
VERBS = (
    "describe",
    "flag",
    "certify",
    "joint_test",
    "discover",
    "summarize",
    "compare",
    "shift",
    "calibration",
    "individual",
    "monitor",
    "repair",
    "alternatives",
    "power",
)

#: Arguments that the runner supplies, or that no file can hold.
NOT_IN_A_PLAN = ("trail", "rng", "progress", "model")
_UNWRITABLE = {("calibration", "models"), ("describe", "metrics"), ("describe", "across")}
#: How options are read that stand for more than numbers, words and columns.
_READERS: dict[str, Callable[[object], object]] = {
    "claim": from_plan,
    "metric": as_metric,
    "across": from_plain,
    "target": from_plain,
    "method": from_plain,
    "over": from_plain,
    "loss": from_plain,
}


def described(words: str, **limits: int) -> dict[str, object]:
    """Marks a field of the file: what its schema says of it, in the keywords of JSON Schema."""
    return {**limits, "description": words}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of the plan, which remembers what was written: a plan is quoted as it was fixed."""

    written: frozenset[str] = field(default=frozenset(), repr=False)
    """The fields that stood in the file."""

    def quoted(self) -> dict[str, object]:
        """The fields to quote, in their order: those written, and those not at their default."""
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            # what is not described is no field of the file
            if one.metadata
            and (one.name in self.written or not at_default(one, getattr(self, one.name)))
        }


#: Where the rows are, which is no role of a column.
_PLACE = ("source", "table")
#: What a draft writes for the value that counts as 1, where only somebody who knows can say it.
UNSAID = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailPlan(_Part):
    """Where the rows are and what their columns mean, as in `equipoise.read`."""

    source: str = field(
        metadata=described(
            "Path of a CSV, Parquet or other file, folder or glob, relative to the plan; a "
            "database such as postgres://user@host/database, where ${NAME} stands for an "
            "environment variable; or equipoise:compas, equipoise:adult or equipoise:mortgages "
            "for bundled counts."
        )
    )
    table: str | None = field(
        default=None, metadata=described("Name of the table, where source holds several.")
    )
    label: str | None = field(default=None, metadata=described("Column with what really happened."))
    prediction: str | None = field(
        default=None, metadata=described("Column with what the model decided.")
    )
    score: str | None = field(default=None, metadata=described("Column with the model's number."))
    low: str | None = field(
        default=None, metadata=described("Lower end of the prediction interval.")
    )
    high: str | None = field(
        default=None, metadata=described("Upper end of the prediction interval.")
    )
    weight: str | None = field(default=None, metadata=described("Sampling weight."))
    count: str | None = field(
        default=None, metadata=described("How many identical rows a row stands for.")
    )
    cluster: str | None = field(
        default=None,
        metadata=described("Column whose equal values mark rows that are not independent."),
    )
    pair: str | None = field(
        default=None, metadata=described("Column whose equal values join two rows, such as twins.")
    )
    proxy_label: str | None = field(
        default=None,
        metadata=described("Column with a cheap label of all rows, where label is known of few."),
    )
    observed: str | None = field(
        default=None,
        metadata=described("Column with the chance with which a row's label was observed."),
    )
    attributes: tuple[str, ...] | None = field(
        default=None, metadata=described("Columns that may form groups.")
    )
    positive: object = field(
        default=None, metadata=described("The value of label and prediction that counts as 1.")
    )
    encoding: str | None = field(default=None, metadata=described("What a CSV file is written in."))
    missing: tuple[str, ...] | None = field(
        default=None,
        metadata=described("Words of a text file that mean a missing value, in every column."),
    )
    proxy: dict[str, dict[str, str]] | None = field(
        default=None,
        metadata=described(
            "Attributes known by probabilities: for each value the column with its own."
        ),
    )
    truth: dict[str, str] | None = field(
        default=None,
        metadata=described("For such attributes the column that holds them where they are known."),
    )

    @classmethod
    def from_plain(cls, data: Mapping[str, object]) -> "TrailPlan":
        """The same from plain data, such as the options of a command."""
        return cast(TrailPlan, _read(cls, Marked(data=data, lines={}, called="the table")))

    def roles(self) -> dict[str, object]:
        """The options of `equipoise.read` that were written."""
        return {name: value for name, value in self.quoted().items() if name not in _PLACE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan(_Part):
    """What is audited and who answers for it, for the report."""

    name: str | None = field(default=None, metadata=described("Name of the model."))
    version: str | None = field(default=None, metadata=described("Its version."))
    owner: str | None = field(default=None, metadata=described("Who answers for it."))
    purpose: str | None = field(
        default=None, metadata=described("What it decides, and about whom.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsPlan(_Part):
    """The columns with what two models say of the same rows."""

    before: str = field(metadata=described("Column with what the old model says."))
    after: str = field(metadata=described("Column with what the new model says."))
    threshold: float | None = field(
        default=None,
        metadata=described(
            "The score from which on a model says yes, where the columns hold scores."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan(_Part):
    """One audit: a verb with its options, written as in Python."""

    audit: str = field(metadata=described("What is done."))
    name: str | None = field(
        default=None, metadata=described("Name of the finding; made up if not given.")
    )
    # They stay as they were written, since the hash is of them; `asked` is what they stand for.
    plain: Mapping[str, object] = field(default_factory=dict)
    """The options as they were written."""
    asked: Mapping[str, object] = field(default_factory=dict, repr=False)
    """The arguments of the verb."""

    def quoted(self) -> dict[str, object]:
        """The fields to quote, the options after the others."""
        return {**_Part.quoted(self), **self.plain}

    def options(self) -> dict[str, Any]:
        """The arguments of the verb, those that were written, as the values they stand for."""
        return dict(self.asked)

    def with_options(self, marked: Marked, number: int, models: ModelsPlan | None) -> "AuditPlan":
        """Make values of what was written, so that a plan which cannot be asked is no plan."""
        asked: dict[str, object] = {}
        for name, as_written in self.plain.items():
            plain = as_written if models is None else _with_models(as_written, models)
            try:
                asked[name] = _READERS[name](plain) if name in _READERS else plain
            except EquipoiseError as error:
                raise PlanError(f"{marked.at(('audits', number, name))}: {error}") from error
        try:
            judge_options(audits.verb(self.audit), asked)
        except EquipoiseError as error:
            place: Keys = ("audits", number, *_named_in(str(error), self.plain))
            raise PlanError(f"{marked.at(place)}: {error}") from error
        return replace(self, asked=asked)


def _with_models(plain: object, models: ModelsPlan) -> object:
    """What was written, with the columns of the models in every change that names none."""
    if isinstance(plain, list | tuple):
        return [_with_models(item, models) for item in plain]
    if not isinstance(plain, Mapping):
        return plain
    made = {key: _with_models(item, models) for key, item in plain.items()}
    if made.get("kind") == "change" and not {"before", "after"} & made.keys():
        made |= {key: value for key, value in models.quoted().items() if value is not None}
    return made


def _named_in(message: str, options: Iterable[str]) -> list[str]:
    """The option that a message is about, if it names one; "measure" stands for measures."""
    words = set(re.findall(r"\w+", message.lower()))
    return [name for name in options if {name, name.removesuffix("s")} & words][:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(_Part):
    """An audit plan; `Plan.load` reads it from a YAML file."""

    equipoise: Literal[1] = field(metadata=described("Version of the plan format."))
    title: str = field(default="Audit", metadata=described("What is audited, in words."))
    model: ModelPlan | None = field(
        default=None, metadata=described("What is audited and who answers for it.")
    )
    trail: TrailPlan = field(metadata=described("Where the rows are and what their columns mean."))
    models: ModelsPlan | None = field(
        default=None,
        metadata=described("What an old and a new model say, for claims about the change."),
    )
    seed: int = field(
        metadata=described("Start of all randomness; the same seed, the same answer.", minimum=0)
    )
    audits: tuple[AuditPlan, ...] = field(
        metadata=described("What is asked, in order.", minItems=1)
    )

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read a plan from a YAML file; an error names the line."""
        return cls.parse(read_text(path, "plan"), called=Path(path).name)

    @classmethod
    def parse(cls, text: str, called: str = "plan") -> "Plan":
        """Read a plan from YAML text."""
        return _plan(read_yaml(text, called))

    @classmethod
    def from_plain(cls, data: object, called: str = "the plan") -> "Plan":
        """Read a plan from plain data, such as the one quoted in evidence."""
        return _plan(Marked(data=data, lines={}, called=called))

    def to_plain(self) -> dict[str, Any]:
        """What the plan says, as plain data that `from_plain` reads; without a password."""
        plain: dict[str, Any] = {name: _plain(value) for name, value in self.quoted().items()}
        plain["trail"]["source"] = without_password(self.trail.source)
        return plain

    @property
    def hash(self) -> str:
        """Digest of what the plan says; comments and layout do not count."""
        # Without the password, which may change while the questions do not.
        plain = json.dumps(self.to_plain(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(plain.encode()).hexdigest()

    def names(self) -> tuple[str, ...]:
        """The name of each finding."""
        return _names(self.audits)


def _plain(value: object) -> object:
    """A part of a plan as a file holds it."""
    if isinstance(value, _Part):
        return {name: _plain(item) for name, item in value.quoted().items()}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def plan_schema() -> dict[str, Any]:
    """The JSON schema of plan files, for editors that complete and check as one types.

    >>> sorted(plan_schema()["required"])
    ['audits', 'equipoise', 'seed', 'trail']
    """
    parts: dict[str, Schema] = {}
    whole = _FORMAT.fields_schema(_fields_of(Plan), "A plan of audits by equipoise.", parts)
    return {"$schema": DRAFT, **whole, "$defs": parts}


# --- What each part of a plan may hold: its fields, read strictly and told as a schema ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanField:
    """What a field of the file may hold."""

    hint: object
    """The annotation it is read by."""
    needed: bool = False
    """Whether it must be written."""
    default: object = None
    """What holds if it is not."""
    keywords: Mapping[str, object] = field(default_factory=dict)
    """What else a schema says of it: a description, and how small it may be."""


@cache
def _fields_of(cls: type[_Part]) -> dict[str, PlanField]:
    """The fields of a class of this module."""
    hints = typing.get_type_hints(cls)
    made = {
        one.name: PlanField(hint=hints[one.name], default=one.default, keywords=one.metadata)
        for one in fields(cls)
        if one.metadata
    }
    return {name: replace(one, needed=one.default is MISSING) for name, one in made.items()}


@cache
def _fields_of_audit(verb: str) -> dict[str, PlanField]:
    """The fields of an audit: its options are read off the signature of the verb.

    Only a verb that is asked for brings in its mathematics.
    """
    function = audits.verb(verb)
    hints = typing.get_type_hints(inspect.unwrap(function))
    made = {
        "audit": PlanField(hint=Literal[verb], needed=True),
        "name": _fields_of(AuditPlan)["name"],
    }
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue  # what columns mean is said once, in the trail of the plan
        if name not in NOT_IN_A_PLAN and (verb, name) not in _UNWRITABLE:
            needed = parameter.default is parameter.empty
            hint = _plain_type(hints.get(name, Any))
            made[name] = PlanField(hint=hint, needed=needed, default=parameter.default)
    return made


def _plain_type(hint: object) -> object:
    """The type of an argument as a file can hold it."""
    if isinstance(hint, type) and issubclass(hint, Claim | Together | Metric):
        return dict[str, Any]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_plain_type(part) for part in parts)]  # noqa: UP007
    if origin in (Sequence, Iterable):
        return types.GenericAlias(list, (_plain_type(parts[0]),))
    if origin is Mapping:
        return dict[str, Any]
    simple = (str, int, float, bool, types.NoneType)
    return hint if hint in simple or origin in (Literal, tuple, list, dict) else Any


class _PlanFormat(Format):
    """Plans, whose parts say everything that is wrong with them."""

    def number(self, data: object, path: Keys) -> object:
        """A number as a float: 1 and 1.0 ask the same, so they have the same hash."""
        try:
            return float(cast(float, super().number(data, path)))
        except OverflowError as error:
            raise self.misfit(path, "a number that is not so large", data) from error

    def said(self, data: object) -> str:
        """What came, without a password: it is hidden first, as half an address is not known."""
        return short(scrub(repr(data)))

    def part(self, cls: type, data: object, path: Keys) -> object:
        """A part of the plan; an option that is misspelt must not be ignored."""
        if not isinstance(data, Mapping):
            raise self.misfit(path, "a mapping of its fields", data)
        if cls is not AuditPlan:
            made = self.fields(_fields_of(cls), data, path)
            return made_from(cls, **made, written=frozenset(made))
        made = self.fields(_fields_of_audit(data["audit"]), data, path)
        own = {name: made.pop(name) for name in _fields_of(AuditPlan) if name in made}
        return made_from(AuditPlan, **own, plain=made, written=frozenset(own))

    def fields(
        self, known: Mapping[str, PlanField], data: Mapping[str, object], path: Keys
    ) -> dict[str, object]:
        """The fields that were written, in the order of the class or signature."""
        # first, since a misspelt field explains a missing one better than the other way round
        faults = [unknown((*path, name), known) for name in data if name not in known]
        made: dict[str, object] = {}
        for name, one in known.items():
            place = (*path, name)
            try:
                if name in data:
                    made[name] = self._limited(one, data[name], place)
                elif one.needed:
                    faults.append(Fault(place, "is missing"))
            except Misfit as misfit:
                faults.extend(misfit.faults)
        if faults:
            raise Misfit(*faults)
        return made

    def _limited(self, one: PlanField, data: object, path: Keys) -> object:
        """A field that is neither of another type nor smaller than it may be."""
        made: Any = self.reader(one.hint)(data, path)
        if "minimum" in one.keywords and made < one.keywords["minimum"]:
            raise self.misfit(path, f"a whole number of at least {one.keywords['minimum']}", data)
        if "minItems" in one.keywords and len(made) < cast(int, one.keywords["minItems"]):
            raise self.misfit(path, f"a list of at least {one.keywords['minItems']}", data)
        return made

    def part_schema(self, cls: type, parts: dict[str, Schema]) -> Schema:
        """References to the definition of a part, or of every audit that there is."""
        if cls is not AuditPlan:
            parts[cls.__name__] = self.fields_schema(_fields_of(cls), _first_line(cls), parts)
            return {"$ref": f"#/$defs/{cls.__name__}"}
        for verb in VERBS:
            does = _first_line(audits.verb(verb))
            parts[verb] = self.fields_schema(_fields_of_audit(verb), does, parts)
        return {"oneOf": [{"$ref": f"#/$defs/{verb}"} for verb in VERBS]}

    def fields_schema(
        self, known: Mapping[str, PlanField], words: str, parts: dict[str, Schema]
    ) -> Schema:
        """An object with these fields and no others."""
        return {
            "type": "object",
            "description": words,
            "additionalProperties": False,
            "required": [name for name, one in known.items() if one.needed],
            "properties": {name: self._field_schema(one, parts) for name, one in known.items()},
        }

    def _field_schema(self, one: PlanField, parts: dict[str, Schema]) -> Schema:
        default = {} if one.needed else {"default": _plain(one.default)}
        return {**self.schema(one.hint, parts), **default, **one.keywords}


_FORMAT = _PlanFormat()


def _first_line(described: object) -> str:
    return (inspect.getdoc(described) or "").split("\n", 1)[0]


# --- A plan from plain data, with one clear message if it is none ---


def _plan(marked: Marked) -> Plan:
    """Read a plan from plain data with line numbers."""
    marked = replace(marked, data=_as_filed(marked))
    if not isinstance(marked.data, Mapping):
        raise PlanError(
            f"{marked.called} is no plan: it must be a mapping with equipoise, trail, seed and "
            "audits. `equipoise plan init DATA` writes a draft."
        )
    _refuse_unwritable(marked.data, (), marked)
    _check_verbs(marked)
    made = cast(Plan, _read(Plan, marked))
    _refuse_unsaid(made.trail.positive, marked)
    asked = [one.with_options(marked, i, made.models) for i, one in enumerate(made.audits)]
    plan = replace(made, audits=tuple(asked))
    _check_names(plan, marked)
    return plan


def _refuse_unsaid(positive: object, marked: Marked) -> None:
    """Refuse a draft in which nobody has said which value counts as 1."""
    said = positive if isinstance(positive, Mapping) else {"": positive}
    for role, value in said.items():
        if value == UNSAID:
            place = ("trail", "positive", *([role] if role else []))
            raise PlanError(
                f"{marked.at(place)}: positive is still {UNSAID!r}. Write the value"
                f"{f' of the {role}' if role else ''} that counts as 1, one of the two in the "
                "comment beside it."
            )


def _as_filed(marked: Marked) -> object:
    """A copy of the data as JSON holds them: lists for tuples, text for keys, characters whole.

    YAML leaves a character that was escaped in two halves as two.
    """
    try:
        return json.loads(json.dumps(marked.data))
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"{marked.called} holds what no file can: {error}.") from error


def _read(cls: type[_Part], marked: Marked) -> object:
    """A part of a plan, or one message for all that is wrong with it."""
    try:
        return _FORMAT.part(cls, marked.data, ())
    except Misfit as misfit:
        first, *others = misfit.faults
        more = f" (and {len(others)} more)" if others else ""
        said = f"{marked.at(first.path)}: {_place(first.path)} {first.words}{more}."
        raise PlanError(said) from misfit


def _place(path: Keys) -> str:
    """The name of a field; which audit it belongs to is said by the line."""
    inside = path[2:] if path[0] == "audits" and len(path) > 2 else path
    named = (part for part in inside if isinstance(part, str))
    # quoted where it is no plain word: it may hold anything, and goes to a terminal
    return ".".join(short(part if part.isidentifier() else repr(part)) for part in named)


def _refuse_unwritable(data: object, path: Keys, marked: Marked) -> None:
    """Refuse what could not be quoted in evidence and read again."""
    if len(path) > DEPTH:
        raise PlanError(f"{marked.at(path)}: nested more than {DEPTH} deep, which no plan needs.")
    if isinstance(data, Mapping):
        for key, item in data.items():
            _refuse_unwritable(key, path, marked)
            _refuse_unwritable(item, (*path, key), marked)
    elif isinstance(data, list):
        for i, item in enumerate(data):
            _refuse_unwritable(item, (*path, i), marked)
    elif isinstance(data, str) and not data.isascii() and _is_torn(data):
        said = _FORMAT.said(data)
        raise PlanError(f"{marked.at(path)}: {said} holds half a character, which no file can.")
    elif isinstance(data, float) and not math.isfinite(data):
        raise PlanError(f"{marked.at(path)}: {_place(path)} must be finite; got {data}.")


def _is_torn(text: str) -> bool:
    """Whether a text holds half of a character, which has no place in UTF-8."""
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _check_verbs(marked: Marked) -> None:
    """Say which audits exist before types are compared, for the clearest message."""
    asked = marked.data.get("audits")
    for i, audit in enumerate(asked if isinstance(asked, list) else []):
        where = marked.at(("audits", i))
        if not isinstance(audit, Mapping) or "audit" not in audit:
            raise PlanError(f"{where}: each audit needs `audit:` and one of {listing(VERBS)}.")
        verb = audit["audit"]
        if verb not in VERBS:
            hint = did_you_mean(str(verb), VERBS)
            raise PlanError(
                f"{where}: there is no audit {verb!r}.{hint} There is: {listing(VERBS)}."
            )


def _check_names(plan: Plan, marked: Marked) -> None:
    names = plan.names()
    for i, name in enumerate(names):
        if name in names[:i]:
            raise PlanError(f"{marked.at(('audits', i))}: there are two audits named {name!r}.")


def _names(asked: Sequence[AuditPlan]) -> tuple[str, ...]:
    made: list[str] = []
    for i, audit in enumerate(asked):
        same = sum(other.audit == audit.audit and other.name is None for other in asked[:i])
        base = audit.audit.replace("_", " ")
        made.append(audit.name or (f"{base} {same + 1}" if same else base))
    return tuple(made)
