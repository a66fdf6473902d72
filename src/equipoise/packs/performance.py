"""Performance by subgroup, as clinical evaluations report it, with a lower limit where one is set.

Sensitivity, specificity, predictive values and, where there is a score, the area under the ROC
curve: overall and by subgroup, first as counted, then with intervals and the answer to a limit.
"""

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import confidence, fraction, known_name
from equipoise.audits._common import provenance_of
from equipoise.audits.certify import certify
from equipoise.audits.describe import describe
from equipoise.cells import gather
from equipoise.cells.gather import tally
from equipoise.cells.rows import pull_table
from equipoise.cells.tally import Tallied
from equipoise.claims import gap, intersections
from equipoise.claims.groups import GroupsLike, everyone
from equipoise.claims.metric import (
    Metric,
    negative_predictive_value,
    positive_predictive_value,
    true_negative_rate,
    true_positive_rate,
)
from equipoise.errors import OptionError
from equipoise.findings import Finding, Provenance
from equipoise.findings.words import Verdict, level_text
from equipoise.methods.inference.ranks import area_under_curve
from equipoise.methods.numerics import FloatArray
from equipoise.packs import (
    Definition,
    Filled,
    PackTable,
    is_unknown,
    levels_of,
    names_of,
    needed_column,
    uncounted_words,
)
from equipoise.trail import Trail

RULE = "A table of performance by subgroup"
MEASURES: dict[str, Metric] = {
    "sensitivity": true_positive_rate,
    "specificity": true_negative_rate,
    "PPV": positive_predictive_value,
    "NPV": negative_predictive_value,
}
AUC = "AUC"
_CALLED = {
    "ppv": "PPV",
    "npv": "NPV",
    "auc": AUC,
    "positive predictive value": "PPV",
    "negative predictive value": "NPV",
}
#: Everybody, as the first line of each table.
EVERYONE = "everyone"

TEMPLATE = """
{title}
{facts}
# As counted
Sensitivity: the share found of those with the outcome. Specificity: the share cleared of others.
PPV and NPV: the shares of the model's yes, and of its no, that are right.
{statutory}
# How sure one can be
{uncertain}
{sentences}
"""

_JOINT = {
    "true positives": "prediction * label",
    "false positives": "prediction * (1 - label)",
    "false negatives": "(1 - prediction) * label",
    "true negatives": "(1 - prediction) * (1 - label)",
}

Key = tuple[str, str]
"""An attribute and its level; everybody has no attribute."""
ALL: Key = ("", EVERYONE)
Counts = Mapping[Key, Mapping[str, int]]
#: Scores and labels of a subgroup, and how many people each row stands for.
Scored = tuple[FloatArray, FloatArray, FloatArray]


def fill(
    trail: Trail,
    *,
    across: Sequence[str] | str = (),
    accept: Mapping[str, float] | str = "",
    unknown: Sequence[str] | str = (),
    level: float = 0.95,
    rng: int = 7,
) -> Filled:
    """Work out four rates, and the AUC, for everyone and by every attribute on its own.

    ``accept`` gives lower limits, such as ``{"sensitivity": 0.8}`` or ``"sensitivity=0.8"``.
    """
    confidence(level)
    names = _checked(trail, across)
    limits = _limits(accept, scored="score" in trail.roles)
    counts, provenance = _counts(trail, names, names_of(unknown, "unknown"))
    _comparable(names, counts)
    asked: list[GroupsLike] = [everyone(), *names]
    claims = [gap(m, across=groups) for m in MEASURES.values() for groups in asked]
    tallied = tally(trail, *claims)
    intervals = _intervals(tallied, names, level)
    verdicts, findings = _verdicts(tallied, names, limits, level, rng)
    if "score" in trail.roles:
        scored = _scored(trail, names, counts)
        intervals |= {(key, AUC): area_under_curve(*x, level) for key, x in scored.items()}
        if AUC in limits:
            verdicts |= _area_verdicts(scored, limits[AUC], level)
    measures = [*MEASURES, *([AUC] if "score" in trail.roles else [])]
    lines = [
        _line(key, measure, counts[key], intervals, limits, verdicts)
        for measure in measures
        for key in counts
    ]
    return Filled(
        facts={
            "People": f"{provenance.counted:,} of {provenance.source}",
            "People without a label or a prediction": uncounted_words(provenance),
            "Lower limits": ", ".join(f"{k} {v:g}" for k, v in limits.items()) or "none set",
        },
        tables=[*_counted(counts, intervals, measures), _uncertain(lines, level)],
        words=_words(lines, limits),
        provenance=provenance,
        findings=findings,
    )


# --- What is asked ---


