"""The four-fifths rule of the Uniform Guidelines on Employee Selection (29 CFR 1607.4 D).

A rate below four fifths of the highest group's is generally regarded as evidence of adverse impact.
Smaller differences may be too, if they are significant in statistical and in practical terms;
larger ones may not be, if they rest on small numbers and are not statistically significant.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._validate import confidence
from equipoise.audits._common import provenance_of
from equipoise.audits.certify import certify
from equipoise.audits.flag import flag
from equipoise.cells import gather
from equipoise.claims import gap, highest, intersections, ratio, reference
from equipoise.claims.metric import selection_rate
from equipoise.errors import OptionError
from equipoise.findings import Finding, Provenance
from equipoise.findings.bounds import Bounds
from equipoise.findings.finding import Group
from equipoise.findings.words import level_text
from equipoise.methods.inference.strata import Strata, conditional_tails
from equipoise.packs import (
    Definition,
    Filled,
    Members,
    PackTable,
    from_source,
    is_unknown,
    levels_of,
    names_of,
    needed_column,
    small_trail,
    uncounted_words,
)
from equipoise.trail import Trail

RULE = "The four-fifths rule of 29 CFR 1607.4 D"

TEMPLATE = """
{title}
{facts}
# The table of the rule
Each group's selection rate is divided by the rate of the group with the highest rate.
{statutory}
# How sure one can be
{uncertain}
{sentences}
"""

#: People by group and stratum; one stratum, called "", where none are given.
Strewn = Mapping[str, Mapping[str, Members]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """A group beside the one with the highest rate."""

    group: str
    own: Members
    top: Members

    @property
    def ratio(self) -> float | None:
        """Rate divided by the highest rate."""
        return (self.own.rate or 0.0) / self.top.rate if self.top.rate else None

    @property
    def below(self) -> bool:
        """Whether the ratio is less than four fifths, in whole numbers."""
        return 5 * self.own.ones * self.top.people < 4 * self.top.ones * self.own.people

    @property
    def to_change(self) -> int | None:
        """How many more (or, negative, fewer) selections in the group would change ``below``."""
        if not self.top.ones:
            return None
        # the fewest selections with which the group is not below four fifths
        enough = -(-4 * self.top.ones * self.own.people // (5 * self.top.people))
        return enough - self.own.ones if self.below else -(self.own.ones - enough + 1)

    @property
    def to_even_out(self) -> int:
        """How many more selections would give the group the highest rate."""
        return max(-(-self.top.ones * self.own.people // self.top.people) - self.own.ones, 0)

    @property
    def deviations(self) -> float | None:
        """The difference of the rates in standard deviations, if all had the pooled rate."""
        people = self.own.people + self.top.people
        pooled = (self.own.ones + self.top.ones) / people
        wide = math.sqrt(pooled * (1 - pooled) * (1 / self.own.people + 1 / self.top.people))
        return ((self.own.rate or 0.0) - (self.top.rate or 0.0)) / wide if wide else None


def fill(
    trail: Trail,
    *,
    across: Sequence[str] | str = ("sex", "race"),
    given: str | None = None,
    unknown: Sequence[str] | str = (),
    level: float = 0.95,
    rng: int = 7,
) -> Filled:
    """Set the selection rate of every group beside the highest.

    ``across`` names the attributes, each compared on its own; ``given`` the column of requisitions
    (jobs, postings) within which people compete; ``unknown`` words that mean an unknown group.
    """
    confidence(level)
    if "prediction" not in trail.roles:
        raise OptionError(f"{RULE} needs a column with who was selected: prediction=….")
    names = [needed_column(trail, one, "across", RULE) for one in names_of(across, "across")]
    if not names:
        raise OptionError(f"{RULE} needs at least one attribute, such as sex: across=….")
    if given is not None:
        given = needed_column(trail, given, "given", RULE)
    tables: list[PackTable] = []
    findings: list[Finding] = []
    words: list[str] = []
    facts: dict[str, str] = {}
    provenance: Provenance | None = None
    for name in names:
        strewn, provenance, gone = _count(trail, name, given, names_of(unknown, "unknown"))
        rows, top = _beside(name, strewn)
        bounds = _bounds(name, strewn, provenance, level, rng)
        p = _exact(rows)
        tables += [_statutory(name, rows), _bounded(name, rows, top, bounds, p, level)]
        tables.append(_tested(name, rows, top, p))
        findings.append(bounds)
        words += _words(name, rows, top, p, level)
        facts[f"People whose {name} is unknown, not in the table"] = f"{gone:,}"
        if given is not None:
            table, made = _given(name, strewn, top, given, provenance, level, rng)
            tables.append(table)
            findings += made
    assert provenance is not None
    people = f"{provenance.counted:,} of {provenance.source}"
    return Filled(
        facts={
            "People": people,
            **facts,
            "People without an outcome": uncounted_words(provenance),
        },
        tables=tables,
        words=words,
        provenance=provenance,
        findings=findings,
    )


def _count(
    trail: Trail, name: str, given: str | None, words: Sequence[str]
) -> tuple[Strewn, Provenance, int]:
    """People by group and stratum, where they come from, and how many are of no known group."""
    claim = gap(selection_rate, across=intersections(*filter(None, (name, given))))
    (cells,) = gather(trail, [claim])
    group, stratum = cells.axis(name), cells.axis(given) if given else None
    found: dict[str, dict[str, Members]] = {}
    gone = 0
    for levels, rows, ones in zip(levels_of(cells), cells.rows, cells.total, strict=True):
        if is_unknown(levels[group], words):
            gone += round(float(rows))
        elif rows:
            # people without a requisition are a stratum of their own
            found_in = None if stratum is None else levels[stratum]
            place = "" if stratum is None else "none" if found_in is None else str(found_in)
            here = found.setdefault(str(levels[group]), {})
            here.setdefault(place, Members()).add(float(rows), float(ones))
    return dict(sorted(found.items())), provenance_of(cells), gone


def _pooled(strata: Mapping[str, Members]) -> Members:
    every = Members()
    for one in strata.values():
        every.add(one.people, one.ones)
    return every


def _beside(name: str, strewn: Strewn) -> tuple[list[Versus], str]:
    """Every group beside the one with the highest rate, and its name."""
    people = {group: _pooled(strata) for group, strata in strewn.items()}
    if len(people) < 2:
        raise OptionError(
            f"{RULE} compares groups, and {name} has "
            f"{'one' if people else 'none'} that is known{': ' + next(iter(people), '')}. "
            "It needs at least two."
        )
    top = max(people, key=lambda group: (people[group].rate or 0.0, people[group].people))
    return [Versus(group=group, own=own, top=people[top]) for group, own in people.items()], top


def _statutory(name: str, rows: Sequence[Versus]) -> PackTable:
    return PackTable(
        name=name,
        part="statutory",
        caption=f"By {name}",
        columns=(
            name, "applicants", "selected", "selection rate", "ratio to the highest",
            "below four fifths",
        ),
        lines=tuple(
            # without a ratio nothing is below or above
            (row.group, row.own.people, row.own.ones, row.own.rate, row.ratio,
             None if row.ratio is None else row.below)
            for row in rows
        ),
    )  # fmt: skip


def _bounds(name: str, strewn: Strewn, provenance: Provenance, level: float, rng: int) -> Bounds:
    trail = _trail(name, {group: {"": _pooled(strata)} for group, strata in strewn.items()})
    claim = ratio(selection_rate, across=name, target=highest())
    found = from_source(certify(trail, claim, level=level, rng=rng), provenance)
    assert isinstance(found, Bounds)
    return found


def _trail(name: str, strewn: Strewn, given: str | None = None) -> Trail:
    """The same people as a trail."""
    lines = [
        (group, place, outcome, one.ones if outcome else one.people - one.ones)
        for group, strata in strewn.items()
        for place, one in strata.items()
        for outcome in (1, 0)
    ]
    groups, places, outcomes, counts = zip(*lines, strict=True)
    columns = {name: list(groups), **({given: list(places)} if given else {})}
    return small_trail(columns, outcomes, counts)


def _exact(rows: Sequence[Versus]) -> list[float]:
    """Exact two-sided p-values against the highest group, all margins given."""
    numbers = np.array(
        [[row.own.people, row.own.ones, row.top.people, row.top.ones] for row in rows], float
    ).T[:, None, :]
    strata = Strata(
        group_rows=numbers[0],
        group_ones=numbers[1],
        other_rows=numbers[2],
        other_ones=numbers[3],
    )
    up, down = conditional_tails(strata)
    return [min(2 * min(one, other), 1.0) for one, other in zip(up, down, strict=True)]


def _bounded(
    name: str,
    rows: Sequence[Versus],
    top: str,
    bounds: Bounds,
    p: Sequence[float],
    level: float,
) -> PackTable:
    """Bounds of the ratios, and how each difference reads."""
    found = {_level(row, name): row for row in bounds}
    lines = []
    for row, chance in zip(rows, p, strict=True):
        ends = found[row.group].lower, found[row.group].upper
        reading = _reading(row, _chosen(chance, rows), level)
        if row.ratio is None:
            reading = "nobody was selected"
        elif row.group == top:
            reading = "the highest rate"
        lines.append((row.group, row.ratio, *ends, reading))
    return PackTable(
        name=name,
        part="uncertain",
        caption=f"By {name}: ratios with {level_text(level)} bounds",
        columns=(name, "ratio", "lower", "upper", "reading"),
        lines=tuple(lines),
        note=(
            "The people are taken as a sample of those whom the procedure will select from. All "
            "bounds hold at once, whichever group is truly the highest."
        ),
    )


def _tested(name: str, rows: Sequence[Versus], top: str, p: Sequence[float]) -> PackTable:
    """Standard deviations, the exact test, and how many people a difference is."""
    return PackTable(
        name=f"{name}, tests",
        part="uncertain",
        caption=f"By {name}: beside {top}",
        columns=(
            name, "standard deviations", "exact p", "p, highest chosen", "selections to change",
            "selections to even out",
        ),
        lines=tuple(
            (row.group, row.deviations, chance, _chosen(chance, rows), row.to_change,
             row.to_even_out)
            for row, chance in zip(rows, p, strict=True)
            if row.group != top
        ),
        note=(
            "The exact test is two-sided, with all margins as they are; the next column allows "
            f"for {top} having been picked after looking. Selections to change: how many more (or "
            "fewer) in the group, all else as it is, would take it across four fifths; to even "
            "out: how many more would give it the highest rate."
        ),
    )  # fmt: skip


def _chosen(p: float, rows: Sequence[Versus]) -> float:
    """A p-value that allows for the highest of the other groups having been picked."""
    return min(p * (len(rows) - 1), 1.0)


def _reading(row: Versus, p: float, level: float) -> str:
    shown = p <= 1 - level + 1e-12
    if row.below:
        told = "statistically significant" if shown else "not statistically significant"
        return f"below four fifths, {told}"
    return "smaller difference, statistically significant" if shown else "smaller difference"


def _level(row: Group, name: str) -> str:
    """The level that a row of a finding is about, whatever words the finding has for it."""
    return str(row.where[name])


def _given(
    name: str,
    strewn: Strewn,
    top: str,
    given: str,
    provenance: Provenance,
    level: float,
    rng: int,
) -> tuple[PackTable, list[Finding]]:
    """The same within requisitions: Mantel and Haenszel, exact test, odds alike."""
    trail = _trail(name, strewn, given)
    claim = ratio(selection_rate, across=name, target=reference({name: top}), given=[given])
    bounds = certify(trail, claim, level=level, rng=rng)
    flags = flag(trail, claim, population="these rows", rng=rng)
    exact = {_level(row, name): row.p for row in flags}
    about = {_level(row, name): row for row in bounds.adjusted}
    lines = []
    for row in bounds:
        own = _level(row, name)
        if own != top:
            one = about[own]
            lines.append(
                (
                    own,
                    one.unadjusted,
                    row.disparity,
                    row.lower,
                    row.upper,
                    _mantel_haenszel(strewn[own], strewn[top]),
                    exact[own],
                    one.same,
                    one.apart,
                    row.note or None,
                )
            )
    table = PackTable(
        name=f"{name} given {given}",
        part="uncertain",
        caption=f"By {name} within {given}: people compared with {top} of the same {given}",
        columns=(
            name, "ratio before", "ratio within", "lower", "upper", "standard deviations",
            "exact p", "p same", "people alone", "note",
        ),
        lines=tuple(lines),
        note=(
            f"Rates are standardised by Mantel and Haenszel's weights; {level_text(level)} bounds "
            "hold at once. The exact test is Cochran's, Mantel's and Haenszel's, all margins of "
            "all strata as they are. 'p same': whether the odds ratio is the same in all strata "
            "(exact, given all margins). People alone share their "
            f"{given} with nobody of {top}, and say nothing."
        ),
    )  # fmt: skip
    return table, [from_source(found, provenance) for found in (bounds, flags)]


def _mantel_haenszel(own: Mapping[str, Members], top: Mapping[str, Members]) -> float | None:
    """Selections beyond those expected within strata, in standard deviations."""
    beyond = variance = 0.0
    for place in own.keys() & top.keys():
        n1, n0 = own[place].people, top[place].people
        n, ones = n1 + n0, own[place].ones + top[place].ones
        if n > 1:
            beyond += own[place].ones - n1 * ones / n
            variance += n1 * n0 * ones * (n - ones) / (n**2 * (n - 1))
    return beyond / math.sqrt(variance) if variance else None


def _words(
    name: str, rows: Sequence[Versus], top: str, p: Sequence[float], level: float
) -> list[str]:
    under = [row for row in rows if row.below]
    if not rows[0].top.ones:
        return [f"By {name} nobody was selected, so there is no ratio."]
    if not under:
        said = [f"By {name} no group is below four fifths of the highest rate, that of {top}."]
    else:
        listed = ", ".join(f"{row.group} ({row.ratio:.2f})" for row in under)
        if len(under) == 1:
            listed = under[0].group
        worst = min(row.ratio or 0.0 for row in under)
        tail = f" ({worst:.2f})" if len(under) == 1 else ""
        are = "is" if len(under) == 1 else "are"
        said = [
            f"By {name}, {listed} {are} below four fifths of the highest rate, that of {top}{tail}."
        ]
    pairs = list(zip(rows, p, strict=True))
    shown = [
        row.group
        for row, chance in pairs
        if not row.below and row.group != top and _chosen(chance, rows) <= 1 - level + 1e-12
    ]
    if shown:
        said.append(
            f"By {name}, smaller differences are statistically significant: {', '.join(shown)}. "
            "Whether they are so in practical terms, the number of selections to even out helps "
            "to judge."
        )
    return said


PACK = Definition(
    name="four-fifths",
    title="Adverse impact: the four-fifths rule (Uniform Guidelines, 29 CFR 1607.4 D)",
    rule="29 CFR 1607.4 D",
    dated="as adopted in 1978",
    template=TEMPLATE,
    fill=fill,
)
