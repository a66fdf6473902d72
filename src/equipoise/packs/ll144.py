"""Bias audits of automated employment decision tools in New York City (Local Law 144).

The rules: 6 RCNY 5-300 (definitions), 5-301 (bias audit), 5-302 (data), 5-303 (published results).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from equipoise._validate import confidence, known_name, seed_of
from equipoise.audits._common import provenance_of
from equipoise.audits._groups.problem import CertifyOptions, Problem, set_up
from equipoise.audits.certify import bound_groups
from equipoise.audits.methods import Pivotal
from equipoise.cells import Cells, gather
from equipoise.cells.gather import median_claims
from equipoise.claims import Claim, gap, highest, intersections, ratio
from equipoise.claims.metric import scoring_rate, selection_rate
from equipoise.errors import OptionError
from equipoise.findings import Provenance
from equipoise.findings.bounds import Bounds
from equipoise.findings.words import level_text, percent, plural
from equipoise.methods.inference.ranks import MedianSums, Middle
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

RULE = "The bias audit of 6 RCNY 5-301"
#: Categories of a smaller share may be left out of the impact ratios, with a justification.
LEAST = 0.02
_NOT_STATED = "not stated; the rule asks for it"

TEMPLATE = """
{title}
{facts}
# The tables of the rule
The impact ratio is a category's rate divided by that of the category with the highest rate.
{statutory}
# How sure one can be
{uncertain}
{sentences}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Everybody by sex and race, and what their rate is."""

    cells: Mapping[tuple[object, ...], Members]
    total: Members
    middle: Middle | None
    """The median and the range around it, where rates are scoring rates."""
    provenance: Provenance

    @property
    def words(self) -> tuple[str, str]:
        """What those who count are called, and their rate."""
        if self.middle is None:
            return "selected", "selection rate"
        return "above the median", "scoring rate"


def fill(
    trail: Trail,
    *,
    sex: str = "sex",
    race: str = "race",
    rate: str | None = None,
    unknown: Sequence[str] | str = (),
    data_kind: str | None = None,
    data_source: str | None = None,
    explanation: str | None = None,
    audited: str | None = None,
    distributed: str | None = None,
    justification: str | None = None,
    level: float = 0.95,
    rng: int = 7,
) -> Filled:
    """Count people by sex, race and both, and set each rate beside the highest.

    ``rate`` is "selection" or "scoring"; without it, selection if the trail has a prediction.
    ``unknown`` lists words that mean an unknown category; missing ones always do. ``justification``
    leaves categories of less than 2 % of the people out of the ratios. The other texts are printed.
    """
    confidence(level)
    if data_kind is not None:
        known_name("data_kind", data_kind, ("historical", "test"))
    columns = [
        needed_column(trail, sex, "sex", RULE),
        needed_column(trail, race, "race", RULE),
    ]
    counted = _count(trail, columns, _rate(trail, rate))
    words = names_of(unknown, "unknown")
    asked = {"sex": (0,), "race": (1,), "sex and race": (0, 1)}
    tables: list[PackTable] = []
    findings: list[Bounds] = []
    for name, places in asked.items():
        people = _categories(counted, places, words)
        if len(people) < 2:
            raise OptionError(
                f"{RULE} compares categories of {name}, and the table has "
                f"{'one' if people else 'none'} that is known"
                f"{': ' + str(next(iter(people))[0]) if people else ''}. It needs at least two."
            )
        small = [key for key, one in people.items() if one.people < LEAST * counted.total.people]
        without = small if justification else []
        heads = tuple(columns[place] for place in places)
        tables.append(_statutory(name, heads, people, without, counted))
        kept = {key: one for key, one in people.items() if key not in without}
        if len(kept) > 1:
            bounds = _bounds(name, kept, counted, level, rng)
            findings.append(bounds)
            tables.append(_uncertain(name, heads, list(kept), bounds, level))
    facts = _facts(counted, words, data_kind, data_source, explanation, audited, distributed)
    if justification:
        facts["Categories under 2 % left out of the ratios, because"] = justification
    return Filled(
        facts=facts,
        tables=tables,
        words=_words(tables, counted, justification),
        provenance=counted.provenance,
        findings=findings,
    )


def _rate(trail: Trail, rate: str | None) -> str:
    if rate is not None:
        known_name("rate", rate, ("selection", "scoring"))
    chosen = rate or ("selection" if "prediction" in trail.roles else "scoring")
    role = "prediction" if chosen == "selection" else "score"
    if role not in trail.roles:
        what = (
            "who was selected (prediction=…)"
            if rate == "selection"
            else "the scores (score=…)"
            if rate == "scoring"
            else "who was selected (prediction=…), or the scores (score=…)"
        )
        raise OptionError(f"{RULE} needs a column with {what}; it is not named.")
    return chosen


def _count(trail: Trail, columns: Sequence[str], rate: str) -> _Counted:
    """One scan: people by both attributes, with who is selected or scores above the median."""
    metric = selection_rate if rate == "selection" else scoring_rate
    claims: Sequence[Claim] = [gap(metric, across=intersections(*columns))]
    middle = None
    if metric is scoring_rate:
        claims, middle = median_claims(trail, claims[0])
    every = gather(trail, claims)
    cells = every[0]
    found: dict[tuple[object, ...], Members] = {}
    total = Members()
    order = [cells.axis(name) for name in columns]
    sums = zip(cells.rows, *(one.total for one in every), strict=True)
    for levels, numbers in zip(levels_of(cells), sums, strict=True):
        key = tuple(levels[place] for place in order)
        found.setdefault(key, Members()).add(*map(float, numbers))
        total.add(*map(float, numbers))
    return _Counted(cells=found, total=total, middle=middle, provenance=provenance_of(cells))


def _categories(
    counted: _Counted, places: Sequence[int], words: Sequence[str]
) -> dict[tuple[str, ...], Members]:
    """People of every known category by one attribute or by both."""
    found: dict[tuple[str, ...], Members] = {}
    for key, one in counted.cells.items():
        levels = [key[place] for place in places]
        if not any(is_unknown(level, words) for level in levels) and one.people:
            name = tuple(str(level) for level in levels)
            found.setdefault(name, Members()).add(one.people, one.ones, *one.further)
    return dict(sorted(found.items()))


def _statutory(
    name: str,
    heads: tuple[str, ...],
    people: Mapping[tuple[str, ...], Members],
    without: Sequence[tuple[str, ...]],
    counted: _Counted,
) -> PackTable:
    ones, rate = counted.words
    top = max((one.rate or 0.0 for key, one in people.items() if key not in without), default=0.0)
    lines = []
    for key, one in people.items():
        known = one.rate is not None and top > 0 and key not in without
        impact = (one.rate or 0.0) / top if known else None
        lines.append((*key, one.people, one.ones, one.rate, impact))
    note = (
        f"Left out of the ratios, at less than 2 % of the people: "
        f"{'; '.join(', '.join(key) for key in without)}."
        if without
        else ""
    )
    return PackTable(
        name=name,
        part="statutory",
        caption=f"By {name}",
        columns=(*heads, "applicants", ones, rate, "impact ratio"),
        lines=tuple(lines),
        note=note,
    )


def _bounds(
    name: str,
    kept: Mapping[tuple[str, ...], Members],
    counted: _Counted,
    level: float,
    rng: int,
) -> Bounds:
    """Ratios to the highest rate with bounds that hold for all categories of a table at once."""
    labels = [", ".join(key) for key in kept]
    several = list(kept.values())
    problem = _problem(name, labels, several, [one.ones for one in several])
    if counted.middle is not None:
        asked = ratio(scoring_rate, across=name, target=highest())
        problem = replace(problem, claim=asked, **_medians(name, labels, several, counted))
    options = CertifyOptions(level=level, side="both", tolerance=None, method=Pivotal())
    made = from_source(bound_groups(problem, options, seed_of(rng), False), counted.provenance)
    assert isinstance(made, Bounds)
    return made


def _problem(
    name: str, labels: list[str], several: Sequence[Members], ones: Sequence[int]
) -> Problem:
    trail = small_trail(
        {name: labels * 2},
        [1] * len(labels) + [0] * len(labels),
        [*ones, *(one.people - k for one, k in zip(several, ones, strict=True))],
    )
    return set_up(trail, ratio(selection_rate, across=name, target=highest()))


class _Medians(TypedDict, total=False):
    """What a problem must know of an estimated median."""

    median: MedianSums
    medians: tuple[Cells, ...]


def _medians(
    name: str, labels: list[str], several: Sequence[Members], counted: _Counted
) -> _Medians:
    """Nothing if the median is settled; else how it moves, or what it may jump to."""
    middle = counted.middle
    if middle is None or middle.settled:
        return {}
    if middle.others:
        columns = zip(*(one.further[1:] for one in several), strict=True)
        others = [_problem(name, labels, several, ones).cells for ones in columns]
        return {"medians": tuple(others)}
    # the cells of a small table are its categories in order
    pairs = sorted(zip(labels, several, strict=True), key=lambda pair: pair[0])
    near = [one.further[0] for _, one in pairs]
    return {
        "median": MedianSums(
            near=np.array(near, dtype=np.float64),
            all_near=float(counted.total.further[0]),
            rows=float(counted.total.people),
        )
    }


def _uncertain(
    name: str,
    heads: tuple[str, ...],
    keys: Sequence[tuple[str, ...]],
    bounds: Bounds,
    level: float,
) -> PackTable:
    # by what the categories are, whatever words a finding has for them
    found = {str(row.where[name]): row for row in bounds}
    lines = []
    for key in keys:
        row = found[", ".join(key)]
        lines.append((*key, row.n, row.disparity, row.lower, row.upper, row.note or None))
    return PackTable(
        name=name,
        part="uncertain",
        caption=f"By {name}: the impact ratio with {level_text(level)} bounds",
        columns=(*heads, "applicants", "impact ratio", "lower", "upper", "note"),
        lines=tuple(lines),
        note=(
            "The people are taken as a sample of those whom the tool will assess. All bounds of "
            "this table hold at once; that the highest category is picked after looking is "
            "allowed for."
        ),
    )


def _facts(
    counted: _Counted,
    words: Sequence[str],
    data_kind: str | None,
    data_source: str | None,
    explanation: str | None,
    audited: str | None,
    distributed: str | None,
) -> dict[str, str]:
    by_sex, by_race, either = (
        sum(
            one.people
            for key, one in counted.cells.items()
            if any(is_unknown(key[place], words) for place in places)
        )
        for places in ((0,), (1,), (0, 1))
    )
    why = _NOT_STATED
    if data_kind == "test":
        why += ", and why historical data were not used and how the test data were made"
    facts = {
        "Date of the audit": audited or _NOT_STATED,
        "Source of the data": data_source or counted.provenance.source,
        "Kind of data": f"{data_kind} data" if data_kind else _NOT_STATED,
        "Explanation of the data": explanation or why,
        "Distribution date of the tool": distributed or _NOT_STATED,
        "People assessed": f"{counted.total.people:,}",
        "People of an unknown category, not in the calculations": (
            f"{either:,} (sex unknown: {by_sex:,}; race unknown: {by_race:,})"
        ),
        "People without an outcome": uncounted_words(counted.provenance),
    }
    if counted.middle is not None:
        facts["Median score of the full sample"] = f"{counted.middle.median:.10g}"
    return facts


def _words(tables: Sequence[PackTable], counted: _Counted, justification: str | None) -> list[str]:
    said = []
    for table in tables:
        if table.part == "uncertain":
            continue
        known = [line for line in table.lines if line[-1] is not None]
        if not known:
            said.append(
                f"By {table.name} there is no impact ratio: the rate of every category "
                "that counts is zero."
            )
            continue
        low = min(known, key=lambda line: float(line[-1]))
        keys = len(table.columns) - 4
        said.append(
            f"By {table.name} the lowest impact ratio is {low[-1]:.2f}: "
            f"{', '.join(map(str, low[:keys]))}, {percent(low[-2])} of "
            f"{plural(low[keys], 'applicant')}."
        )
        small = [line for line in table.lines if line[keys] < LEAST * counted.total.people]
        if small and not justification:
            said.append(
                f"{plural(len(small), 'category', 'categories')} of {table.name} "
                f"{'is' if len(small) == 1 else 'are'} less than 2 % of the people; the rule lets "
                "them be left out of the ratios with a justification, and none was given."
            )
    return said


PACK = Definition(
    name="ll144",
    title="Bias audit of an automated employment decision tool (New York City, Local Law 144)",
    rule="6 RCNY 5-300 to 5-303",
    dated="as in force since 5 July 2023",
    template=TEMPLATE,
    fill=fill,
)