def _checked(trail: Trail, across: Sequence[str] | str) -> list[str]:
    lacking = [role for role in ("label", "prediction") if role not in trail.roles]
    if lacking:
        raise OptionError(
            f"{RULE} needs what happened (label=…) and what the model said (prediction=…); "
            f"not named: {', '.join(lacking)}."
        )
    names = [needed_column(trail, one, "across", RULE) for one in names_of(across, "across")]
    if not names:
        raise OptionError(f"{RULE} needs at least one attribute, such as sex: across=….")
    return names


def _comparable(names: Sequence[str], counts: Counts) -> None:
    for name in names:
        known = [value for attribute, value in counts if attribute == name]
        if len(known) < 2:
            one = f"one that is known: {known[0]}" if known else "none that is known"
            raise OptionError(
                f"{RULE} compares subgroups, and {name} has {one}. It needs at least two."
            )


def _limits(accept: Mapping[str, float] | str, *, scored: bool) -> dict[str, float]:
    """The limits that were set, by the full name of the measure."""
    if isinstance(accept, str):
        pairs = [one.partition("=")[::2] for one in accept.split(",") if one.strip()]
        try:
            accept = {name.strip(): float(value) for name, value in pairs}
        except ValueError as error:
            raise OptionError(
                f"accept takes lower limits, such as 'sensitivity=0.8'; got {accept!r}."
            ) from error
    found = {}
    for name, value in accept.items():
        full = _CALLED.get(str(name).lower(), name)
        if full == AUC and not scored:
            raise OptionError("A limit of the AUC needs the scores: score=….")
        found[known_name("Measure", full, [*MEASURES, AUC])] = fraction(f"{name}'s limit", value)
    return found


# --- What is counted ---


def _counts(
    trail: Trail, names: Sequence[str], words: Sequence[str]
) -> tuple[dict[Key, dict[str, int]], Provenance]:
    """The four counts of everybody and of every subgroup, and where they come from."""
    claims = [
        gap(
            Metric(name=name, value=text, binary=("label", "prediction"), by_role=True),
            across=intersections(*names),
        )
        for name, text in _JOINT.items()
    ]
    every = gather(trail, claims)
    found: dict[Key, dict[str, int]] = {ALL: dict.fromkeys(_JOINT, 0)}
    for count, cells in zip(_JOINT, every, strict=True):
        for levels, total in zip(levels_of(cells), cells.total, strict=True):
            number = round(float(total))
            found[ALL][count] += number
            for name in names:
                value = levels[cells.axis(name)]
                if not is_unknown(value, words):
                    found.setdefault((name, str(value)), dict.fromkeys(_JOINT, 0))[count] += number
    place = {name: i for i, name in enumerate(["", *names])}
    ordered = sorted(found.items(), key=lambda item: (place[item[0][0]], item[0][1]))
    return dict(ordered), provenance_of(every[0])


def _scored(trail: Trail, names: Sequence[str], counts: Counts) -> dict[Key, Scored]:
    """Scores and labels of every subgroup, of the rows that have both."""
    label = Metric(name="label", value="label", binary=("label",), by_role=True)
    further = {"score": trail.number(trail.roles.column("score"))}
    further |= {f"group{i}": trail.key(name) for i, name in enumerate(names)}
    table = pull_table(trail, label, further)
    score = np.array([np.nan if x is None else x for x in table.columns["score"]], float)
    known = np.isfinite(score)
    if not known.any():
        raise OptionError(f"{RULE} has a score column without a number; leave out score=….")
    found: dict[Key, Scored] = {}
    for key in counts:
        here = known
        if key != ALL:
            column = table.columns[f"group{names.index(key[0])}"]
            here = known & np.array([str(canonical(x)) == key[1] for x in column], bool)
        found[key] = (score[here], table.value[here], table.counts[here].astype(float))
    return found


# --- How sure one can be ---


def _intervals(
    tallied: Tallied, names: Sequence[str], level: float
) -> dict[tuple[Key, str], tuple[float, float, float]]:
    """Each rate with its own exact interval."""
    found = {}
    for measure, metric in MEASURES.items():
        for name in (None, *names):
            groups = everyone() if name is None else name
            for row in describe(tallied, gap(metric, across=groups), level=level):
                key = ALL if name is None else (name, str(row.where[name]))
                three = (row.value, row.lower, row.upper)
                found[key, measure] = tuple(math.nan if x is None else x for x in three)
    return cast("dict[tuple[Key, str], tuple[float, float, float]]", found)


def _verdicts(
    tallied: Tallied, names: Sequence[str], limits: Mapping[str, float], level: float, rng: int
) -> tuple[dict[tuple[Key, str], str], list[Finding]]:
    """Whether each limit is shown to be reached, for all subgroups of an attribute at once."""
    found: dict[tuple[Key, str], str] = {}
    findings: list[Finding] = []
    for measure in [name for name in limits if name in MEASURES]:
        for name in (None, *names):
            groups = everyone() if name is None else name
            claim = gap(MEASURES[measure], across=groups, target=limits[measure])
            bounds = certify(
                tallied, claim, side="lower", tolerance=0.0, level=level, rng=rng, progress=False
            )
            findings.append(bounds)
            for row in bounds:
                key = ALL if name is None else (name, str(row.where[name]))
                found[key, measure] = _ANSWERS[row.verdict]
    return found, findings


