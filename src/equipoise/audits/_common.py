"""What every verb shares: the same fields of findings, the same checks, the same progress."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, SupportsFloat, TypedDict, TypeVar

import numpy as np
from narwhals.typing import IntoFrame

from equipoise._validate import Rng, Seed, listing, seed_of
from equipoise._version import __version__
from equipoise.cells import Cells, Collection
from equipoise.cells.tally import Tallied, rows_behind
from equipoise.claims import Claim, Metric, Ratio, Together, overall
from equipoise.claims import claim as targets
from equipoise.claims.groups import Groups
from equipoise.claims.metric import as_metric, scoring_rate
from equipoise.errors import ClaimError, OptionError
from equipoise.findings import Provenance
from equipoise.findings.bounds import BoundedGroup
from equipoise.findings.finding import Finding
from equipoise.findings.flags import CertifiedGroup, FlaggedGroup
from equipoise.findings.joint_test import Joint, JointGroup
from equipoise.findings.words import Ends, Verdict
from equipoise.methods.hypotheses import Null, Outside, StepDown, holm
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.student import affordable_draws, independent_score
from equipoise.methods.numerics import FloatArray, normal_score, per_mille, quantile
from equipoise.methods.stored import Recipe
from equipoise.methods.targets import TiltSums
from equipoise.trail import Trail, read
from equipoise.trail.trail import expect_trail

# --- What findings of every verb say in the same way: source, independence, range, numbers ---


def provenance_of(cells: Cells, seed: int | None = None) -> Provenance:
    """Where a finding comes from, by the cells it was computed on."""
    return Provenance(
        version=__version__,
        source=cells.source,
        scanned=cells.scanned,
        counted=cells.counted,
        excluded=dict(cells.excluded),
        ineligible=cells.ineligible,
        cells=len(cells),
        fingerprint=cells.fingerprint(),
        seed=seed,
    )


def independent(unit: str = "rows") -> str:
    """The assumption that no audit does without."""
    return f"{unit} are independent draws from the population audited"


def drawn_units(cells: Cells) -> str:
    """What is drawn independently: rows, pairs of them, or clusters where the trail names them."""
    rows = "rows" if cells.sides is None else "pairs"
    return rows if cells.clusters is None else "clusters"


def possible_range(claim: Claim, zero_one: bool = False) -> tuple[float | None, float | None]:
    """Smallest and largest disparity that is possible at all; None where there is no limit.

    ``zero_one`` says that the metric was found to be 0/1, whatever its author declared.
    """
    target, (low, high) = claim.target, (claim.metric.low, claim.metric.high)
    if zero_one and (low is None or high is None):
        low, high = 0.0, 1.0
    if isinstance(target, targets.Highest) and target.scale == 1:
        # none is above the highest
        if isinstance(claim, Ratio):
            return (0.0 if low is not None and low >= 0 else None), 1.0
        return (None if low is None or high is None else low - high), 0.0
    if isinstance(claim, Ratio):
        return (0.0 if low is not None and low >= 0 else None), None
    if low is None or high is None:
        return None, None
    if isinstance(target, targets.Constant | targets.Custom):
        value = target.value if isinstance(target, targets.Constant) else target.estimate
        return low - target.scale * value, high - target.scale * value
    # a mean of other rows lies anywhere in the metric's range, whatever the group's own is
    ends = sorted((target.scale * low, target.scale * high))
    return low - ends[1], high - ends[0]


def possible_limit(name: str, limit: float, claim: Claim, possible: Ends) -> None:
    """Refuse a limit that no disparity of the claim can reach, with what was likely meant."""
    low, high = possible
    beyond = (high is not None and limit >= high) or (low is not None and limit <= low)
    if isinstance(claim, Ratio) or not beyond:
        return
    ends = " and ".join(f"{end:g}" for end in (low, high) if end is not None)
    hint = ""
    if abs(limit) > 1 and claim.metric.low is not None and claim.metric.high == 1:
        hint = f" Rates are shares of 1, so {abs(limit):g} points are {abs(limit) / 100:g}."
    raise OptionError(
        f"{name} must lie between {ends}, the smallest and largest disparity that "
        f"{claim.metric.words} can have; got {limit:g}.{hint}"
    )


def below_highest(claim: Claim) -> bool:
    """Whether groups are compared with the highest, which nobody is above."""
    return isinstance(claim.target, targets.Highest) and claim.target.scale == 1


def among_people(claim: Claim) -> bool:
    """Whether groups are compared with people, so that no difference is what one expects.

    A number, or a share of what others have, may be asked to be beaten.
    """
    target = claim.target
    return not isinstance(target, targets.Constant | targets.Custom) and target.scale == 1


def sensible_limit(name: str, limit: float, claim: Claim, *, upward: bool) -> None:
    """Refuse a limit on the wrong side of no difference, which nearly everybody is beyond.

    ``upward`` says that disparities above the limit are looked for. A gap above -0.05 may well be
    asked for: that somebody does no worse.
    """
    if not among_people(claim):
        return
    if upward and isinstance(claim, Ratio) and limit < 1:
        raise OptionError(
            f"{name}={limit:g} looks for ratios above {limit:g}, and 1 is no difference: limits of "
            f"a ratio are such as {name}=1.25. For a difference of {limit:g} ask for a gap."
        )
    if upward and below_highest(claim):
        such = "0.8" if isinstance(claim, Ratio) else f"-{abs(limit) or 0.05:g}"
        raise OptionError(
            f"Nobody is above the highest group, so {name}={limit:g} could find nothing; "
            f"below={such} looks for who lies so far below it."
        )
    if not upward and not isinstance(claim, Ratio) and limit > 0:
        raise OptionError(
            f"{name}={limit:g} looks for disparities below {limit:+g}, which no difference at all "
            f"is too. Most likely {name}=-{limit:g} is meant."
        )


def finite(value: SupportsFloat) -> float | None:
    """A number for a result: None where there is none."""
    return float(value) if math.isfinite(value) else None


# --- What is audited: a trail, or anything that can be read as one ---

#: A trail, or what `read` takes: a path, the place of a database, a table of any kind.
TrailLike = Trail | str | Path | IntoFrame


Across = TypeVar("Across")


class RoleKeywords(TypedDict, total=False):
    """What the columns mean, where a table is audited that is not a trail yet; as in `read`."""

    table: str | None
    label: str | None
    prediction: str | None
    score: str | None
    low: str | None
    high: str | None
    weight: str | None
    count: str | None
    cluster: str | None
    pair: str | None
    proxy_label: str | None
    observed: str | None
    attributes: Sequence[str] | None
    positive: object
    encoding: str | None
    missing: Sequence[str] | None
    proxy: object
    truth: object


class NoTable:
    """Stands for a table where only the options of a verb are to be judged."""


class TableAsked(Exception):  # noqa: N818 (not an error)
    """A verb has found nothing wrong with its options, and would read the table now."""


def judge_options(verb: Callable[..., object], options: Mapping[str, object]) -> None:
    """Raise what a verb has to say about its options, without any table.

    Every verb checks its options before it reads, so that a plan can be judged before there are
    data.
    """
    try:
        verb(NoTable(), **options)
    except TableAsked:
        return


def as_trail(source: TrailLike, roles: RoleKeywords) -> Trail:
    """The trail to audit: as it is, or read with the roles named beside the options."""
    if isinstance(source, NoTable):
        raise TableAsked
    if isinstance(source, Tallied):
        return rows_behind(source)
    if not isinstance(source, Trail):
        return read(source, **roles)
    if roles:
        raise OptionError(
            f"The trail says already what its columns mean; {listing(roles)} belongs to read(…)."
        )
    return source


def as_source(source: TrailLike | Tallied, roles: RoleKeywords) -> Trail | Tallied:
    """The same, or counts that were taken before."""
    if isinstance(source, Tallied) and not roles:
        return source
    if isinstance(source, Tallied):
        raise OptionError(f"Counts know their columns already; leave out {listing(roles)}.")
    return as_trail(source, roles)


def plain_claim(claim: Claim, verb: str, *, measures: bool = False) -> Claim:
    """Return a claim without factors and with a plain target; other verbs know the others."""
    if claim.given:
        raise OptionError(f"{verb} knows no given=; certify, flag, describe and joint_test do.")
    if claim.unknown != "group" or claim.unlabelled != "out":
        raise OptionError(
            f"{verb} knows neither unknown= nor unlabelled=; certify, flag and joint_test do."
        )
    if isinstance(claim.target, targets.Highest):
        raise OptionError(f"{verb} knows no highest(); certify, flag, describe and joint_test do.")
    if claim.metric.overlapping:
        raise OptionError(
            f"{verb} knows no {claim.metric.words}; certify, flag, describe and joint_test do."
        )
    if claim.metric == scoring_rate:
        raise OptionError(
            f"{verb} knows no scoring_rate; certify, flag, describe and joint_test do."
        )
    if not measures:
        mean_of_rows(claim.metric, verb)
    return claim


def mean_of_rows(metric: Metric, verb: str) -> Metric:
    """Refuse measures that are no means, where only means are known."""
    if metric.measure is not None:
        raise OptionError(
            f"{verb} knows no {metric.words}, which is no mean of rows; certify, flag, describe "
            "and joint_test do."
        )
    return metric


def is_tilted(collection: Collection) -> bool:
    """Whether a collection weighs rows by more than 0 and 1."""
    return isinstance(collection.sums, TiltSums)


def groups_only(collection: Collection, verb: str) -> None:
    """Refuse tilts where counts of rows are needed."""
    if is_tilted(collection):
        raise OptionError(
            f"{verb} takes groups, or tilts that weigh by 0 and 1. For other tilts there are "
            "certify and flag."
        )


def metric_and_groups(
    question: Metric | str | Claim, across: Across | None, *, measures: bool = False
) -> tuple[Metric, Across | Groups]:
    """What is measured and between whom, of a claim or of a metric with ``across=``.

    Measures that are no means are refused unless ``measures``.
    """
    if isinstance(question, Together):
        raise ClaimError("This audit measures one metric; pass its claim, or the metric.")
    if not isinstance(question, Claim):
        if across is None:
            raise OptionError("Say between whom with across=…, or pass a claim such as gap(…).")
        metric = as_metric(question)
        return metric if measures else mean_of_rows(metric, "This audit"), across
    if across is not None:
        raise OptionError("The claim names the groups already; leave out across=.")
    plain_claim(question, "This audit", measures=measures)
    if question.target != overall():
        raise ClaimError(
            "Here groups are compared with one another, so a target has no meaning. Pass "
            f"gap({question.metric.name!r}, across=…) without target=."
        )
    return question.metric, question.across


# --- What audits of single rows ask of a trail ---


def rows_alone(trail: Trail, why: str) -> Trail:
    """Return a trail whose rows are independent and count alike; ``why`` begins the refusal."""
    found = expect_trail(trail)
    for role in ("weight", "cluster"):
        if role in found.roles:
            raise OptionError(f"{why} and takes no {role} column. Read the trail without {role}=….")
    return found


class Predicts(Protocol):
    """A fitted model, such as those of scikit-learn."""

    def predict(self, frame: Any, /) -> object:
        """One answer for each row of a frame."""


#: What is audited itself, not only its predictions: it takes a frame with the features as columns.
Model = Callable[[Any], object] | Predicts


# --- A progress bar that appears only when there is something to wait for ---

Progress = bool | Callable[[int, int], None] | None
#: Seconds before a bar appears.
PATIENCE = 1.0


@contextmanager
def progress_bar(progress: Progress, total: int, title: str) -> Iterator[Callable[[int], None]]:
    """Give a function to be told how many of ``total`` steps are done.

    ``progress`` is a function called with (done, total), True or False, or None: a bar if someone
    is watching. An interrupted audit leaves the terminal as it was.
    """
    if not (progress is None or callable(progress) or isinstance(progress, bool)):
        raise OptionError(
            f"progress must be True, False, None or a function of (done, total); got {progress!r}."
        )
    if callable(progress):
        yield lambda done: progress(done, total)
        return
    bar = _Bar(total, title) if (_watched() if progress is None else progress) else None
    try:
        yield bar.update if bar else _ignore
    finally:
        if bar:
            bar.close()


def _ignore(done: int) -> None:
    """Nobody is watching."""


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _Bar:
    """A rich progress bar, started once the work has taken longer than a moment."""

    def __init__(self, total: int, title: str) -> None:
        self._total, self._title = total, title
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int) -> None:
        if self._bar is None and time.monotonic() - self._started > PATIENCE:
            self._open()
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._title, total=self._total)
        self._bar.start()


# --- Several claims as one question: each at its share of the error, the worst told for each
# group ---

_ORDER = [str(Verdict.EXCEEDED), "flagged", str(Verdict.UNDETERMINED), "bounded", "not flagged"]


#: A row of any audit that may be one of several.
Audited = BoundedGroup | CertifiedGroup | FlaggedGroup


def jointly(
    together: Together,
    audit: Callable[[Claim, float, Seed], Finding],
    error: float,
    rng: Rng,
    promise: str,
) -> Joint:
    """Audit each claim at its share of the error, and join the answers.

    Splitting the error makes the joint promise hold whatever the dependence between the claims.
    """
    share = error / len(together.claims)
    # a seed that is drawn here is drawn once, so that the one recorded repeats every part
    same = seed_of(rng).number if rng is None else rng
    parts = {c.metric.words: audit(c, share, seed_of(same)) for c in together.claims}
    first = next(iter(parts.values()))
    return Joint(
        claim=together.quoted(),
        question=together.name,
        guarantee=promise,
        assumptions=first.assumptions,
        provenance=first.provenance,
        rows=_worst(parts),
        name=together.name,
        parts={"kind": "parts", **{name: part.to_dict() for name, part in parts.items()}},
    )


def _worst(parts: dict[str, Finding]) -> tuple[JointGroup, ...]:
    found: dict[str, list[tuple[str, Audited]]] = {}
    for name, part in parts.items():
        for row in part.rows:
            found.setdefault(row.group, []).append((name, row))
    return tuple(_row(*max(rows, key=_badness)) for rows in found.values())


def _row(metric: str, row: Audited) -> JointGroup:
    return JointGroup(
        group=row.group,
        where=row.where,
        metric=metric,
        n=row.n,
        value=row.value,
        disparity=row.disparity,
        verdict=_verdict(row),
        note=row.note,
    )


def _verdict(row: Audited) -> str:
    if isinstance(row, FlaggedGroup):
        return "flagged" if row.flagged else "not flagged"
    if isinstance(row, CertifiedGroup):
        return str(Verdict.KEPT if row.certified else Verdict.UNDETERMINED)
    return "bounded" if row.verdict is None else str(row.verdict)


def _badness(pair: tuple[str, Audited]) -> tuple[int, float]:
    """Worse verdicts first, then larger disparities."""
    verdict = _verdict(pair[1])
    rank = len(_ORDER) - _ORDER.index(verdict) if verdict in _ORDER else 0
    return rank, abs(pair[1].disparity or 0.0)


# --- Scores of all groups together: the critical value that bounds share, and adjusted p-values


@dataclass(frozen=True, slots=True, kw_only=True)
class Critical:
    """The score that all groups' bounds share."""

    value: float
    """The critical score at the level asked for."""
    quantiles: tuple[float, ...]
    """The same at the levels 0.1 %, 0.2 % … 99.9 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Bounds of every group, and how they came about."""

    lower: FloatArray
    upper: FloatArray
    reach: FloatArray
    critical: float
    engine: str
    recipe: Recipe | None
    guarantee: str
    assumption: str
    quantiles: tuple[float, ...] = ()
    """Critical values of the levels 0.1 %, 0.2 % … 99.9 %, where there is a distribution."""
    against: FloatArray | None = None
    """Bounds on the other side of a one-sided limit, which may show that it is not kept."""
    notes: tuple[str, ...] = ()
    """Why nothing is said about each group; empty if there is nothing of the kind."""


