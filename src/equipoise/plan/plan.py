"""The plan: what is audited and how, fixed in a file before looking at the answers."""

import hashlib
import inspect
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, create_model
from pydantic_core import ErrorDetails

from equipoise import audits
from equipoise._codec import from_plain
from equipoise._files import read_text
from equipoise._validate import did_you_mean, listing
from equipoise.audits._common import judge_options
from equipoise.claims import Claim, Metric, Together, from_plan
from equipoise.claims.metric import as_metric
from equipoise.errors import EquipoiseError, PlanError
from equipoise.trail.engine import scrub, without_password

# --- YAML read strictly: plain values only, and for every value the line it stands on ---

#: Characters; a plan is written by hand.
LIMIT = 1_000_000
DEPTH = 60

Keys = tuple[str | int, ...]


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


class _Strict(BaseModel):
    """A part of the plan: fixed, and without fields that nobody reads."""

    # An option that is misspelt and ignored would change what is asked without a word.
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrailPlan(_Strict):
    """Where the rows are and what their columns mean, as in `equipoise.read`."""

    source: str = Field(
        description="Path of a CSV, Parquet or other file, folder or glob, relative to the plan; a "
        "database such as postgres://user@host/database, where ${NAME} stands for an environment "
        "variable; or equipoise:compas, equipoise:adult or equipoise:mortgages for bundled counts."
    )
    table: str | None = Field(None, description="Name of the table, where source holds several.")
    label: str | None = Field(None, description="Column with what really happened.")
    prediction: str | None = Field(None, description="Column with what the model decided.")
    score: str | None = Field(None, description="Column with the model's number.")
    low: str | None = Field(None, description="Lower end of the prediction interval.")
    high: str | None = Field(None, description="Upper end of the prediction interval.")
    weight: str | None = Field(None, description="Sampling weight.")
    count: str | None = Field(None, description="How many identical rows a row stands for.")
    cluster: str | None = Field(
        None, description="Column whose equal values mark rows that are not independent."
    )
    pair: str | None = Field(
        None, description="Column whose equal values join two rows, such as twins."
    )
    proxy_label: str | None = Field(
        None, description="Column with a cheap label of all rows, where label is known of few."
    )
    observed: str | None = Field(
        None, description="Column with the chance with which a row's label was observed."
    )
    attributes: tuple[str, ...] | None = Field(None, description="Columns that may form groups.")
    positive: Any = Field(None, description="The value of label and prediction that counts as 1.")
    encoding: str | None = Field(None, description="What a CSV file is written in.")
    missing: tuple[str, ...] | None = Field(
        None, description="Words of a text file that mean a missing value, in every column."
    )
    proxy: dict[str, dict[str, str]] | None = Field(
        None,
        description="Attributes known by probabilities: for each value the column with its own.",
    )
    truth: dict[str, str] | None = Field(
        None, description="For such attributes the column that holds them where they are known."
    )


class ModelPlan(_Strict):
    """What is audited and who answers for it, for the report."""

    name: str | None = Field(None, description="Name of the model.")
    version: str | None = Field(None, description="Its version.")
    owner: str | None = Field(None, description="Who answers for it.")
    purpose: str | None = Field(None, description="What it decides, and about whom.")


class ModelsPlan(_Strict):
    """The columns with what two models say of the same rows."""

    before: str = Field(description="Column with what the old model says.")
    after: str = Field(description="Column with what the new model says.")
    threshold: float | None = Field(
        None, description="The score from which on a model says yes, where the columns hold scores."
    )