_ANSWERS = {
    Verdict.KEPT: "reached",
    Verdict.EXCEEDED: "not reached",
    Verdict.UNDETERMINED: "undetermined",
    None: "undetermined",
}


def _area_verdicts(
    scored: Mapping[Key, Scored], limit: float, level: float
) -> dict[tuple[Key, str], str]:
    """The same for the AUC, every subgroup of an attribute at its share of the error."""
    found = {}
    for key, values in scored.items():
        number = sum(other[0] == key[0] for other in scored)
        # the ends of an interval of this level are one-sided bounds at its share of the error
        _, low, high = area_under_curve(*values, 1 - 2 * (1 - level) / number)
        answer = "reached" if low >= limit else "not reached" if high < limit else "undetermined"
        found[key, AUC] = answer
    return found


# --- Tables and words ---


def _counted(
    counts: Counts,
    intervals: Mapping[tuple[Key, str], tuple[float, float, float]],
    measures: Sequence[str],
) -> list[PackTable]:
    """The counts, and the rates that follow from them."""
    return [
        PackTable(
            name="counts",
            part="statutory",
            caption="Counts of everyone, and of every subgroup",
            columns=("by", "subgroup", "people", *_JOINT),
            lines=tuple(
                (key[0] or None, key[1], sum(four.values()), *four.values())
                for key, four in counts.items()
            ),
        ),
        PackTable(
            name="performance",
            part="statutory",
            caption="Performance",
            columns=("by", "subgroup", *measures),
            lines=tuple(
                (key[0] or None, key[1], *(_number(intervals[key, m][0]) for m in measures))
                for key in counts
            ),
        ),
    ]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


#: The two counts that each rate is a share of.
_OF = {
    "sensitivity": ("true positives", "false negatives"),
    "specificity": ("true negatives", "false positives"),
    "PPV": ("true positives", "false positives"),
    "NPV": ("true negatives", "false negatives"),
}


def _line(
    key: Key,
    measure: str,
    four: Mapping[str, int],
    intervals: Mapping[tuple[Key, str], tuple[float, float, float]],
    limits: Mapping[str, float],
    verdicts: Mapping[tuple[Key, str], str],
) -> tuple[object, ...]:
    people = sum(four[name] for name in _OF.get(measure, tuple(_JOINT)))
    ends = map(_number, intervals[key, measure])
    answer = verdicts.get((key, measure))
    return (measure, key[0] or None, key[1], people, *ends, limits.get(measure), answer)


def _uncertain(lines: Sequence[tuple[object, ...]], level: float) -> PackTable:
    return PackTable(
        name="performance",
        part="uncertain",
        caption=f"The same with {level_text(level)} intervals",
        columns=(
            "measure", "by", "subgroup", "people", "value", "lower", "upper", "limit",
            "shown to be",
        ),
        lines=tuple(lines),
        note=(
            "Each interval holds on its own: exact (Clopper and Pearson) for rates, DeLong's on "
            "the logit scale for the AUC. Limits are judged by one-sided bounds that hold for all "
            "subgroups of an attribute at once; undetermined means too few people to tell."
        ),
    )  # fmt: skip


def _words(lines: Sequence[tuple[object, ...]], limits: Mapping[str, float]) -> list[str]:
    said = []
    for measure, limit in limits.items():
        answers: dict[object, list[str]] = {}
        for line in lines:
            if line[0] == measure:
                answers.setdefault(line[-1], []).append(str(line[2]))
        parts = [
            f"{answer} for {', '.join(answers[answer])}"
            for answer in ("not reached", "undetermined", "reached")
            if answer in answers
        ]
        article = "An" if measure in ("AUC", "NPV") else "A"
        said.append(f"{article} {measure} of at least {limit:g} is {'; '.join(parts)}.")
    lowest = [line for line in lines if line[1] is not None and isinstance(line[4], float)]
    for called in dict.fromkeys(line[0] for line in lowest):
        own = [line for line in lowest if line[0] == called]
        low = min(own, key=lambda line: cast(float, line[4]))
        said.append(f"The lowest {called} is {low[4]:.3f}, that of {low[1]} {low[2]}.")
    return said


PACK = Definition(
    name="performance",
    title="Performance by subgroup",
    rule="the usual tables of clinical evaluations (no statute)",
    dated="as STARD 2015 and TRIPOD+AI 2024 ask for estimates by subgroup with their precision",
    template=TEMPLATE,
    fill=fill,
)
