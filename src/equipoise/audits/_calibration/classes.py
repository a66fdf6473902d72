"""Labels of more than two classes: each against the rest, in one family."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw

from equipoise.audits._calibration.finding import verdict_of
from equipoise.audits._calibration.named_tests import Options
from equipoise.errors import OptionError
from equipoise.findings.calibration import Calibration, ClassTest
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail, positive_values, truth_number

Audit = Callable[[Trail, Options], Calibration]


def class_family(trail: Any, classes: Any, options: Options, audit: Audit) -> Calibration:
    """The finding of the class with the smallest p-value, all classes allowed for.

    Bonferroni's inequality holds whatever the classes have to do with each other, and theirs sum to
    one; no draw of all of them at once would be at the edge of every tolerance.
    """
    checked = expect_trail(trail)
    label = checked.roles.column("label")
    if not isinstance(classes, Mapping) or len(classes) < 2:
        raise OptionError(
            "classes must map at least two values of the label to the columns with their scores, "
            f"such as {{'a': 'score_a', 'b': 'score_b'}}; got {classes!r}."
        )
    narrower = dataclasses.replace(options, level=1 - (1 - options.level) / len(classes))
    found = {}
    for name, column in classes.items():
        if not isinstance(column, str) or column not in checked.schema:
            raise OptionError(
                f"classes[{name!r}] must be the column with the scores of that class; "
                f"got {column!r}. Columns: {', '.join(checked.schema)}."
            )
        found[name] = audit(_one_class(checked, label, name, column, classes), narrower)
    lines = tuple(
        ClassTest(
            label=str(name),
            score=classes[name],
            p=min(1.0, len(classes) * one.p),
            verdict=verdict_of(one.p, narrower.level),
        )
        for name, one in found.items()
    )
    first = min(found.values(), key=lambda one: one.p)
    claim = {**first.claim, "classes": {str(name): column for name, column in classes.items()}}
    guarantee = first.guarantee.replace(
        f"{100 * (1 - narrower.level):.10g} %", f"{100 * (1 - options.level):.10g} %"
    )
    return dataclasses.replace(
        first,
        claim=claim,
        guarantee=guarantee,
        level=options.level,
        p=min(1.0, len(classes) * first.p),
        classes=lines,
    )


def _one_class(
    trail: Trail, label: str, name: Any, column: str, classes: Mapping[Any, str]
) -> Trail:
    """The trail with "is this class" as the label, and the class's column as the score."""
    if trail.schema[label].is_numeric() and isinstance(name, str):
        # keys of a plan are text
        name = float(name) if name.replace(".", "", 1).lstrip("-").isdigit() else name
    roles = dataclasses.replace(trail.roles, score=column)
    value = positive_values({"label": name}, roles, trail.schema)["label"]
    own = f"{label} is {name:g}" if isinstance(name, float) else f"{label} is {name}"
    here = truth_number(trail.key(label) == value).cast(nw.Float64)
    frame = trail.frame.with_columns(nw.when(trail.present(label)).then(here).alias(own))
    # neither the label nor the scores of the other classes describe anybody
    kept = tuple(a for a in trail.attributes if a not in (label, *classes.values()))
    return dataclasses.replace(
        trail,
        frame=frame,
        roles=dataclasses.replace(roles, label=own),
        positive={role: v for role, v in trail.positive.items() if role != "label"},
        schema=frame.collect_schema(),
        attributes=kept,
    )
