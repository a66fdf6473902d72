"""Figures 3 and 4: accuracy, audit value and coefficients along the ℓ₁ path on COMPAS.

Published: strong penalties give a tiny audit value and a large error, weak ones the reverse; the
selected model does not use sex; prior offences enter first, then more than three of them, race, age
over 45, the charge, and age under 25. The pictures come from one split that is not given, and their
1/λ = 0.0145 from a loss whose scale is not given, so the order is counted over splits.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from recidivism import DELTA, FEATURES, fitted, group_metrics, load, split
from records import agreed, main, standard_error, write
from transport_worlds import SEED

from equipoise.methods.transport import infer, select_model

PENALTIES = np.geomspace(0.002, 1.0, 25)
PUBLISHED = [
    "no priors",
    "more than 3 priors",
    "Caucasian",
    "over 45",
    "felony",
    "under 25",
]


def run(full: bool = False) -> dict[str, Any]:
    """The path over splits."""
    rng = np.random.default_rng([SEED, 34])
    cells, splits = load(), 50 if full else 10
    shape = (splits, len(PENALTIES))
    value, lower, error = np.empty(shape), np.empty(shape), np.empty(shape)
    entry, without = np.empty((splits, len(FEATURES))), 0
    for i in range(splits):
        learn, rest = split(cells.counts, 0.5, rng)
        check, _ = split(rest, 0.5, rng)
        path = [fitted(cells, learn, lasso=float(c)) for c in PENALTIES]
        guesses = [model.predict(cells.features).astype(np.int64) for model in path]
        for j, guess in enumerate(guesses):
            audit = infer(cells.problem(guess), check, rng=rng)
            value[i, j], lower[i, j] = audit.value, audit.lower(0.95) or 0.0
            error[i, j] = 1 - group_metrics(cells, check, guess)["accuracy"]
        used = np.array([model.coef_[0] != 0 for model in path])
        entry[i] = np.where(used.any(axis=0), used.argmax(axis=0), len(PENALTIES))
        picked = select_model(error[i], lower[i], value[i], delta=DELTA)
        place = picked.closest if picked.chosen is None else picked.chosen
        without += not used[place, FEATURES.index("female")]
    rows = [*_path(value, lower, error), *_order(entry, without, splits)]
    result = {"source": "Figures 3 and 4", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "figures_3_4", result, full)


def _path(value: Any, lower: Any, error: Any) -> list[dict[str, Any]]:
    """Figure 3 at seven penalties, and the trade-off."""
    rows = [
        {
            "figure": "Figure 3",
            "what": f"penalty 1/λ = {PENALTIES[j]:.3g}: audit value, lower bound, error",
            "published": None,
            "ours": [round(float(x[:, j].mean()), 4) for x in (value, lower, error)],
            "monte_carlo_error": round(float(value[:, j].std() / np.sqrt(len(value))), 4),
            "agrees": None,
        }
        for j in range(0, len(PENALTIES), 4)
    ]
    first, last = (x.mean(axis=0)[[0, -1]] for x in (value, error))
    rows.append(
        {
            "figure": "Figure 3",
            "what": "strongest against weakest penalty: less unfair, less accurate",
            "published": True,
            "ours": bool(first[0] < first[1] and last[0] > last[1]),
            "agrees": bool(first[0] < first[1] and last[0] > last[1]),
        }
    )
    return rows


def _order(entry: Any, without: int, splits: int) -> list[dict[str, Any]]:
    """Figure 4: the order in which columns enter."""
    order = [FEATURES[k] for k in np.argsort(entry.mean(axis=0), kind="stable")]
    return [
        {
            "figure": "Figure 4",
            "what": "the first two columns to enter",
            "published": PUBLISHED[:2],
            "ours": order[:2],
            "agrees": order[:2] == PUBLISHED[:2],
        },
        {
            "figure": "Figure 4",
            "what": "columns in the order in which they enter, averaged over splits",
            "published": PUBLISHED,
            "ours": order,
            "agrees": None,
        },
        {
            "figure": "Figure 4",
            "what": "share of splits whose selected model does not use sex",
            "published": "the one split shown",
            "ours": without / splits,
            "monte_carlo_error": round(standard_error(without / splits, splits), 4),
            # one split is shown, so what it shows should not be rare
            "agrees": without / splits >= 0.05,
        },
    ]


if __name__ == "__main__":
    main("figures 3 and 4", run)