def critical_scores(
    core: Core, level: float, side: str, draws: int | None, seed: Seed, progress: Progress
) -> Critical:
    """Critical scores of the answered groups.

    Never above those of independent groups, nor below that of one group alone.
    """
    number = core.answered.size
    if number == 0:
        return Critical(value=float("nan"), quantiles=())
    two_sided = side == "both"
    if number == 1:
        table = tuple(independent_score(i / 1000, 1, two_sided) for i in range(1, 1000))
        return Critical(value=max(independent_score(level, 1, two_sided), 0.0), quantiles=table)
    times = draws or affordable_draws(core.status.size)
    lowest, highest, done = np.empty(times), np.empty(times), 0
    with progress_bar(progress, times, "certify") as tell:
        for block in core.law(draws=times, seed=seed.sequence).scores():
            part = slice(done, done + len(block))
            lowest[part], highest[part] = block.min(axis=1), block.max(axis=1)
            done += len(block)
            tell(done)
    # scores are symmetric, so one side has twice the draws
    one = np.concatenate([highest, -lowest])
    largest = np.maximum(highest, -lowest) if two_sided else one

    def held(score: float, at: float) -> float:
        least, most = (independent_score(at, n, two_sided) for n in (1, number))
        return max(min(score, most), least, 0.0)

    table = tuple(held(q, (i + 1) / 1000) for i, q in enumerate(per_mille(largest)))
    return Critical(value=held(quantile(largest, level), level), quantiles=table)


