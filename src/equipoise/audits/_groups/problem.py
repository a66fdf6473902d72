"""The problem of a group audit: cells, groups, target and options as the mathematics takes them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from equipoise._validate import Seed, confidence, fraction, known_name, listing, modest, whole
from equipoise.audits._common import (
    among_people,
    below_highest,
    drawn_units,
    finite,
    independent,
    is_tilted,
    possible_limit,
    possible_range,
    provenance_of,
)
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.gather import (
    group_means,
    influence_claims,
    influence_formula,
    median_cells,
    reference_cells,
    side_claims,
)
from equipoise.cells.rows import RowTable, pull_factors, pull_rows
from equipoise.cells.tally import Tallied, steady_cells
from equipoise.claims import Claim, Ratio
from equipoise.claims import claim as targets
from equipoise.claims.groups import Factors, Overlap
from equipoise.claims.metric import Metric, scoring_rate
from equipoise.errors import ClaimError, OptionError
from equipoise.findings import Provenance
from equipoise.findings.adjusted import AdjustedGroup, ChangedGroup, LabelledGroup, UnknownGroup
from equipoise.findings.words import SELF_TARGET, Side
from equipoise.methods.inference.core import Core, core_of, highest_core
from equipoise.methods.inference.orthogonal import Residual
from equipoise.methods.inference.strata import Adjusted, Weights
from equipoise.methods.inference.student import LEAST_ROWS, ClusterSums, rows_needed
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.published.bootstrap import (
    CellMoments,
    GroupEstimates,
    RowData,
    canonical_rows,
    estimate_gaps,
    estimate_ratios,
)
from equipoise.methods.targets import (
    Before,
    Complement,
    Constant,
    Custom,
    Highest,
    InfluenceSums,
    Moments,
    Overall,
    Reference,
    Status,
    Target,
)
from equipoise.trail import Trail

if TYPE_CHECKING:
    from equipoise.audits._groups.measured import Asked
    from equipoise.methods.inference.ranks import MedianSums

MOST_RIVALS = 200
"""Groups that may be compared each with each."""

# --- The problem: cells, groups and target in the form the mathematics takes ---


@dataclass(frozen=True, kw_only=True)
class Problem:
    """All that a method needs of one claim on one trail."""

    claim: Claim
    cells: Cells
    collection: Collection
    target: Target
    influence: InfluenceSums | None
    rows: Callable[[], RowData]
    """Fetches the rows, for the methods that need them."""
    table: Callable[[tuple[str, ...]], RowTable] | None = None
    """Fetches the rows with some columns as features, where that is possible."""
    median: "MedianSums | None" = None
    """The rows around the median, where rates are those above it and it may move."""
    trust: str = ""
    """How far the error rate can be trusted, where that is not as usual."""
    granted: str = ""
    """What else is taken for granted."""
    medians: tuple[Cells, ...] = ()
    """The cells of other scores that may be the median, where it may jump to them."""
    sides: tuple[Cells, Cells] | None = None
    """The cells of both metrics whose difference row by row is asked, such as before and after."""
    measured: "Asked | None" = None
    """What is measured, where it is no mean of rows."""

    @cached_property
    def core(self) -> Core:
        """Pivots of every group, their joint law, and why some have no answer."""
        if self.measured is not None:
            return self.measured.core(self)
        if self.claim.unknown != "group":
            from equipoise.audits._groups.unknown import unknown_core

            return unknown_core(self)
        if self.claim.given and (self.claim.learnt or not _plain_counts(self.cells)):
            from equipoise.audits._groups.given import factor_core_of

            return factor_core_of(self)
        core = self._known(self.cells)
        if self.cells.sides is not None:
            from equipoise.audits._groups.given import without_partners

            core = without_partners(self, core)
        if self.median is None and not self.medians:
            return core
        from equipoise.methods.inference.ranks import above_median, any_median

        if self.medians:
            return any_median(core, [self._known(cells) for cells in self.medians])
        return core if self.median is None else above_median(core, self.median)

    def _known(self, cells: Cells) -> Core:
        return make_core(
            cells, self.target, self.collection, relative=self.relative, claim=self.claim
        )

    @cached_property
    def moments(self) -> CellMoments:
        """The cells' sums as the published methods take them."""
        return published_moments(self.cells)

    @cached_property
    def estimates(self) -> GroupEstimates:
        """What the published methods know of every group."""
        estimate = estimate_ratios if self.relative else estimate_gaps
        return estimate(self.moments, self.target, self.collection.sums)

    @property
    def relative(self) -> bool:
        """Whether disparities are ratios."""
        return isinstance(self.claim, Ratio)

    @property
    def share(self) -> bool:
        """Whether disparities are read in percentage points."""
        if self.measured is not None:
            return False
        both = self.sides is not None and all(cells.zero_one for cells in self.sides)
        return self.cells.zero_one or both

    @property
    def tilted(self) -> bool:
        """Whether rows count with weights of their own, so that counts do not say everything."""
        return is_tilted(self.collection)

    @property
    def noun(self) -> str:
        """What the members of the collection are called."""
        return "tilt" if self.claim.across.weighs else "group"

    @property
    def every(self) -> str:
        """All members of the collection, in words."""
        number = len(self.collection)
        return f"every one of the {number:,} {self.noun}s" if number > 1 else f"the one {self.noun}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What every method on this problem takes for granted."""
        said = (
            independent(drawn_units(self.cells)),
            f"the collection of {self.noun}s was fixed before looking at the outcomes",
            *([self.granted] if self.granted else []),
        )
        if self.claim.learnt is None:
            return said
        return (
            *said,
            "what the models miss of outcome and of membership, multiplied, is small beside the "
            "standard error",
        )


