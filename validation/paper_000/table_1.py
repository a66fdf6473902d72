"""Table 1: familywise error and power of Boolean certificates, and ours beside them.

Forms: "published" is Algorithm 3; "exponent 3/2" and "exponent 1/2" are the rescaled
Algorithm 7 with the scale as printed, and with the exponent that standardises this process (the
one that the authors' own programme uses); "default" are the certificates of `certify`, by each
range's own spread and stepped down. The printed exponent has almost no power and is not offered.
The default's power is judged beside Algorithm 3 in the same worlds, wherever that holds its level.
The band is a conformalized quantile forest of our own, whose coverage is known exactly.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from audit_worlds import (
    LEVEL,
    SEED,
    SIZES,
    SLOW,
    TRIALS,
    audit_of,
    forest_sample,
    line_sample,
    seed_of_trial,
)
from records import agreed, main, not_above, standard_error, write

from equipoise.audits._common import answerable, stepped_down
from equipoise.audits._groups.problem import Problem
from equipoise.methods.hypotheses import Above, Below
from equipoise.methods.numerics import BoolArray
from equipoise.methods.published import bootstrap
from equipoise.methods.published.bootstrap import Scaling, Unscaled

PUBLISHED = {
    "model (11), below 1": {"error": (0.145, 0.145, 0.17, 0.125, 0.095)},
    "model (12), below 0.5": {
        "error": (0.105, 0.105, 0.1, 0.075, 0.065),
        "power": (0.145, 0.268, 0.411, 0.562, 0.709),
    },
    "model (12), below 0.4": {
        "error": (0.045, 0.04, 0.015, 0.025, 0.02),
        "power": (0.036, 0.079, 0.21, 0.375, 0.57),
    },
    "band, above 0.9": {
        "error": (0.081, 0.034, 0.019, 0.012, 0.003),
        "power": (0.019, 0.008, 0.009, 0.02, 0.062),
    },
}
FORMS: dict[str, Scaling | Unscaled | None] = {
    "published": Unscaled(),
    "exponent 3/2": Scaling(power=1.5),
    "exponent 1/2": Scaling(power=0.5),
    "default": None,
}
NOMINAL = 0.1
Found = dict[tuple[str, str], list[tuple[bool, float | None]]]


def run(full: bool = False) -> dict[str, Any]:
    """Reproduce the table and put the default beside it."""
    rng = np.random.default_rng(SEED)
    rows: list[dict[str, Any]] = []
    for column, n in enumerate(SIZES):
        found: Found = {}
        for trial in range(TRIALS if full else 40):
            _linear(n, trial, False, (1.0,), rng, found)
            _linear(n, trial, True, (0.5, 0.4), rng, found)
            if full or trial < 8:
                _band(n, trial, rng, found, slow=SLOW if full else 2)
        rows += _rows(column, n, found)
    return write(
        __file__,
        "table_1",
        {"source": "Table 1", "nominal": NOMINAL, "rows": rows, "agrees": agreed(rows)},
        full,
    )


def _linear(
    n: int, trial: int, uneven: bool, limits: tuple[float, ...], rng: Any, found: Found
) -> None:
    problem, truth = line_sample(n, rng, uneven=uneven)
    for limit in limits:
        name = f"model ({12 if uneven else 11}), below {limit:g}"
        _note(found, name, problem, trial, bootstrap.Aim.BELOW, limit, truth < limit)


def _band(n: int, trial: int, rng: np.random.Generator, found: Found, slow: int) -> None:
    """One sample of a forest; the default has ``slow`` trials only."""
    problem, truth = forest_sample(n, trial, rng)
    forms = [form for form, scaling in FORMS.items() if scaling is not None or trial < slow]
    _note(found, "band, above 0.9", problem, trial, bootstrap.Aim.ABOVE, 0.0, truth > 0, forms)


def _note(
    found: Found,
    name: str,
    problem: Problem,
    trial: int,
    aim: bootstrap.Aim,
    limit: float,
    good: np.ndarray,
    forms: list[str] | None = None,
) -> None:
    for form in FORMS if forms is None else forms:
        scaling = FORMS[form]
        if scaling is None:
            certified = _by_default(problem, trial, aim, limit)
        else:
            made = bootstrap.certify(
                audit_of(problem, trial), scaling, aim=aim, limit=limit, step_down=False
            )
            certified = bootstrap.combine(made, LEVEL)
        power = float(np.mean(certified[good])) if good.any() else None
        found.setdefault((name, form), []).append((bool((certified & ~good).any()), power))


def _by_default(problem: Problem, trial: int, aim: bootstrap.Aim, limit: float) -> BoolArray:
    """What `certify` with method="certificates" does, as an array."""
    core, _, _ = answerable(problem.core, LEVEL, "lower", None, seed_of_trial(trial), False)
    null = Above(limit=limit) if aim is bootstrap.Aim.ABOVE else Below(limit=limit)
    adjusted = stepped_down(core, null.p_value(core.tails), null, None, seed_of_trial(trial))
    return np.nan_to_num(adjusted, nan=1.0) <= (1 - LEVEL) * (1 + 1e-9)


def _rows(column: int, n: int, found: Found) -> list[dict[str, Any]]:
    rows = []
    for (name, form), trials in found.items():
        wrong, count = sum(t[0] for t in trials), len(trials)
        ours = form == "default"
        rows.append(
            {
                "world": name,
                "n": n,
                "figure": "familywise error",
                "method": form,
                "published": PUBLISHED[name]["error"][column],
                "ours": round(wrong / count, 4),
                "monte_carlo_error": round(standard_error(wrong / count, count), 4),
                "trials": count,
                "agrees": not_above(wrong, count, NOMINAL) if ours else None,
            }
        )
        powers = [t[1] for t in trials if t[1] is not None]
        if "power" not in PUBLISHED[name] or not powers:
            continue
        value, error = float(np.mean(powers)), float(np.std(powers) / np.sqrt(count))
        theirs = PUBLISHED[name]["power"][column]
        rows.append(
            {
                "world": name,
                "n": n,
                "figure": "power",
                "method": form,
                "published": theirs,
                "ours": round(value, 4),
                "monte_carlo_error": round(error, 4),
                "trials": count,
                "agrees": _as_strong(found, name, trials) if ours else None,
            }
        )
    return rows


def _as_strong(found: Found, name: str, trials: list[tuple[bool, float | None]]) -> bool | None:
    """Whether power is that of Algorithm 3 in the same worlds; None where that errs too often."""
    theirs = found[name, "published"][: len(trials)]
    if not not_above(sum(t[0] for t in theirs), len(theirs), NOMINAL):
        return None
    gaps = [
        ours[1] - other[1]
        for ours, other in zip(trials, theirs, strict=True)
        if ours[1] is not None and other[1] is not None
    ]
    return bool(np.mean(gaps) >= -3 * np.std(gaps) / np.sqrt(len(gaps)) - 0.01)


if __name__ == "__main__":
    main("table 1", run)
