"""The base of every result: a frozen value that can be read, tabulated, stored and restored."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from equipoise._codec import to_plain
from equipoise._validate import short
from equipoise.errors import EquipoiseError, OptionError
from equipoise.findings.reading import is_quoted, read_back
from equipoise.findings.tables import html_table, text_table
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import left_out, plural

_KINDS: dict[str, type["Finding"]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a finding comes from: enough to perform it again."""

    version: str
    """Version of equipoise."""
    source: str
    """What the rows were read from."""
    scanned: int
    """Rows looked at."""
    counted: int
    """Rows on which the metric counts."""
    excluded: Mapping[str, int]
    """Rows left out, by reason."""
    ineligible: int
    """Rows that are complete but on which the metric does not count."""
    cells: int
    """Cells the rows were reduced to."""
    fingerprint: str
    """Digest of the cells: the same from every engine and in every row order."""
    seed: int | None = None
    """The ``rng=`` that gives the same answer again."""

    def based_on(self) -> str:
        """A sentence on the rows that were used."""
        return f"Based on {plural(self.counted, 'row')} of {self.source}."

    def left_out(self) -> str:
        """A sentence on the rows that were not."""
        return left_out(self.excluded, self.ineligible)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What every audit returns: rows, the guarantee they come with, and where they come from.

    >>> import equipoise as eq
    >>> found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> isinstance(found, eq.Finding), found.question
    (True, 'accuracy against everyone')
    """

    row_type: ClassVar[type]
    columns: ClassVar[tuple[str, ...]]
    kind: ClassVar[str]

    claim: Mapping[str, Any]
    """The claim in plan form."""
    question: str
    """The claim in words."""
    guarantee: str
    """What holds, with what confidence, for which groups."""
    assumptions: tuple[str, ...]
    """What the guarantee rests on."""
    provenance: Provenance
    """Where the numbers come from."""
    rows: tuple[Any, ...]
    """One entry per group, in the order of the collection."""

    def __init_subclass__(cls, **options: Any) -> None:
        # A slotted dataclass is made twice; the second class, which is the real one, wins.
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def noun(self) -> str:
        """What a row is about: a group, or a tilt."""
        across = self.claim.get("across")
        return "tilt" if isinstance(across, Mapping) and across.get("kind") == "tilts" else "group"

    @property
    def conclusion(self) -> Verdict | None:
        """What is shown about fairness; None if the audit sets no limit or found nothing.

        An audit that can only find violations has no conclusion when it finds none.
        """
        return None

    def sentences(self) -> tuple[str, ...]:
        """The finding in plain words, most important first."""
        raise NotImplementedError

    def plot(self) -> Any:
        """The finding as an Altair chart."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which `equipoise.findings.from_dict` reads back."""
        data: dict[str, Any] = {"kind": self.kind}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            data[field.name] = value if is_quoted(value) else _plain(value)
        return data

    def to_json(self, indent: int | None = None) -> str:
        """The finding as JSON text, which `equipoise.findings.from_json` reads back."""
        # Python would write NaN, which is no JSON and which others could not read.
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a data frame: pandas, Polars or PyArrow, whichever is asked for or installed.

        Attributes become columns of their own, empty where a group leaves them free.
        """
        import narwhals as nw

        chosen = backend or _installed_backend()
        if chosen not in _BACKENDS or not find_spec(chosen):
            raise OptionError(
                f"backend must be one of {', '.join(_BACKENDS)}, and installed; got {backend!r}."
            )
        return nw.from_dict(self._columns(), backend=chosen).to_native()  # type: ignore[arg-type]

    def __str__(self) -> str:
        table = text_table(self.rows[:40], self.columns)
        more = f"\n… and {len(self) - 40:,} more" if len(self) > 40 else ""
        return "\n".join([*self.sentences(), "", table + more])

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
        return f"<div>{words}{html_table(self.rows[:200], self.columns)}</div>"

    def _columns(self) -> dict[str, list[Any]]:
        names = [field.name for field in dataclasses.fields(self.row_type) if field.name != "where"]
        columns: dict[str, list[Any]] = {
            name: [_scalar(getattr(row, name)) for row in self.rows] for name in names
        }
        for name in dict.fromkeys(name for row in self.rows for name in row.where):
            title = name
            # A table may well have a column called n or value.
            while title in columns:
                title = f"where {title}"
            columns[title] = [_scalar(row.where.get(name)) for row in self.rows]
        return {title: _one_type(values) for title, values in columns.items()}


def from_dict(data: Mapping[str, Any]) -> Finding:
    """The finding that `Finding.to_dict` wrote.

    >>> import equipoise as eq
    >>> found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> from_dict(found.to_dict()) == found
    True
    """
    if not isinstance(data, Mapping):
        raise EquipoiseError(f"This is not a finding but a {type(data).__name__}.")
    cls = _KINDS.get(str(data.get("kind")))
    if cls is None:
        raise EquipoiseError(
            f"{data.get('kind')!r} is not a kind of finding. There is: {', '.join(_KINDS)}."
        )
    fields = {name: value for name, value in data.items() if name != "kind"}
    if "rows" in fields:
        fields["rows"] = _rows(cls, fields["rows"])
    return read_back(cls, fields, cls.kind)


def _rows(cls: type[Finding], rows: Any) -> tuple[Any, ...]:
    if not isinstance(rows, list | tuple):
        raise EquipoiseError(f"The rows of a {cls.kind} must be a list; got {short(repr(rows))}.")
    return tuple(read_back(cls.row_type, row, f"{cls.kind} row") for row in rows)


def from_json(text: str) -> Finding:
    """The finding that `Finding.to_json` wrote."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise EquipoiseError(f"This is not a finding: {error}.") from error
    return from_dict(data)


def _no_constant(word: str) -> float:
    raise EquipoiseError(f"A finding holds no {word}; this text was not written by equipoise.")


_BACKENDS = ("pandas", "polars", "pyarrow")


def _installed_backend() -> str:
    for name in _BACKENDS:
        if find_spec(name):
            return name
    raise EquipoiseError("to_frame needs pandas, polars or pyarrow; install one of them.")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else to_plain(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, Mapping | tuple):
        return json.dumps(to_plain(value), ensure_ascii=False)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _one_type(values: list[Any]) -> list[Any]:
    """Whole numbers beside others become floats: a column of a frame has one type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return values if len(kinds) < 2 else [None if value is None else str(value) for value in values]