def set_up(trail: Trail | Tallied, claim: Claim) -> Problem:
    """Scan the rows once and form the groups."""
    odd = trail.roles.proxy_label or trail.roles.observed or claim.unlabelled != "out"
    if odd or (isinstance(trail, Trail) and trail.proxies):
        from equipoise.audits._groups.unknown import roundabout

        if (found := roundabout(trail, claim)) is not None:
            return found
    if claim.metric == scoring_rate:
        return _above_median(trail, claim)
    if claim.metric.measure is not None:
        from equipoise.audits._groups.measured import measured_problem

        return measured_problem(trail, claim)
    cells, influence, sides = _gather(trail, claim)
    problem = problem_of(claim, cells, lambda: _row_data(trail, claim, cells), influence)
    return replace(
        problem,
        table=lambda names: pull_factors(trail, claim.metric, cells, names),
        sides=sides,
    )


def _above_median(trail: Trail | Tallied, claim: Claim) -> Problem:
    """The problem of rates above the sample's median, which is estimated as well."""
    if claim.unknown != "group":
        raise ClaimError(f"scoring_rate knows no unknown={claim.unknown!r} so far; leave it out.")
    asked, cells, median, others = median_cells(trail, claim)
    problem = problem_of(claim, cells, lambda: _row_data(trail, asked, cells))
    return replace(problem, median=median, medians=others)


def problem_of(
    claim: Claim,
    cells: Cells,
    rows: Callable[[], RowData],
    influence: InfluenceSums | None = None,
) -> Problem:
    """A problem from cells that exist already."""
    collection = form_groups(claim.across, cells)
    if claim.unknown != "group":
        from equipoise.audits._groups.unknown import of_the_known

        collection = of_the_known(claim, cells, collection)
    if isinstance(claim.target, targets.Complement) and is_tilted(collection):
        raise ClaimError(
            "A tilt has no outside: rows count more or less, and complement() needs groups. "
            "Use overall(), reference(…), custom(…) or a constant as the target."
        )
    return Problem(
        claim=claim,
        cells=cells,
        collection=collection,
        target=_own_target(cells) or method_target(claim.target, cells, influence),
        influence=influence,
        rows=rows,
    )


def make_core(
    cells: Cells,
    target: Target,
    collection: Collection,
    *,
    relative: bool,
    claim: Claim | None = None,
) -> Core:
    """The inference core of a collection of groups, given the factors that the claim names."""
    if isinstance(target, Highest) and claim is not None:
        return _highest(cells, target, collection, claim)
    return core_of(
        cell_moments(cells),
        target,
        collection.sums,
        relative=relative,
        zero_one=cells.zero_one,
        weighted=cells.weighted,
        clusters=cluster_sums(cells, target),
        values=cells.values,
        strata=None if claim is None or not claim.given else strata_of(cells, claim),
    )