def answerable(
    core: Core, level: float, side: str, draws: int | None, seed: Seed, progress: Progress
) -> tuple[Core, Critical, float]:
    """The core without groups too skewed for the score that all groups together would need.

    Also the critical scores of those that are left, and the score that decided.
    """
    every = critical_scores(core, level, side, draws, seed, progress)
    left = core.guarded(every.value)
    if left is core:
        return core, every, every.value
    return left, critical_scores(left, level, side, draws, seed, progress), every.value


def stepped_down(
    core: Core, p: FloatArray, null: Null, draws: int | None, seed: Seed
) -> FloatArray:
    """Adjusted p-values by step-down maxima of the scores, never above Holm's."""
    used = core.answered
    two_sided = isinstance(null, Outside)
    statistic = normal_score(p / 2 if two_sided else p)
    step = StepDown(np.where(np.isnan(p[used]), np.nan, statistic[used]))
    out = np.full(p.shape, np.nan)
    if used.size:
        times = draws or affordable_draws(core.status.size)
        for block in core.law(draws=times, seed=seed.sequence).scores():
            step.add(np.abs(block) if two_sided else block)
            if not two_sided:
                # scores are symmetric: the other side is a second draw
                step.add(-block)
        out[used] = step.p_values()
    return np.asarray(np.maximum(np.fmin(out, holm(p)), p))
