"""Figures 1, E.1 and E.2: the joint statistics against quantiles of χ², n = 2000.

Figure 1 has m = 5 groups. Figures E.1 (EL) and E.2 (EEL) are printed without saying which sizes
they show; here they are m = 2 and m = 10. The text says that more groups need more rows, so only
m = 2 is held to the line, and m = 10 to lie further off.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from scipy.special import chdtrc, chdtri

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from likelihood_worlds import SEED, picture
from records import agreed, main, write
from tables import draw, euclidean

from equipoise.methods.published.likelihood.mean import joint_disjoint

N = 2000
FIGURES = {
    5: {"EL": "1", "EEL": "1"},
    2: {"EL": "E.1", "EEL": "E.2"},
    10: {"EL": "E.1", "EEL": "E.2"},
}


def run(full: bool = False) -> dict[str, Any]:
    """Quantiles of both statistics under both models."""
    trials = 2000 if full else 300
    points, rows = [], []
    for m, model in itertools.product(FIGURES, (1, 2)):
        for name, values in statistics(model, m, trials).items():
            share = (np.arange(trials) + 0.5) / trials
            distance = float(np.abs(1 - chdtrc(m, values) - share).max())
            on_line = bool(distance <= 0.03 + 1.63 / np.sqrt(trials))
            rows.append(
                {
                    "figure": f"Figure {FIGURES[m][name]}, model 5.{model}, m = {m}: {name}, "
                    "largest distance of the shares",
                    "published": "on the line" if m < 10 else "needs more rows",
                    "ours": round(distance, 4),
                    "agrees": on_line if m < 10 else None,
                }
            )
            if m == 5:
                points += panel(f"{name}, model 5.{model}", values, share)
    rows.append(further(rows))
    result = {
        "source": "Figures 1, E.1 and E.2: Q–Q plots",
        "rows": rows,
        "agrees": agreed(rows),
    }
    if full:
        result["pictures"] = [picture("qq", chart(points))]
    return write(__file__, "qq", result, full)


def statistics(model: int, m: int, trials: int) -> dict[str, np.ndarray]:
    """Both statistics at the truth, in order."""
    rng = np.random.default_rng([SEED, model, m])
    found: dict[str, list[float]] = {"EL": [], "EEL": []}
    for _ in range(trials):
        groups, truth = draw(model, m, N, rng)
        found["EL"].append(joint_disjoint(groups, truth).statistic)
        found["EEL"].append(euclidean(groups, truth))
    return {name: np.sort(values) for name, values in found.items()}


def further(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Whether ten groups lie further off the line than two, on average."""
    off = {m: [row["ours"] for row in rows if f"m = {m}:" in row["figure"]] for m in (2, 10)}
    return {
        "figure": "mean distance, m = 2 and m = 10",
        "published": "grows with m",
        "ours": [round(float(np.mean(off[m])), 4) for m in (2, 10)],
        "agrees": bool(np.mean(off[10]) > np.mean(off[2])),
    }


def panel(name: str, ordered: np.ndarray, share: np.ndarray) -> list[dict[str, Any]]:
    """Eighty points of one plot, more of them at the right."""
    keep = np.unique((np.linspace(0, 1, 80) ** 0.5 * (len(ordered) - 1)).astype(int))
    return [
        {
            "panel": name,
            "chi2": round(float(chdtri(5, 1 - share[i])), 3),
            "statistic": round(float(ordered[i]), 3),
        }
        for i in keep
    ]


def chart(points: list[dict[str, Any]]) -> Any:
    """Quantiles against quantiles, and the line on which they should lie."""
    base = alt.Chart(alt.InlineData(values=points))
    dots = base.mark_point(filled=True, size=12, color="#3b6ea5").encode(
        x=alt.X("chi2:Q", title="quantile of χ²"), y=alt.Y("statistic:Q", title="statistic")
    )
    line = base.mark_line(strokeDash=[4, 3], color="#777777", strokeWidth=1).encode(
        x="chi2:Q", y="chi2:Q"
    )
    both = alt.layer(line, dots).properties(width=150, height=150)
    return both.facet(facet=alt.Facet("panel:N", title=None), columns=2)


if __name__ == "__main__":
    main("Q–Q", run)