def _highest(cells: Cells, target: Highest, collection: Collection, claim: Claim) -> Core:
    """Every group against the highest among those formed by the same attributes."""
    rivals, member = highest_rivals(cells, collection, claim)
    return highest_core(
        cell_moments(cells),
        target,
        collection.sums,
        rivals,
        member,
        relative=isinstance(claim, Ratio),
        zero_one=cells.zero_one,
        weighted=cells.weighted,
        clusters=cluster_sums(cells, target),
        values=cells.values,
    )


def highest_rivals(
    cells: Cells, collection: Collection, claim: Claim
) -> tuple[dict[int, BoolArray], BoolArray]:
    """Which groups are compared with each that may be the highest, and of what each is made."""
    if not isinstance(claim.target, targets.Highest):
        raise ClaimError("Only a claim against the highest group has rivals.")
    kinds = [tuple(sorted(where)) for where in collection.wheres()]
    size = len(kinds)
    if is_tilted(collection) or not all(kinds):
        raise ClaimError("highest() compares groups that are formed by attributes.")
    if size > MOST_RIVALS:
        raise ClaimError(
            f"highest() compares every group with every other; {size:,} are more than "
            f"{MOST_RIVALS}. Use fewer attributes, or a lower depth."
        )
    member = collection.sums(np.eye(len(cells))) > 0
    rows = collection.sums(cells.rows)
    large = rows >= claim.target.share * cells.rows.sum()
    rivals = {
        j: np.array([kinds[i] == kinds[j] and i != j for i in range(size)], dtype=bool)
        for j in range(size)
        if large[j] and rows[j] > 0
    }
    return rivals, np.asarray(member)


def _plain_counts(cells: Cells) -> bool:
    """Whether counts of zeros and ones are all there is to know."""
    return cells.zero_one and not cells.weighted and cells.clusters is None


def strata_of(cells: Cells, claim: Claim) -> tuple[IntArray, Weights]:
    """The stratum of each cell."""
    axes = [cells.cut_by(one) for one in claim.given if not isinstance(one, Factors)]
    _, place = np.unique(cells.index[:, axes], axis=0, return_inverse=True)
    return place.reshape(-1).astype(np.int64), Weights(claim.weights)


def cell_moments(cells: Cells) -> Moments:
    """The cells' sums as the mathematics takes them, weights being about one."""
    one = weight_unit(cells)
    two, three = one**2, one**3
    return Moments(
        rows=cells.rows,
        # without sampling weights they are one array, which says that counts are counts
        weight=cells.weight / one if cells.weighted else cells.rows,
        total=cells.total / one,
        weight2=cells.weight2 / two,
        total2=cells.total2 / two,
        square2=cells.square2 / two,
        weight3=cells.weight3 / three,
        total3=cells.total3 / three,
        square3=cells.square3 / three,
        cube3=cells.cube3 / three,
    )


def weight_unit(cells: Cells) -> float:
    """The power of two nearest to the mean weight: dividing by it loses no digit."""
    if not cells.weighted:
        return 1.0
    mean = float(cells.weight.sum()) / max(float(cells.rows.sum()), 1.0)
    return float(2.0 ** round(math.log2(mean))) if mean > 0 else 1.0


def published_moments(cells: Cells) -> CellMoments:
    """The cells' sums as the published methods take them."""
    return CellMoments(
        rows=cells.rows,
        weight=cells.weight,
        total=cells.total,
        weight2=cells.weight2,
        total2=cells.total2,
        square2=cells.square2,
        binary=cells.zero_one and not cells.weighted,
    )


def cluster_sums(cells: Cells, target: Target) -> ClusterSums | None:
    """Sums by cluster, if the trail has a cluster column."""
    table = cells.clusters
    if table is None:
        return None
    if isinstance(target, Custom):
        raise OptionError("A custom target cannot be combined with a cluster column.")
    return ClusterSums(
        cluster=table.cluster,
        cell=table.cell,
        weight=table.weight / weight_unit(cells),
        total=table.total / weight_unit(cells),
        cells=len(cells),
    )


def method_target(target: targets.Target, cells: Cells, influence: InfluenceSums | None) -> Target:
    """A claim's target as the mathematics takes it."""
    match target:
        case targets.Constant(value=value, scale=scale):
            return Constant(value=value, scale=scale)
        case targets.Overall(scale=scale):
            return Overall(scale=scale)
        case targets.Complement(scale=scale):
            return Complement(scale=scale)
        case targets.Highest(scale=scale):
            return Highest(scale=scale)
        case targets.Reference(where=where, scale=scale):
            return Reference(cells=reference_cells(where, cells), scale=scale)
        case targets.Custom(estimate=estimate, scale=scale) if influence is not None:
            return Custom(value=estimate, influence=influence, scale=scale)
    raise ClaimError(f"{type(target).__name__} is not a target this audit can use.")


