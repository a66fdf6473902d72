"""Figure 1: the joint statistics against quantiles of χ², n = 2000 and m = 5 groups."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from scipy.special import chdtrc, chdtri

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from likelihood_worlds import SEED, picture
from records import main, write
from tables import draw, euclidean

from equipoise.methods.likelihood import joint_disjoint

M, N = 5, 2000


def run(full: bool = False) -> dict[str, Any]:
    """Quantiles of both statistics under both models."""
    trials = 2000 if full else 300
    points, rows = [], []
    for model in (1, 2):
        rng = np.random.default_rng([SEED, model, 5])
        found: dict[str, list[float]] = {"EL": [], "EEL": []}
        for _ in range(trials):
            groups, truth = draw(model, M, N, rng)
            found["EL"].append(joint_disjoint(groups, truth).statistic)
            found["EEL"].append(euclidean(groups, truth))
        for name, values in found.items():
            ordered = np.sort(values)
            share = (np.arange(trials) + 0.5) / trials
            distance = float(np.abs(1 - chdtrc(M, ordered) - share).max())
            rows.append(
                {
                    "figure": f"Q–Q, model 5.{model}: {name}, largest distance of the shares",
                    "published": "on the line",
                    "ours": round(distance, 4),
                    "agrees": bool(distance <= 0.03 + 1.63 / np.sqrt(trials)),
                }
            )
            keep = np.unique((np.linspace(0, 1, 80) ** 0.5 * (trials - 1)).astype(int))
            points += [
                {
                    "panel": f"{name}, model 5.{model}",
                    "chi2": round(float(chdtri(M, 1 - share[i])), 3),
                    "statistic": round(float(ordered[i]), 3),
                }
                for i in keep
            ]
    agrees = all(row["agrees"] for row in rows)
    result = {"source": "Figure 1: Q–Q plots", "rows": rows, "agrees": agrees}
    if full:
        result["pictures"] = [picture("qq", chart(points))]
    return write(__file__, "qq", result, full)


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