class AuditPlan(_Strict):
    """One audit: a verb with its options, written as in Python."""

    audit: str
    name: str | None = Field(None, description="Name of the finding; made up if not given.")
    # The fields stay as they were written, since the hash is of them; these are what is asked.
    _options: dict[str, Any] = PrivateAttr(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """The arguments of the verb, those that were written, as the values they stand for."""
        return dict(self._options)

    def read_options(self, marked: Marked, number: int, models: ModelsPlan | None = None) -> None:
        """Make values of what was written, so that a plan which cannot be asked is no plan."""
        written = self.model_dump(exclude_unset=True, exclude=set(AuditPlan.model_fields))
        for name, as_written in written.items():
            plain = as_written if models is None else _with_models(as_written, models)
            try:
                self._options[name] = _READERS[name](plain) if name in _READERS else plain
            except EquipoiseError as error:
                raise PlanError(f"{marked.at(('audits', number, name))}: {error}") from error
        try:
            judge_options(audits.verb(self.audit), self._options)
        except EquipoiseError as error:
            place: Keys = ("audits", number, *_named_in(str(error), written))
            raise PlanError(f"{marked.at(place)}: {error}") from error


def _with_models(plain: object, models: ModelsPlan) -> object:
    """What was written, with the columns of the models in every change that names none."""
    if isinstance(plain, list | tuple):
        return [_with_models(item, models) for item in plain]
    if not isinstance(plain, Mapping):
        return plain
    made = {key: _with_models(item, models) for key, item in plain.items()}
    if made.get("kind") == "change" and not {"before", "after"} & made.keys():
        made |= models.model_dump(exclude_none=True)
    return made


def _named_in(message: str, options: Iterable[str]) -> list[str]:
    """The option that a message is about, if it names one; "measure" stands for measures."""
    words = set(re.findall(r"\w+", message.lower()))
    return [name for name in options if {name, name.removesuffix("s")} & words][:1]


class Plan(_Strict):
    """An audit plan; `Plan.load` reads it from a YAML file."""

    equipoise: Literal[1] = Field(description="Version of the plan format.")
    title: str = Field("Audit", description="What is audited, in words.")
    model: ModelPlan | None = Field(None, description="What is audited and who answers for it.")
    trail: TrailPlan
    models: ModelsPlan | None = Field(
        None, description="What an old and a new model say, for claims about the change."
    )
    seed: int = Field(ge=0, description="Start of all randomness; the same seed, the same answer.")
    audits: tuple[AuditPlan, ...] = Field(min_length=1)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan from a YAML file; an error names the line."""
        return cls.parse(read_text(path, "plan"), called=Path(path).name)

    @classmethod
    def parse(cls, text: str, called: str = "plan") -> Self:
        """Read a plan from YAML text."""
        return cls.from_marked(read_yaml(text, called))

    @classmethod
    def from_plain(cls, data: object, called: str = "the plan") -> Self:
        """Read a plan from plain data, such as the one quoted in evidence."""
        return cls.from_marked(Marked(data=data, lines={}, called=called))

    @classmethod
    def from_marked(cls, marked: Marked) -> Self:
        """Read a plan from plain data with line numbers."""
        if not isinstance(marked.data, Mapping):
            raise PlanError(
                f"{marked.called} is no plan: it must be a mapping with equipoise, trail, seed and "
                "audits. `equipoise plan init DATA` writes a draft."
            )
        _check_verbs(marked)
        try:
            # JSON's strict reading takes lists for tuples but no text for numbers
            made = _typed(cls, marked).model_validate_json(json.dumps(marked.data), strict=True)
        except ValidationError as error:
            raise PlanError(_complaint(error, marked)) from error
        for i, audit in enumerate(made.audits):
            audit.read_options(marked, i, made.models)
        _check_names(made, marked)
        return typing.cast(Self, made)

    def to_plain(self) -> dict[str, Any]:
        """What the plan says, as plain data that `from_plain` reads; without a password."""
        plain = self.model_dump(mode="json", exclude_unset=True)
        plain["trail"]["source"] = without_password(plain["trail"]["source"])
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


def plan_schema() -> dict[str, Any]:
    """The JSON schema of plan files, for editors that complete and check as one types.

    >>> sorted(plan_schema()["required"])
    ['audits', 'equipoise', 'seed', 'trail']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_full(VERBS).model_json_schema(),
    }


def _typed(cls: type[Plan], marked: Marked) -> type[Plan]:
    if cls is not Plan:
        return cls
    asked = marked.data.get("audits")
    named = {audit["audit"] for audit in asked} if isinstance(asked, list) else set()
    return _full(tuple(verb for verb in VERBS if verb in named) or VERBS)


@cache
def _full(verbs: tuple[str, ...]) -> type[Plan]:
    """The plan whose audits have the options of the verbs, read off their signatures.

    Only of those that it names: each brings in mathematics of its own.
    """
    kinds: Any = Union[tuple(map(_model, verbs))]  # noqa: UP007 (not known before it runs)
    if len(verbs) > 1:
        kinds = Annotated[kinds, Field(discriminator="audit")]
    listed: Any = tuple[kinds, ...]
    described = Field(min_length=1, description="What is asked, in order.")
    return create_model("Plan", __base__=Plan, audits=(listed, described))


@cache
def _model(verb: str) -> type[AuditPlan]:
    function = audits.verb(verb)
    hints = typing.get_type_hints(inspect.unwrap(function))
    fields: dict[str, Any] = {"audit": (Literal[verb], ...)}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue  # what columns mean is said once, in the trail of the plan
        if name not in NOT_IN_A_PLAN and (verb, name) not in _UNWRITABLE:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (_plain_type(hints.get(name, Any)), default)
    return create_model(verb, __base__=AuditPlan, __doc__=_first_line(function), **fields)


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


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").split("\n", 1)[0]


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


def _complaint(error: ValidationError, marked: Marked) -> str:
    # a misspelt field explains a missing one better than the other way round
    found = error.errors(include_url=False)
    first, *others = sorted(found, key=lambda one: one["type"] != "extra_forbidden")
    # the tag of the union is no key of the file
    path = tuple(part for part in first["loc"] if part not in VERBS)
    place = ".".join(str(part) for part in path if part != "audits" and isinstance(part, str))
    more = f" (and {len(others)} more)" if others else ""
    return f"{marked.at(path)}: {_in_words(first, place, marked, path)}{more}."


def _in_words(first: ErrorDetails, place: str, marked: Marked, path: Keys) -> str:
    if first["type"] == "extra_forbidden":
        fields = _fields_at(path[:-1], marked)
        hint = did_you_mean(str(path[-1]), fields)
        return f"there is no field {path[-1]!r}.{hint} There is: {listing(fields, most=30)}"
    if first["type"] == "missing":
        return f"{place} is missing"
    given = scrub(f"{first['input']!r}")[:80]
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}; got {given}"


def _fields_at(path: Keys, marked: Marked) -> list[str]:
    parts: dict[str | int, type[_Strict]] = {
        "trail": TrailPlan,
        "model": ModelPlan,
        "models": ModelsPlan,
    }
    if len(path) == 1 and path[0] in parts:
        return list(parts[path[0]].model_fields)
    if len(path) == 2 and path[0] == "audits":
        return list(_model(marked.data["audits"][path[1]]["audit"]).model_fields)
    return list(Plan.model_fields)


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