def _own_target(cells: Cells) -> Target | None:
    """No difference, if rows are those of partners; rows that counted before, if they differ."""
    if cells.metric.overlapping is None:
        return None if cells.sides is None else Constant(value=0.0)
    place = cells.cut_by(Overlap(cells.metric.overlapping))
    levels = np.array(cells.axes[place].levels, dtype=np.int64)[cells.index[:, place]]
    return Before(before=(levels & 1) > 0, after=(levels & 2) > 0)


def _row_data(trail: Trail | Tallied, claim: Claim, cells: Cells) -> RowData:
    rows = pull_rows(trail, claim.metric, cells, influence_formula(claim))
    return canonical_rows(
        cell=rows.cell,
        value=rows.value,
        weight=rows.weight,
        count=rows.count,
        influence=rows.extra,
    )


def _gather(
    trail: Trail | Tallied, claim: Claim
) -> tuple[Cells, InfluenceSums | None, tuple[Cells, Cells] | None]:
    extra, beside = influence_claims(claim), side_claims(claim)
    cells, *others = map(steady_cells, gather(trail, [claim, *extra, *beside], pairs=True))
    sides = (others[-2], others[-1]) if beside else cells.sides
    if not extra:
        return cells, None, sides
    psi, product = others[:2]
    influence = InfluenceSums(
        rows=float(cells.counted),
        total=psi.total,
        product=product.total,
        sum=float(psi.total.sum()),
        square=float(psi.square.sum()),
    )
    return cells, influence, sides


class About(TypedDict):
    """What every finding about groups says of its question and its rows."""

    claim: Mapping[str, object]
    question: str
    provenance: Provenance
    metric: str
    against: str


def about(problem: Problem, seed: int | None) -> About:
    """The question in words, and where the numbers come from."""
    claim = problem.claim
    return {
        "claim": claim.quoted(),
        "question": claim.words + (", pair by pair" if problem.cells.sides is not None else ""),
        "provenance": provenance_of(problem.cells, seed),
        "metric": claim.metric.words,
        "against": claim.target.words,
    }


class Beside(TypedDict):
    """What findings say of people, or labels, that are not known."""

    unknown: tuple[UnknownGroup, ...]
    labels: tuple[LabelledGroup, ...]


class GroupFields(TypedDict):
    """The fields that every row about a group begins with."""

    group: str
    where: Mapping[str, object]
    n: int
    value: float | None
    target: float | None
    disparity: float | None


def group_fields(problem: Problem) -> list[GroupFields]:
    """The beginning of every row, in the order of the collection."""
    found = problem.core.comparison
    value, target = found.mean, found.target.scale * found.theta
    if isinstance(found.target, Before):
        # of a change the group's value is the change itself, beside none
        value, target = found.estimate, np.zeros_like(target)
    if problem.cells.sides is not None:
        target, value = (group_means(x, problem.collection) for x in problem.cells.sides)
    columns = zip(
        problem.collection.labels(),
        problem.collection.wheres(),
        found.rows.tolist(),
        value.tolist(),
        target.tolist(),
        found.estimate.tolist(),
        strict=True,
    )
    return [
        {
            "group": label,
            "where": where,
            "n": round(rows),
            "value": finite(mean),
            "target": finite(beside),
            "disparity": finite(disparity),
        }
        for label, where, rows, mean, beside, disparity in columns
    ]


def adjusted_groups(problem: Problem) -> tuple[AdjustedGroup, ...]:
    """Every group without the factors that are given; empty if none are."""
    if not isinstance(problem.core.comparison, Adjusted | Residual):
        return ()
    # few audits ask for it
    from equipoise.audits._groups.given import without_factors

    return without_factors(problem)


def changed_groups(problem: Problem) -> tuple[ChangedGroup, ...]:
    """Both rates of every group where two are compared row by row; empty if none are."""
    if problem.sides is None and not isinstance(problem.target, Before):
        return ()
    from equipoise.audits._groups.given import both_sides

    return both_sides(problem)


