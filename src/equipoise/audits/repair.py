"""`repair`: a rule learnt on one part of the rows, and certified on the other."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Unpack, cast

import numpy as np

from equipoise._validate import Rng, Seed, fraction, known_keywords, known_name, seed_of, whole
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    as_trail,
    finite,
    plain_claim,
    progress_bar,
)
from equipoise.audits._groups.problem import CertifyOptions
from equipoise.audits._repair import (
    Ask,
    LearntRule,
    RepairTable,
    priced,
    recalibrations,
    thresholds_on,
)
from equipoise.audits.certify import certify
from equipoise.audits.describe import describe
from equipoise.cells import gather
from equipoise.cells.query import numbers
from equipoise.claims import Claim, Metric, Ratio, as_claim, change, gap
from equipoise.claims.claim import Complement, Constant, Overall, Reference
from equipoise.claims.groups import Intersections, Levels
from equipoise.claims.metric import MetricLike, as_metric, error_rate, squared_error
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.bounds import Bounds
from equipoise.findings.repair import How, Price, Repair, RepairedGroup, Rule, TriedRule
from equipoise.findings.words import Side, Verdict, level_text, tolerated
from equipoise.trail import Trail

Asked = Literal["threshold", "by_group", "recalibration"]


@known_keywords
def repair(
    trail: TrailLike,
    claim: Claim,
    *,
    tolerance: float,
    rule: Asked | None = None,
    side: Side = "both",
    level: float = 0.95,
    learn: float = 0.5,
    candidates: int = 100,
    tries: int = 1,
    loss: MetricLike | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Repair:
    """Learn another rule on one part of the rows, and certify its decisions on the other.

    The certificate is that of `certify`, on rows that had no part in learning or choosing the rule,
    and so holds however many candidates were looked at.

    Parameters
    ----------
    trail, claim, tolerance, side, level
        As in `certify`. The trail needs a score; with a label or a prediction the price of the rule
        can be told.
    rule
        ``"threshold"``: one threshold on the score for everyone, the default where the metric reads
        the prediction. ``"by_group"``: one for each group, only if asked for, since in some places
        that is unlawful. ``"recalibration"``: new scores along a line that never falls and is the
        same for everyone, where the metric reads the score.
    learn
        The share of the rows (or clusters, where the trail names them) to learn from.
    candidates
        The most thresholds that are looked at. Those that say yes, or no, to fewer than a quarter
        as many as so far are not among them: to tell everybody the same is no repair.
    tries
        How many candidates the second part may choose among. Each is certified at a level that
        pays for the choice.
    loss
        What a rule should lose little of: the error rate, or the squared error of a score, if not
        given.
    rng, progress
        As in `certify`. The same seed deals the same rows, in whatever order they come.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> import equipoise as eq
    >>> draw = np.random.default_rng(1)
    >>> score = draw.random(4000)
    >>> table = pl.DataFrame({
    ...     "sex": draw.choice(["f", "m"], 4000),
    ...     "score": score,
    ...     "paid": (draw.random(4000) < score).astype(int),
    ... })
    >>> trail = eq.read(table, label="paid", score="score")
    >>> found = eq.repair(trail, eq.gap("selection_rate", across="sex"), tolerance=0.1, rng=7)
    >>> str(found.verdict), found.rule.how
    ('kept', 'threshold')
    """
    ask = checked_ask(
        claim,
        tolerance=tolerance,
        rule=rule,
        side=side,
        level=level,
        learn=learn,
        candidates=candidates,
        tries=tries,
        loss=loss,
    )
    seed, source = seed_of(rng), as_trail(trail, roles)
    _check_trail(source, ask.claim)
    with progress_bar(progress, tries + 2, "repair") as tell:
        found = learnt_and_certified(source, ask, seed, tell)
    return _finding(source, ask, seed, found)


def checked_ask(
    claim: Claim,
    *,
    tolerance: float,
    rule: str | None = None,
    side: Side = "both",
    level: float = 0.95,
    learn: float = 0.5,
    candidates: int = 100,
    tries: int = 1,
    loss: MetricLike | None = None,
) -> Ask:
    """What is asked, checked before any table is looked at."""
    asked = plain_claim(as_claim(claim), "repair")
    CertifyOptions(level=level, side=side, tolerance=tolerance, method=None).check_claim(asked)
    how = _how(asked, rule)
    fraction("learn", learn)
    whole("candidates", candidates, least=2, most=10_000)
    whole("tries", tries, least=1, most=100)
    allowed = tolerated(tolerance, side, isinstance(asked, Ratio))
    lost = _loss(loss, how)
    return Ask(asked, lost, how, tolerance, side, allowed, level, learn, candidates, tries)


@dataclass(frozen=True, slots=True)
class Certified:
    """The two parts, what was learnt on the first, and what the second shows of it."""

    first: RepairTable
    second: RepairTable
    learnt: LearntRule
    judged: list[Bounds]
    best: int
    """Which of the rules is returned."""

    @property
    def rule(self) -> Rule:
        """The rule that is returned."""
        return self.learnt.rules[self.best]

    @property
    def certificate(self) -> Bounds:
        """What the second part shows of it."""
        return self.judged[self.best]


def learnt_and_certified(
    trail: Trail, ask: Ask, seed: Seed, tell: Callable[[int], None]
) -> Certified:
    """Everything that decides: the rows dealt, rules learnt on some, certified on the others."""
    table = RepairTable.of(trail, ask.claim, ask.loss)
    first, second = table.dealt(ask.learn, np.random.default_rng(seed.sequence))
    learnt = recalibrations(first, ask) if ask.how == "recalibration" else thresholds_on(first, ask)
    tell(1)
    judged = []
    # what the second part may choose among is paid for, so that all their bounds hold at once
    each = 1 - (1 - ask.level) / len(learnt.rules)
    for place, rule in enumerate(learnt.rules):
        judged.append(
            certify(
                second.with_rule(rule).beside(first).trail(ask.how),
                ask.claim,
                tolerance=ask.tolerance,
                side=ask.side,
                level=each,
                rng=_own(seed, place),
            )
        )
        tell(2 + place)
    return Certified(first, second, learnt, judged, _best(learnt, judged))


def _how(claim: Claim, rule: str | None) -> How:
    if claim.across.weighs:
        raise OptionError("repair takes groups; for tilts there are certify and flag.")
    if not isinstance(claim.target, Overall | Complement | Reference | Constant):
        raise OptionError(
            "repair compares with a number, everyone, complement() or reference(…); got "
            f"{claim.target.words}."
        )
    if claim.metric.change is not None:
        raise ClaimError("repair makes new decisions; ask about the metric itself, no change.")
    read = [name for name in ("prediction", "score") if name in claim.metric.names()]
    if not isinstance(claim.metric.value, str):
        raise ClaimError("repair needs a metric whose value is written as a formula.")
    if not read:
        raise ClaimError(
            f"No rule can repair {claim.metric.name!r}: it reads neither prediction nor score."
        )
    usual: How = "threshold" if "prediction" in read else "recalibration"
    if rule is None:
        return usual
    chosen = cast(How, known_name("rule", rule, ("threshold", "by_group", "recalibration")))
    if (chosen == "recalibration") != (usual == "recalibration"):
        raise OptionError(
            f"{claim.metric.name!r} reads the {read[0]}, which rule={chosen!r} does not change; "
            f"use rule={usual!r}. (For decisions a recalibration is one more threshold.)"
        )
    if chosen == "by_group":
        across = claim.across
        plain = isinstance(across, Intersections)
        if not plain or not all(
            isinstance(a, Levels) for a in cast(Intersections, across).attributes
        ):
            raise OptionError(
                "Thresholds by group need groups formed by values of attributes: across='race', or "
                "intersections(…)."
            )
    return chosen


def _loss(loss: MetricLike | None, how: How) -> Metric:
    usual, role = (squared_error, "score") if how == "recalibration" else (error_rate, "prediction")
    found = usual if loss is None else as_metric(loss)
    if role not in found.names() or found.change is not None or not isinstance(found.value, str):
        raise OptionError(f"loss= must be a metric that reads the {role}; got {found.name!r}.")
    if found.harm == "low":
        raise OptionError(f"loss= must be a loss, and more {found.words} is better.")
    return found


def _check_trail(trail: Trail, claim: Claim) -> None:
    if trail.roles.column("score") == trail.roles.prediction:
        raise TrailError(
            f"The score {trail.roles.score!r} is the prediction itself, on which there is no other "
            "threshold. Name the column with the model's number before deciding: score=…."
        )
    for role in ("pair", "proxy_label", "observed"):
        if role in trail.roles:
            raise OptionError(f"repair knows no {role}=; read the trail without it.")
    named = [d.name for d in claim.dimensions() if d.name in trail.proxies]
    if named:
        raise OptionError(f"repair needs known groups; only probabilities of {named[0]!r} are.")


def _own(seed: Seed, place: int) -> int:
    """A seed for each certificate, so that none depends on how many there are."""
    return int(np.random.SeedSequence([*_words(seed), place]).generate_state(1)[0])


def _words(seed: Seed) -> list[int]:
    return [int(word) for word in seed.sequence.generate_state(4)]


# --- What was found ---


def _best(learnt: LearntRule, judged: list[Bounds]) -> int:
    """The certified rule that lost least; where none is certified, the one with most room."""
    kept = [i for i, found in enumerate(judged) if found.verdict is Verdict.KEPT]
    losses = [math.inf if loss is None else loss for loss in learnt.losses]
    if kept:
        return min(kept, key=lambda i: (losses[i], i))
    return min(range(len(judged)), key=lambda i: (learnt.overruns[i], i))


def _finding(trail: Trail, ask: Ask, seed: Seed, found: Certified) -> Repair:
    rule, learnt = found.rule, found.learnt
    applied, tries = found.second.with_rule(rule), len(found.judged)
    certificate = _kept_back(found.certificate, applied, ask)
    return Repair(
        claim=ask.claim.quoted(),
        question=f"{ask.claim.words}, repaired by a {_KINDS[rule.how]}",
        guarantee=(
            f"If the rule does not keep the tolerance, the chance of a certificate is at most "
            f"{level_text(round(1 - ask.level, 12))}, however many candidates were looked at"
        ),
        assumptions=(
            *certificate.assumptions,
            f"the two parts were dealt at random by {_unit(trail)}, so that neither tells of the "
            "other",
        ),
        provenance=dataclasses.replace(certificate.provenance, seed=seed.number),
        rows=_rows(certificate, _before(applied, ask)),
        metric=certificate.metric,
        against=certificate.against,
        share=certificate.share,
        relative=certificate.relative,
        rule=rule,
        level=ask.level,
        side=ask.side,
        tolerance=ask.tolerance,
        verdict=certificate.verdict or Verdict.UNDETERMINED,
        learnt_on=found.first.scored,
        certified_on=certificate.provenance.counted,
        unit=_unit(trail),
        candidates=learnt.candidates,
        tries=tries,
        within=learnt.overruns[found.best] < 0,
        price=_price(applied, ask, learnt.usual, _own(seed, 1 << 20)),
        tried=tuple(
            TriedRule(
                rule=one.words,
                loss=learnt.losses[i],
                worst=finite(learnt.overruns[i]),
                verdict=found.judged[i].verdict,
                chosen=i == found.best,
            )
            for i, one in enumerate(learnt.rules)
        ),
        yes_before=_yes(applied, applied.names["before"]),
        yes_after=_yes(applied, applied.names["repaired"]) if ask.how != "recalibration" else None,
        certified=certificate.to_dict(),
    )


_KINDS = {
    "threshold": "threshold for everyone",
    "by_group": "threshold for each group",
    "recalibration": "recalibration for everyone",
}


def _kept_back(certificate: Bounds, applied: RepairTable, ask: Ask) -> Bounds:
    """The certificate as one of the second part: others only gave their groups to it."""
    cells = gather(applied.trail(ask.how), [ask.claim])[0]
    # the rule decides wherever there is a score, so what is missing is that
    gone = {
        "missing score" if why == "missing prediction" else why: number
        for why, number in cells.excluded.items()
    }
    seen = dataclasses.replace(
        certificate.provenance,
        scanned=cells.scanned,
        counted=cells.counted,
        excluded=gone,
        ineligible=cells.ineligible,
    )
    rows = tuple(
        dataclasses.replace(row, note=_NOBODY) if row.n == 0 else row for row in certificate.rows
    )
    return dataclasses.replace(certificate, provenance=seen, rows=rows)


_NOBODY = "no row of it that counts was kept back from learning"


def _yes(applied: RepairTable, column: str) -> float | None:
    """The share of rows that a column tells yes."""
    if column not in applied.columns:
        return None
    said, heavy = numbers(applied.columns[column]), np.ones(len(applied))
    for role in (applied.roles.weight, applied.roles.count):
        heavy = heavy if role is None else heavy * np.nan_to_num(numbers(applied.columns[role]))
    heavy = np.where(np.isnan(said), 0.0, heavy)
    return finite(float(heavy @ np.nan_to_num(said)) / total) if (total := heavy.sum()) else None


def _unit(trail: Trail) -> str:
    return "rows" if trail.roles.cluster is None else "clusters"


def _before(applied: RepairTable, ask: Ask) -> Mapping[str, tuple[float | None, float | None]]:
    """Every group's metric and disparity as decided so far, on the rows of the certificate."""
    recalibrates = ask.how == "recalibration"
    column = str(applied.roles.score) if recalibrates else applied.names["before"]
    if column not in applied.columns:
        return {}
    trail = applied.trail(ask.how, column)
    try:
        found = describe(trail, ask.claim)
    except ClaimError:
        # such as decisions under which the metric counts on no row
        return {}
    return {row.group: (row.value, row.disparity) for row in found.rows}


