"""What `describe` says: sizes, estimates and pointwise intervals."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Literal

from equipoise._validate import known_name, names_extra, whole
from equipoise.findings.adjusted import (
    AdjustedGroup,
    ChangedGroup,
    adjusted_sentences,
    changed_sentences,
)
from equipoise.findings.charts import Dot, ForestAxis, ForestLine, forest, ranked, reading
from equipoise.findings.finding import (
    IF_ANY,
    ByGroup,
    Chart,
    Group,
    MetricFinding,
    frame_of,
    html_table,
    text_table,
)
from equipoise.findings.words import disparity_text, level_text, plural, telling_order

Method = Literal["between_groups", "to_overall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup(Group):
    """One group as it is in the data."""

    value: float | None
    """The group's metric; None if it counts on no row."""
    lower: float | None
    """Lower end of the pointwise interval for ``value``."""
    upper: float | None
    """Upper end of the pointwise interval for ``value``."""
    target: float | None
    """What the group is compared with; None where legitimate factors are given."""
    disparity: float | None
    """Value minus target, or value divided by target for a ratio; given factors, adjusted."""
    note: str = ""
    """Why a number is missing or weak."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Description(MetricFinding[DescribedGroup], ByGroup[DescribedGroup]):
    """Group sizes and estimates, before any inference about many groups.

    >>> import equipoise as eq
    >>> eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="race"))
    <Description: accuracy against everyone; 6 rows>
    """

    kind = "description"
    columns = ("group", "n", "value", "lower", "upper", "disparity", "note")

    overall: float
    """The metric over everyone."""
    share: bool
    """Whether the metric is a share, read as a percentage."""
    level: float
    """Confidence level of each interval on its own."""
    method: str
    """How the intervals were computed."""
    small: int
    """Groups with fewer rows than this are noted as small."""
    adjusted: tuple[AdjustedGroup, ...] = field(default=(), metadata=IF_ANY)
    """Every group without the legitimate factors, where such are given."""
    changed: tuple[ChangedGroup, ...] = field(default=(), metadata=IF_ANY)
    """Where a change or pairs are asked about: every group's metric before and after."""

    def sentences(self) -> tuple[str, ...]:
        """Everyone's value, the extremes, the small groups, and the rows left out."""
        source = self.provenance
        return (
            f"The {self.metric} is {self.value_text(self.overall)} over "
            f"{plural(source.counted, 'row')} of {source.source}.",
            *self._extremes(),
            f"Each interval holds on its own with {level_text(self.level)} confidence "
            f"({self.method}); with {plural(len(self), 'group')} {self._misses()} can be expected "
            "to miss.",
            *self._small_groups(),
            *self._given(),
            *changed_sentences(self.changed, self.claim, share=self.share),
            source.left_out(),
        )

    def drawn(self) -> str:
        """The groups furthest from everyone, as plain HTML and SVG."""
        dots = [
            Dot(
                group=row.group,
                n=row.n,
                value=row.value,
                lower=row.lower,
                upper=row.upper,
                order=telling_order(row, False),
                settled=row.lower > self.overall or row.upper < self.overall,
            )
            for row in self.rows
            if row.value is not None and row.lower is not None and row.upper is not None
        ]
        return ranked(
            dots,
            even=self.overall,
            limits=[],
            relative=False,
            said=self.value_text,
            words=("", "told apart from everyone", "not told apart"),
            intervals=f"{level_text(self.level)} interval, each on its own",
        )

    @names_extra
    def plot(self, most: int = 40) -> Chart:
        """A forest plot of the largest groups, each interval on its own."""
        lines = [
            ForestLine(
                group=row.group,
                n=row.n,
                centre=row.value,
                lower=row.lower,
                upper=row.upper,
                colour=reading(row.lower, row.upper, self.overall),
            )
            for row in self.rows
            if row.value is not None and row.lower is not None and row.upper is not None
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} by group",
            subtitle=f"Pointwise {level_text(self.level)} intervals",
            axis=ForestAxis(f"{self.metric} (%)" if self.share else self.metric, self.share),
            reference=[self.overall],
            most=most,
        )

    def _given(self) -> list[str]:
        """The largest adjusted disparities, and what they were before."""
        relative = self.claim.get("kind") == "ratio"
        known = [row for row in self.rows if row.disparity is not None]
        if not self.adjusted or not known:
            return []
        even = 1.0 if relative else 0.0
        most = sorted(known, key=lambda row: -abs((row.disparity or 0.0) - even))[:3]
        told = "; ".join(
            f"{row.group} {disparity_text(row.disparity or 0.0, relative, self.share)}"
            for row in most
        )
        return [
            f"Given {self.given}: {told}.",
            *adjusted_sentences(self.adjusted, self.given, relative=relative, share=self.share),
        ]

    def _extremes(self) -> list[str]:
        # The highest and lowest of many small groups are those that chance moved furthest.
        known = [(r.value, r) for r in self.rows if r.value is not None and r.n >= self.small]
        if not known:
            return []
        (_, high), (_, low) = max(known, key=itemgetter(0)), min(known, key=itemgetter(0))
        named = [("Highest", high)] if high is low else [("Highest", high), ("Lowest", low)]
        return [
            f"{word} among groups of at least {self.small}: {self._one(row)}" for word, row in named
        ]

    def _one(self, row: DescribedGroup) -> str:
        if row.lower is None or row.upper is None:
            why = row.note or "no interval"
            return f"{row.group}, {self.value_text(row.value)} (n = {row.n:,}; {why})."
        low, high = self.value_text(row.lower), self.value_text(row.upper)
        return f"{row.group}, {self.value_text(row.value)} ({low} to {high}, n = {row.n:,})."

    def _small_groups(self) -> list[str]:
        few = [row for row in self.rows if row.n < self.small]
        if not few:
            return []
        empty = sum(row.n == 0 for row in few)
        none = f", {empty} of them none at all" if empty else ""
        have = "has" if len(few) == 1 else "have"
        return [f"{plural(len(few), 'group')} {have} fewer than {self.small} such rows{none}."]

    def _misses(self) -> str:
        # Said so that nobody reads the intervals as if they held together.
        expected = round((1 - self.level) * len(self))
        return f"about {expected}" if expected else "fewer than one"