def unknown_beside(
    problem: Problem, options: "CertifyOptions | None" = None, seed: Seed | None = None
) -> Beside:
    """What the unknown can change in every group, and what cheap labels are worth."""
    if problem.claim.unknown == "group" and not problem.trust:
        return {"unknown": (), "labels": ()}
    from equipoise.audits._groups.unknown import unknown_groups

    return unknown_groups(problem, options, seed)


def notes_of(
    core: Core, score: float, metric: Metric, noun: str = "group", *, bets: bool = False
) -> list[str]:
    """Why each group has no answer, in words; empty if it has one.

    ``bets`` says whether bounds by betting could be asked for instead.
    """
    open_ended = (metric.low is None or metric.high is None) and metric.measure is None
    otherwise = ", or a metric bounded with .clip(low, high)" if open_ended else ""
    if bets and not open_ended:
        otherwise = ", or method='betting'"
    needed: FloatArray = rows_needed(core.comparison.rows, core.reach, score)
    out = []
    for status, rows in zip(core.status.tolist(), needed.tolist(), strict=True):
        said = _said(status, noun)
        if isinstance(core.comparison.target, Before):
            said = _CHANGED.get(Status(status), said)
        if status == Status.SKEWED:
            said = f"too skewed for its rows: about {_about(rows)} would be needed{otherwise}"
        out.append(said)
    return out


def published_notes(problem: Problem, answered: BoolArray, method: object) -> tuple[str, ...]:
    """Why a published method says nothing about a group, in words; empty if it says something."""
    found, least = problem.estimates, getattr(method, "min_rows", 1)
    # the published methods know no difference between no rows and a rate of zero
    zero = problem.core.status == Status.ZERO_TARGET
    status = np.where(zero, int(Status.ZERO_TARGET), found.status)
    few = np.where(found.rows < least, "fewer rows than the minimum", _NOTES[Status.CONSTANT])
    return tuple(
        "" if said else _said(code, problem.noun) or otherwise
        for said, code, otherwise in zip(
            answered.tolist(), status.tolist(), few.tolist(), strict=True
        )
    )


def _said(status: int, noun: str) -> str:
    if status == Status.EMPTY and noun == "tilt":
        return "weight 0 on every row on which the metric counts"
    return _NOTES.get(Status(status), "")


def _about(rows: float) -> str:
    """A number of rows to two digits."""
    if not np.isfinite(rows) or rows >= 1e15:
        return "very many rows"
    digits = max(len(str(int(rows))) - 2, 0)
    return f"{int(round(rows, -digits)):,} rows"


def check_method(problem: Problem, method: object, usable: Mapping[str, type]) -> None:
    """Refuse a method that counts rows where tilts weigh them; ``usable`` are those that do not."""
    two = isinstance(problem.target, Before) or problem.cells.sides is not None
    special = {
        "given=": problem.claim.given,
        "highest()": isinstance(problem.target, Highest),
        "proxies": problem.trust,
        "unknown=": problem.claim.unknown != "group",
        "scoring_rate": problem.claim.metric == scoring_rate,
        problem.claim.metric.words: problem.measured is not None,
    }
    for name, asked in special.items():
        plain = ("Pivotal", "Certificates") if problem.measured is not None else ("Pivotal",)
        if asked and type(method).__name__ not in plain:
            raise OptionError(f"{type(method).__name__} knows no {name}; leave method= out.")
    if two and type(method).__name__ not in ("Pivotal", "Certificates"):
        what = "pairs" if problem.cells.sides is not None else problem.claim.metric.words
        raise OptionError(f"{type(method).__name__} knows no {what}; leave method= out.")
    if problem.tilted and not isinstance(method, tuple(usable.values())):
        raise OptionError(
            f"{type(method).__name__} counts rows, and a tilt weighs them. Tilts other than 0 and "
            f"1 take method= {listing(usable)}, or none."
        )


_CHANGED = {Status.EMPTY: "no row counts after", Status.NO_TARGET: "no row counted before"}
_NOTES = {
    Status.EMPTY: "no row on which the metric counts",
    Status.SINGLE: "one row only",
    Status.CONSTANT: (
        "its rows are all alike, or too close for their size, so its uncertainty is unknown"
    ),
    Status.NO_TARGET: "the target has no row to compare with",
    Status.IDENTICAL: SELF_TARGET,
    Status.ZERO_TARGET: "the target is zero here, so there is no ratio to it",
    Status.FEW_CLUSTERS: "too few clusters, or a few that outweigh all others",
    Status.NO_OVERLAP: "nobody else shares the factors that are given with anybody of the group",
    Status.FEW_ROWS: "too few rows, here or in the target, to know how the metric varies",
    Status.FEW_PAIRS: (
        f"too few pairs to bound a mean difference, which takes {LEAST_ROWS}; flag without a limit "
        "tests whether partners are treated alike"
    ),
    Status.UNDEFINED: "it lacks rows of some kind, or the target does, so that it has no value",
}


