"""Which measure works in which verb, found by asking: written into docs/reference/measures.md.

``python tools/measures_table.py --write`` renews the page; a test notices when it is not true.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import equipoise as eq

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "measures.md"
BEGIN, END = "<!-- table -->", "<!-- /table -->"
ROWS = 240

Ask = Callable[[eq.Trail, eq.Metric], object]


def table() -> pl.DataFrame:
    """A small table with a column for everything."""
    rng = np.random.default_rng(26)
    y = rng.integers(0, 2, ROWS)
    s = np.round(np.clip(0.25 + 0.4 * y + rng.normal(0, 0.25, ROWS), 0.01, 0.99), 2)
    return pl.DataFrame(
        {
            "g": np.tile(["a", "b"], ROWS // 2),
            "h": rng.choice(["x", "y"], ROWS),
            "y": y,
            "p": (s > 0.5).astype(np.int64),
            "p2": rng.integers(0, 2, ROWS),
            "s": s,
            "low": s - 0.3,
            "high": s + 0.3,
            "pay": np.exp(rng.normal(3, 0.4, ROWS)).round(1),
            "place": np.tile(np.arange(1, 6), ROWS // 5),
            "w": rng.choice([1.0, 2.0], ROWS),
            "c": np.arange(ROWS) // 4,
            "day": np.repeat(["2026-01", "2026-02", "2026-03"], ROWS // 3),
        }
    )


ROLES = {"label": "y", "prediction": "p", "score": "s", "low": "low", "high": "high"}


def verbs() -> dict[str, Ask]:
    """What is asked of every metric, by column of the table."""

    def gap(metric: eq.Metric, **more: object) -> eq.Claim:
        return eq.gap(metric, across="g", **more)  # type: ignore[arg-type]

    def certify(trail: eq.Trail, claim: eq.Claim, **more: object) -> object:
        return eq.certify(trail, claim, rng=1, resamples=20, **more)  # type: ignore[call-overload]

    return {
        "describe": lambda t, m: eq.describe(t, gap(m)),
        "certify": lambda t, m: certify(t, gap(m)),
        "certificates": lambda t, m: certify(t, gap(m), method="certificates", tolerance=0.5),
        "flag": lambda t, m: eq.flag(t, gap(m)),
        "joint_test": lambda t, m: eq.joint_test(t, gap(m), rng=1),
        "ratio": lambda t, m: certify(t, eq.ratio(m, across="g", target=eq.reference(g="b"))),
        "highest": lambda t, m: certify(t, gap(m, target=eq.highest())),
        "weight": lambda t, m: certify(_with(weight="w"), gap(m)),
        "cluster": lambda t, m: certify(_with(cluster="c"), gap(m)),
        "counts": lambda t, m: certify(eq.tally(t, gap(m)), gap(m)),  # type: ignore[arg-type]
        "given": lambda t, m: certify(t, gap(m, given=["h"], target=eq.complement())),
        "unknown": lambda t, m: certify(t, gap(m, unknown="random")),
        "monitor": lambda t, m: eq.monitor(t, gap(m), period="day", tolerance=0.3),
        "summarize": lambda t, m: eq.summarize(t, m, across="g", resamples=20, rng=1),
        "compare": lambda t, m: eq.compare(t, m, across=["g", "h"], resamples=20, rng=1),
    }


def _with(**role: str) -> eq.Trail:
    return eq.read(table(), **{**ROLES, **role})


def measures() -> dict[str, eq.Metric]:
    """Every metric by how it is written."""
    built_in = {f"`eq.{name}`": metric for name, metric in eq.claims.METRICS.items()}
    return built_in | {
        "`eq.median(…)`, `eq.quantile(…)`": eq.median("pay"),
        "`eq.standardised(…)`": eq.standardised("pay"),
        "`eq.actual_over_expected(…)`": eq.actual_over_expected("pay", "s"),
        "`eq.calibration_error(…)`": eq.calibration_error([0, 0.5, 1]),
        "`eq.exposure(…)`": eq.exposure("place"),
        "`eq.one_class(…)`": eq.one_class("true_positive_rate", 1),
        "`eq.change(…)`": eq.change("error_rate", before="p", after="p2"),
        "`eq.metric(…)`": eq.metric("pay", "pay"),
    }


def works(ask: Ask, trail: eq.Trail, metric: eq.Metric) -> bool:
    """Whether it is answered, and not refused."""
    try:
        ask(trail, metric)
    except eq.EquipoiseError:
        return False
    return True


def lines(chosen: dict[str, eq.Metric] | None = None) -> list[str]:
    """The table, or some of its rows."""
    trail, columns = _with(), verbs()
    out = ["| metric | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for written, metric in (measures() if chosen is None else chosen).items():
        marks = ("yes" if works(ask, trail, metric) else "–" for ask in columns.values())
        out.append(f"| {written} | " + " | ".join(marks) + " |")
    return out


def main() -> int:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the page")
    made = "\n".join(lines())
    if not parser.parse_args().write:
        print(made)
        return 0
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