def _rows(
    certificate: Bounds, before: Mapping[str, tuple[float | None, float | None]]
) -> tuple[RepairedGroup, ...]:
    return tuple(
        RepairedGroup(
            group=row.group,
            where=row.where,
            n=row.n,
            value=row.value,
            target=row.target,
            disparity=row.disparity,
            before=before.get(row.group, (None, None))[0],
            disparity_before=before.get(row.group, (None, None))[1],
            lower=row.lower,
            upper=row.upper,
            verdict=row.verdict,
            note=row.note,
        )
        for row in certificate.rows
    )


def _price(applied: RepairTable, ask: Ask, usual: Rule | None, seed: int) -> Price | None:
    """What the rule costs on the rows of the certificate, row by row."""
    recalibrates = ask.how == "recalibration"
    if not priced(applied.roles, ask.loss):
        return None
    if recalibrates:
        before, compared = str(applied.roles.score), "with the scores as they are"
    elif applied.names["before"] in applied.columns:
        before, compared = applied.names["before"], "as decided so far"
    elif usual is not None:
        applied = applied.with_column("before", applied.said(usual))
        before = applied.names["before"]
        compared = f"with the most accurate threshold ({usual.threshold:.4g})"
    else:
        return None
    moved = change(ask.loss, before=before, after=applied.names["repaired"])
    try:
        found = certify(applied.trail(ask.how), gap(moved), level=ask.level, rng=seed)
    except (ClaimError, TrailError):
        return None
    row, both = found.rows[0], found.changed[0] if found.changed else None
    return Price(
        loss=ask.loss.words,
        compared=compared,
        share=ask.loss.zero_one,
        before=None if both is None else both.before,
        after=None if both is None else both.after,
        change=row.disparity,
        lower=row.lower,
        upper=row.upper,
        note=row.note,
    )