# --- What callers of `certify` and `flag` ask for, checked once, before any row is read ---

Control = Literal["bh", "by", "e-bh", "holm", "max-t"]
Population = Literal["people like these", "these rows"]

#: How flags are controlled, in words.
CONTROLS = {
    "bh": "false discovery rate (Benjamini–Hochberg)",
    "by": "false discovery rate under any dependence (Benjamini–Yekutieli)",
    "e-bh": "false discovery rate under any dependence (e-BH)",
    "holm": "familywise error (Holm)",
    "max-t": "familywise error (step-down maxima)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """Everything about certifying but the data and the claim."""

    level: float
    side: Side
    tolerance: float | None
    method: Any
    """A method's value; None until the cells are known and a default can be chosen."""
    resamples: int | None = None
    """Asked for beside the method, for whichever is chosen."""

    def __post_init__(self) -> None:
        confidence(self.level)
        known_name("side", self.side, ("lower", "upper", "both"))
        if self.tolerance is not None:
            modest("tolerance", self.tolerance)
        if self.resamples is not None:
            whole("resamples", self.resamples, least=20)

    def check_claim(self, claim: Claim) -> None:
        """Refuse a tolerance that means nothing for the claim."""
        tolerance = self.tolerance
        if tolerance is None:
            return
        if isinstance(claim, Ratio):
            if tolerance <= 0 or (self.side == "both" and tolerance >= 1):
                raise OptionError(
                    "For a ratio the tolerance is a share such as 0.8, between 0 and 1; "
                    f"got {tolerance!r}."
                )
        elif self.side == "both" and tolerance <= 0:
            raise OptionError(
                "tolerance must be above 0 with side='both', which allows so much either way; got "
                f"{tolerance!r}."
            )
        self._check_side(claim, tolerance)
        low, high = possible_range(claim)
        if below_highest(claim) and self.side == "both" and low is not None:
            # nobody is above the highest, so there only the lower end can be passed
            high = -low
        possible_limit("tolerance", tolerance, claim, (low, high))

    def _check_side(self, claim: Claim, tolerance: float) -> None:
        """Refuse a one-sided limit that every group would have to beat, not only to keep."""
        even = 1.0 if isinstance(claim, Ratio) else 0.0
        beyond = {"lower": tolerance > even, "upper": tolerance < even, "both": False}[self.side]
        if self.side == "upper" and below_highest(claim):
            raise OptionError(
                "Nobody is above the highest group, so an upper limit is always kept: leave "
                "side= out."
            )
        if beyond and among_people(claim):
            way = "above" if self.side == "lower" else "below"
            meant = 1 / tolerance if even else -tolerance
            raise OptionError(
                f"side={self.side!r} with tolerance={tolerance:g} asks that every group is {way} "
                f"its target by so much. Most likely tolerance={meant:g} is meant."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagOptions:
    """Everything about flagging but the data and the claim."""

    above: float | None
    below: float | None
    outside: tuple[float, float] | None
    fdr: float
    control: Control
    method: Any
    min_rows: int | None
    resamples: int | None
    population: Population = "people like these"

    @property
    def dealt(self) -> bool:
        """Whether the question is about exactly these rows."""
        return self.population == "these rows"

    def __post_init__(self) -> None:
        known_name("population", self.population, ("people like these", "these rows"))
        fraction("fdr", self.fdr)
        known_name("control", self.control, tuple(CONTROLS))
        given = ("above", "below", "outside")
        named = [name for name in given if getattr(self, name) is not None]
        if len(named) > 1:
            raise OptionError(f"Pass one of above=, below= and outside=; got {listing(named)}.")
        if self.min_rows is not None:
            whole("min_rows", self.min_rows)


@dataclass(frozen=True, kw_only=True)
class MadeProblem(Problem):
    """A problem whose core is made in a way of its own."""

    made: Core

    @cached_property
    def core(self) -> Core:
        """The core as it was made."""
        return self.made


def no_rows() -> RowData:
    raise OptionError("With probabilities in place of attributes there are no rows to resample.")