# --- Many metrics in one table, as people know it from elsewhere ---


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMetrics:
    """Several metrics by the same groups: a table, and each metric's description on its own.

    The largest of many differences is partly chance: `certify`, `flag` and `summarize` say how much
    of it is not.

    >>> import equipoise as eq
    >>> table = eq.describe(eq.datasets.compas(), metrics=["accuracy"], across="sex")
    >>> table["accuracy"].ask(sex="Male").n
    4997
    """

    parts: tuple[Description, ...]
    """One description for each metric, all of the same groups."""

    @property
    def overall(self) -> dict[str, float]:
        """Each metric over everyone."""
        return {name: part.overall for name, part in self._named().items()}

    def sentences(self) -> tuple[str, ...]:
        """What each metric's description says, and once what all of them say.

        >>> import equipoise as eq
        >>> asked = ["accuracy", "selection_rate"]
        >>> eq.describe(eq.datasets.compas(), metrics=asked, across="sex").sentences()[0]
        'Accuracy: The accuracy is 66.1 % over 6,172 rows of the bundled COMPAS counts.'
        """
        said = [part.sentences() for part in self.parts]
        of_all = [words for words in said[0] if all(words in one for one in said)]
        own = [
            f"{part.metric[:1].upper()}{part.metric[1:]}: {words}"
            for part, sentences in zip(self.parts, said, strict=True)
            for words in sentences
            if words not in of_all
        ]
        return (*own, *of_all)

    def difference(self, method: Method = "between_groups", *, least: int = 1) -> dict[str, float]:
        """For each metric the largest difference between two groups, or from everyone.

        Groups of fewer than ``least`` rows are left aside.
        """
        return self._compared(method, least, lambda high, low: high - low)

    def ratio(self, method: Method = "between_groups", *, least: int = 1) -> dict[str, float]:
        """For each metric the smallest ratio of two groups, or of a group and everyone."""
        return self._compared(method, least, lambda high, low: low / high if high else math.nan)

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each group: attributes, rows, and a column for each metric."""
        named = self._named()
        first = next(iter(named.values()))
        size = {f"n {name}": [row.n for row in part.rows] for name, part in named.items()}
        values = {name: [row.value for row in part.rows] for name, part in named.items()}
        attributes = dict.fromkeys(name for row in first.rows for name in row.where)
        where = {a: [_text(row.where.get(a)) for row in first.rows] for a in attributes}
        groups = {"group": [row.group for row in first.rows]}
        columns: dict[str, Sequence[object]] = {**groups, **where, **values, **size}
        return frame_of(columns, backend)

    def __getitem__(self, metric: str) -> Description:
        return self._named()[known_name("Metric", metric, self._named())]

    def __iter__(self) -> Iterator[Description]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"<DescribedMetrics: {', '.join(self._named())}; {plural(self._groups, 'group')}>"

    def __str__(self) -> str:
        return text_table(self._lines(), self._heads())

    def _repr_html_(self) -> str:
        return html_table(self._lines(), self._heads())

    @property
    def _groups(self) -> int:
        return len(self.parts[0])

    def _named(self) -> dict[str, Description]:
        # a metric that has a name goes by it, any other by its words
        asked = (part.claim.get("metric") for part in self.parts)
        return {
            name if isinstance(name, str) else part.metric.replace(" ", "_"): part
            for name, part in zip(asked, self.parts, strict=True)
        }

    def _heads(self) -> tuple[str, ...]:
        return ("group", "n", *self._named())

    def _lines(self) -> list[SimpleNamespace]:
        named = self._named()
        return [
            SimpleNamespace(
                group=row.group,
                # metrics count on different rows; the largest number is that of the group
                n=max(part.rows[i].n for part in self.parts),
                **{name: part.rows[i].value for name, part in named.items()},
            )
            for i, row in enumerate(self.parts[0].rows)
        ]

    def _compared(
        self, method: Method, least: int, by: Callable[[float, float], float]
    ) -> dict[str, float]:
        known_name("method", method, ("between_groups", "to_overall"))
        whole("least", least)
        found = {}
        for name, part in self._named().items():
            values = [r.value for r in part.rows if r.value is not None and r.n >= least]
            if not values:
                found[name] = math.nan
            elif method == "between_groups":
                found[name] = by(max(values), min(values))
            else:
                pairs = [(max(v, part.overall), min(v, part.overall)) for v in values]
                found[name] = max(
                    (by(*pair) for pair in pairs), key=lambda x: abs(x - by(1.0, 1.0))
                )
        return found


def _text(value: object) -> str | float | int | bool | None:
    return value if isinstance(value, str | float | int | bool | None) else str(value)
