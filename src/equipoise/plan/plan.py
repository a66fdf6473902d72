"""The plan: what is audited and how, fixed in a file before looking at the answers."""

import hashlib
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, create_model

from equipoise import audits
from equipoise._codec import from_plain
from equipoise._files import read_text
from equipoise._validate import did_you_mean, listing
from equipoise.claims import Claim, Metric, Together, from_plan
from equipoise.claims.metric import as_metric
from equipoise.errors import EquipoiseError, PlanError
from equipoise.plan.reading import Marked, read_yaml
from equipoise.trail.secrets import scrub

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
)

#: Arguments that the runner supplies, or that no file can hold.
NOT_IN_A_PLAN = ("trail", "rng", "progress", "model")
_UNWRITABLE = {("calibration", "models")}
#: How options are read that stand for more than numbers, words and columns.
_READERS: dict[str, Callable[[Any], Any]] = {
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
        description="Path of a CSV or Parquet file, folder or glob, relative to the plan; a "
        "database such as postgres://user@host/database, where ${NAME} stands for an environment "
        "variable; or 'equipoise:compas' and 'equipoise:adult' for the bundled counts."
    )
    table: str | None = Field(None, description="Name of the table, where source is a database.")
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
    attributes: tuple[str, ...] | None = Field(None, description="Columns that may form groups.")
    positive: Any = Field(None, description="The value of label and prediction that counts as 1.")


class AuditPlan(_Strict):
    """One audit: a verb with its options, written as in Python."""

    audit: str
    name: str | None = Field(None, description="Name of the finding; made up if not given.")
    # The fields stay as they were written, since the hash is of them; these are what is asked.
    _options: dict[str, Any] = PrivateAttr(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """The arguments of the verb, those that were written, as the values they stand for."""
        return dict(self._options)

    def read_options(self, marked: Marked, number: int) -> None:
        """Make values of what was written, so that a plan which cannot be asked is no plan."""
        written = self.model_dump(exclude_unset=True, exclude=set(AuditPlan.model_fields))
        for name, plain in written.items():
            try:
                self._options[name] = _READERS[name](plain) if name in _READERS else plain
            except EquipoiseError as error:
                raise PlanError(f"{marked.at(('audits', number, name))}: {error}") from error


class Plan(_Strict):
    """An audit plan; `Plan.load` reads it from a YAML file."""

    equipoise: Literal[1] = Field(description="Version of the plan format.")
    title: str = Field("Audit", description="What is audited, in words.")
    trail: TrailPlan
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
    def from_plain(cls, data: Any, called: str = "the plan") -> Self:
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
            made = _typed(cls).model_validate_json(json.dumps(marked.data), strict=True)
        except ValidationError as error:
            raise PlanError(_complaint(error, marked)) from error
        for i, audit in enumerate(made.audits):
            audit.read_options(marked, i)
        _check_names(made, marked)
        return typing.cast(Self, made)

    def to_plain(self) -> dict[str, Any]:
        """What the plan says, as plain data that `from_plain` reads; without a password."""
        plain = self.model_dump(mode="json", exclude_unset=True)
        plain["trail"]["source"] = scrub(plain["trail"]["source"])
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
        **_full().model_json_schema(),
    }


def _typed(cls: type[Plan]) -> type[Plan]:
    return _full() if cls is Plan else cls


@cache
def _full() -> type[Plan]:
    """The plan whose audits have the options of the verbs, read off their signatures."""
    kinds: Any = Union[tuple(_models().values())]  # noqa: UP007 (not known before it runs)
    listed: Any = tuple[Annotated[kinds, Field(discriminator="audit")], ...]
    described = Field(min_length=1, description="What is asked, in order.")
    made: Any = create_model("Plan", __base__=Plan, audits=(listed, described))
    return typing.cast(type[Plan], made)


@cache
def _models() -> dict[str, type[AuditPlan]]:
    return {verb: _model(verb, getattr(audits, verb)) for verb in VERBS}


def _model(verb: str, function: Callable[..., Any]) -> type[AuditPlan]:
    hints = typing.get_type_hints(inspect.unwrap(function))
    fields: dict[str, Any] = {"audit": (Literal[verb], ...)}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in NOT_IN_A_PLAN and (verb, name) not in _UNWRITABLE:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (_plain_type(hints.get(name, Any)), default)
    made: Any = create_model(
        verb, __base__=AuditPlan, __doc__=_first_line(function), **typing.cast(Any, fields)
    )
    return typing.cast(type[AuditPlan], made)


def _plain_type(hint: Any) -> Any:
    """The type of an argument as a file can hold it."""
    if isinstance(hint, type) and issubclass(hint, Claim | Together):
        return dict[str, Any]
    if isinstance(hint, type) and issubclass(hint, Metric):
        return dict[str, Any]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_plain_type(part) for part in parts)]  # noqa: UP007
    if origin in (Sequence, Iterable):
        return list[_plain_type(parts[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, Any]
    simple = (str, int, float, bool, types.NoneType)
    return hint if hint in simple or origin in (Literal, tuple, list, dict) else Any


def _first_line(function: Callable[..., Any]) -> str:
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


def _in_words(first: Any, place: str, marked: Marked, path: tuple[Any, ...]) -> str:
    if first["type"] == "extra_forbidden":
        fields = _fields_at(path[:-1], marked)
        hint = did_you_mean(str(path[-1]), fields)
        return f"there is no field {path[-1]!r}.{hint} There is: {listing(fields, most=30)}"
    if first["type"] == "missing":
        return f"{place} is missing"
    given = scrub(f"{first['input']!r}")[:80]
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}; got {given}"


def _fields_at(path: tuple[Any, ...], marked: Marked) -> list[str]:
    if path[:1] == ("trail",):
        return list(TrailPlan.model_fields)
    if len(path) == 2 and path[0] == "audits":
        return list(_models()[marked.data["audits"][path[1]]["audit"]].model_fields)
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
