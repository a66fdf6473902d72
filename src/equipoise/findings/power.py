"""What `power` says: what an audit of so many rows can show, and how many rows it would take."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from equipoise._validate import names_extra
from equipoise.findings.charts import NEITHER, ForestLine, disparity_axis, forest
from equipoise.findings.finding import (
    COMPARED,
    IF_ANY,
    ByGroup,
    Chart,
    ComparedGroup,
    DisparityFinding,
)
from equipoise.findings.words import Side, be, level_text, listed, percent, plural, tolerance_words


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup(ComparedGroup):
    """One group: what its rows can show, and how many it would take.

    ``value``, ``target`` and ``disparity`` are as they are in the table, or as they were guessed.
    """

    above: float | None
    """Smallest disparity above the limit that is flagged with the stated power at these sizes; None
    if that side is not asked about, or if no disparity is."""
    below: float | None
    """The nearest one below."""
    error: float | None
    """Monte-Carlo standard error of these, the larger of the two."""
    reachable: float | None
    """Smallest estimate that could be flagged at all, as in `flag`; None if not worked out."""
    chance: float | None
    """Chance of a flag at these sizes if the disparity is the stated one; None without one."""
    rows_to_flag: int | None
    """Rows of the group with which the stated disparity is flagged with the stated power, if the
    whole table grows alike; None if none is stated, or no table suffices."""
    kept: float | None
    """Chance at these sizes that the tolerance is shown to be kept by a group without disparity."""
    rows_to_show: int | None
    """Rows of the group with which that has the stated power, if the whole table grows alike."""
    rows_error: float | None
    """Monte-Carlo standard error of these numbers of rows, as a share of them."""
    labels: int | None
    """Rows of the group in the best split of the budget; None without a budget."""
    note: str = ""
    """Why nothing could be said, or what cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreGroups:
    """What it costs to ask about more groups."""

    groups: int
    """How many groups would be tested together."""
    gap: float
    """How many times as far beyond the limit a disparity must be to be flagged."""
    rows_to_flag: float
    """How many times as many rows it takes to flag the same disparity."""
    rows_to_show: float
    """How many times as many rows it takes to show a tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Power(DisparityFinding[PlannedGroup], ByGroup[PlannedGroup]):
    """What an audit can show with these rows, and what it would take to show more.

    >>> import equipoise as eq
    >>> eq.power(eq.datasets.compas(), eq.gap("accuracy", across="sex"), rng=7)
    <Power: accuracy against everyone; 2 rows>
    """

    kind = "power"
    columns = (
        *COMPARED, "above", "below", "chance", "rows_to_flag", "kept", "rows_to_show", "labels",
        "note",
    )  # fmt: skip
    terse = (
        "group", "n", "above", "below", "chance", "rows_to_flag", "kept", "rows_to_show", "labels",
    )  # fmt: skip

    null: str
    """What a flag speaks against, in words."""
    limits: tuple[float, ...]
    """The limits of flags: one, or the ends of a range."""
    power: float
    """The chance of showing something that is asked for."""
    rate: float
    """The rate of false flags."""
    control: str
    """How it is controlled."""
    level: float
    """Confidence of bounds, by which a tolerance is shown to be kept."""
    side: Side
    """Which bounds."""
    tolerance: float | None
    """The tolerance, where one was given."""
    stated: float | None
    """The disparity that is to be flagged, where one was stated."""
    assumed: float | None
    """The rate of all who have no disparity; None where rows of any kind are planned by their
    errors alone."""
    engine: str
    """How chances were worked out."""
    uncertainty: float
    """Largest Monte-Carlo standard error of the chances behind all this."""
    table_to_flag: int | None = None
    """Rows of the whole table with which the stated disparity is flagged in every group that can
    be."""
    table_to_show: int | None = None
    """Rows of the whole table with which every group can be shown to keep the tolerance."""
    budget: int | None = None
    """The rows that are split over groups."""
    width: float | None = None
    """Half the width of the widest bound with the best split."""
    width_alike: float | None = None
    """The same if the budget is split as the table is."""
    more: tuple[MoreGroups, ...] = field(default=(), metadata=IF_ANY)
    """What it costs to ask about more groups."""

    def sentences(self) -> tuple[str, ...]:
        """What can be flagged now, what it takes to flag or show more, and how sure that is."""
        return (
            *self._now(),
            *self._to_flag(),
            *self._to_show(),
            *self._split(),
            *self._more(),
            f"{self.guarantee}.",
            *self._silent(),
        )

    @names_extra
    def plot(self) -> Chart:
        """The disparities that would not be flagged with the stated power, group by group."""
        even = float(self.relative)
        lines = [
            ForestLine(
                group=row.group,
                n=row.n,
                centre=even,
                lower=row.below if len(self.limits) == 2 or row.below is not None else even,
                upper=row.above if len(self.limits) == 2 or row.above is not None else even,
                colour=NEITHER,
            )
            for row in self.rows
            if row.above is not None or row.below is not None
        ]
        return forest(
            lines,
            title=f"Flagged with {level_text(self.power)} power: {self.metric} beyond these lines",
            subtitle=self.guarantee,
            axis=disparity_axis(self.relative, self.share),
            reference=sorted({even, *self.limits}),
        )

    def headline(self) -> str:
        """What can be flagged now."""
        return "".join(self._now()[:1])

    def _now(self) -> list[str]:
        out = []
        for name, word in (("above", "or more"), ("below", "or less")):
            known = [(getattr(row, name), row) for row in self.rows]
            shown = sorted(
                ((abs(x - float(self.relative)), x, row.group, row.n)
                 for x, row in known if x is not None),
            )  # fmt: skip
            if not shown:
                continue
            _, best, group, n = shown[0]
            said = f"{self.say(best)} {word} in {group} (n = {n:,})"
            if len(shown) > 1:
                _, worst, other, few = shown[-1]
                said = f"{said} to {self.say(worst)} {word} in {other} (n = {few:,})"
            out.append(
                f"With {level_text(self.power)} power these rows flag a disparity from {said}: "
                f"{self.metric} {self.null} {self.against}, all others being alike."
            )
        return out or [
            f"With these rows no disparity is flagged with {level_text(self.power)} power in any "
            f"{self.noun}."
        ]

    def _to_flag(self) -> list[str]:
        if self.stated is None:
            return []
        what = f"To flag a disparity of {self.say(self.stated)} with {level_text(self.power)} power"
        return [self._needed(what, "rows_to_flag", "chance", self.table_to_flag, "it is flagged")]

    def _to_show(self) -> list[str]:
        if self.tolerance is None:
            return []
        kept = tolerance_words(self.tolerance, self.side, self.relative, self.share)
        what = (
            f"To show with {level_text(self.level)} confidence that a disparity is {kept}, with "
            f"{level_text(self.power)} power if there is none,"
        )
        return [self._needed(what, "rows_to_show", "kept", self.table_to_show, "it is shown")]

    def _needed(self, what: str, field: str, now: str, table: int | None, done: str) -> str:
        known = [(getattr(row, field), row) for row in self.rows]
        shown = sorted(((rows, row.group) for rows, row in known if rows is not None))
        if not shown:
            return f"{what} no table of these proportions suffices."
        parts = [f"{plural(rows, 'row')} of {group}" for rows, group in shown[:3]]
        more = f" … up to {plural(*_last(shown))}" if len(shown) > 3 else ""
        chances = [x for row in self.rows if (x := getattr(row, now)) is not None]
        present = f"; with these rows {done} in {_range(chances)} of tables" if chances else ""
        whole = f", {plural(table, 'row')} in all for every {self.noun}" if table else ""
        takes = ", ".join(parts) + more if more else listed(parts)
        return f"{what} takes {takes}{whole}{present}."

    def _split(self) -> list[str]:
        if self.budget is None or self.width is None or self.width_alike is None:
            return []
        parts = [f"{row.labels:,} of {row.group}" for row in self.rows if row.labels is not None]
        few = parts[:8]
        listing = listed(few) if len(parts) == len(few) else f"{', '.join(few)} …"
        return [
            f"{plural(self.budget, 'row')} tell most if they are {listing}: the widest bound then "
            f"reaches {self._size(self.width)} either way, and {self._size(self.width_alike)} if "
            "they are split as this table is. Weigh rows by what is there over what is drawn if "
            "groups are compared with everyone or with everyone else."
        ]

    def _size(self, width: float) -> str:
        return f"{width:.2f}" if self.relative else self.say(width).removeprefix("+")

    def _more(self) -> list[str]:
        if not self.more:
            return []
        said = [
            f"{one.groups:,} {self.noun}s take {one.rows_to_flag:.2f} times the rows to flag the "
            f"same disparity and {one.rows_to_show:.2f} times to show a tolerance"
            for one in self.more
        ]
        return [f"Groups have a price: {'; '.join(said)}."]

    def _silent(self) -> list[str]:
        silent = [row for row in self.rows if row.note and row.above is row.below is None]
        if not silent:
            return []
        reasons: dict[str, list[str]] = {}
        for row in silent:
            reasons.setdefault(row.note, []).append(row.group)
        return [
            f"{plural(len(names), self.noun)} {be(len(names))} not planned for ({reason}): "
            f"{'; '.join(names[:3])}{f'; and {len(names) - 3} more' if len(names) > 3 else ''}."
            for reason, names in reasons.items()
        ]


def _last(shown: Sequence[tuple[int, str]]) -> tuple[int, str, str]:
    rows, group = shown[-1]
    return rows, f"row of {group}", f"rows of {group}"


def _range(values: Sequence[float]) -> str:
    low, high = percent(min(values), 0), percent(max(values), 0)
    return low if low == high else f"{low} to {high}"
