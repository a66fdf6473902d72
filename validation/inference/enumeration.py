"""Every table of up to 40 rows a part: the true error of `flag` and `certify`, added up exactly.

For one binomial against a known target and two against each other (everyone else or a disjoint
reference; everyone, with sizes fixed and with sizes drawn), the tails of every possible table are
computed once for each disparity, and the chances of the tables that would be wrong are added up
over a grid of rates. Nothing is simulated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr, ndtri, xlog1py, xlogy

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import main, write

from equipoise.methods.inference.core import core_of
from equipoise.methods.targets import Complement, Constant, Overall, Target, plain_moments

Floats = npt.NDArray[np.float64]
ERRORS = (0.10, 0.05, 0.01)
BAR = 0.005
"""Half a point above nominal."""
GAPS = (-0.6, -0.3, -0.1, -0.02, 0.0, 0.05, 0.2, 0.4, 0.7)
RATIOS = (0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)
RATES = np.concatenate([[0.002, 0.01, 0.02], np.linspace(0.03, 0.97, 48), [0.98, 0.99, 0.998]])
QUICK, FULL = (2, 5, 12, 40), (1, 2, 3, 4, 6, 9, 14, 20, 28, 40)


def chances(n: int, rate: float) -> Floats:
    """Chances of 0 … n."""
    k = np.arange(n + 1.0)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, rate) + xlog1py(n - k, -rate)))


def tails(rows: Floats, ones: Floats, target: Target, relative: bool, at: float) -> Floats:
    """Both tails of tables ``(parts, tables)`` at a disparity, shape ``(2, tables)``.

    Each table is a world of its own: its group is one cell, everybody else another.
    """
    two = rows.shape[0] == 2
    cells = np.concatenate([rows[0], rows[1]]) if two else rows[0]
    counts = np.concatenate([ones[0], ones[1]]) if two else ones[0]
    number = rows.shape[1]

    class Single(type(target)):  # type: ignore[misc]
        """The target with the two cells of a table as its parts."""

        def parts(self, x: Floats, sums: Any) -> Floats:
            return x.reshape(2, number) if two else x[None]

    if isinstance(target, Constant):
        made: Target = target
    else:
        made = Single(scale=target.scale)
    core = core_of(
        plain_moments(cells, counts, counts, counts),
        made,
        lambda x: x[..., :number],
        relative=relative,
        zero_one=True,
        weighted=False,
    )
    # the tails themselves, also where no answer would be given: that only errs less
    estimate = np.isfinite(core.comparison.estimate)
    out = np.ones((2, number))
    chosen = np.flatnonzero((core.status == 0) & estimate)
    if chosen.size:
        up, down = core.pivot.tails(np.full(chosen.size, at), chosen)
        out[:, chosen] = np.stack([up, down])
    return out


def errors(p: Floats, chance: Floats) -> dict[str, list[float]]:
    """How often each question is answered wrongly: flags on either side, flags of any difference
    (which is also a bound that misses)."""
    up, down = p
    sides = {
        "above": up,
        "below": down,
        "outside or bounds": np.minimum(1, 2 * np.minimum(up, down)),
    }
    return {
        name: [float(chance[value <= error + 1e-12].sum()) for error in ERRORS]
        for name, value in sides.items()
    }


def worst_of(found: Iterator[tuple[dict[str, list[float]], str]]) -> dict[str, Any]:
    """The largest excess over nominal, by question and error."""
    worst: dict[str, Any] = {}
    for errors_here, where in found:
        for name, values in errors_here.items():
            for error, value in zip(ERRORS, values, strict=True):
                key = f"{name} at {error:g}"
                if key not in worst or value - error > worst[key]["excess"]:
                    worst[key] = {"excess": value - error, "true": value, "where": where}
    return worst


def known_target(sizes: tuple[int, ...]) -> Iterator[tuple[dict[str, list[float]], str]]:
    """One binomial against a known rate."""
    for n in sizes:
        k = np.arange(n + 1.0)
        for rate in RATES:
            p = tails(
                np.full((1, n + 1), float(n)), k[None], Constant(value=float(rate)), False, 0.0
            )
            yield errors(p, chances(n, rate)), f"{n} rows, rate {rate:.3g}"


def two_parts(
    sizes: tuple[int, ...], kind: str, relative: bool
) -> Iterator[tuple[dict[str, list[float]], str]]:
    """Two binomials of fixed sizes."""
    for n in sizes:
        for m in sizes:
            k, j = (
                x.ravel()
                for x in np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij")
            )
            rows = np.stack([np.full(k.size, float(n)), np.full(k.size, float(m))])
            target = Complement() if kind == "complement" else Overall()
            for at in RATIOS if relative else GAPS:
                p = tails(rows, np.stack([k, j]), target, relative, at)
                for rest in RATES:
                    own = own_rate(kind, relative, at, rest, n / (n + m))
                    if 0 <= own <= 1:
                        chance = np.outer(chances(n, own), chances(m, rest)).ravel()
                        yield errors(p, chance), f"{n} + {m} rows, rates {own:.3g}, {rest:.3g}"


def own_rate(kind: str, relative: bool, at: float, rest: float, share: float) -> float:
    """The group's rate that makes its disparity what is asked."""
    if kind == "complement":
        return rest * at if relative else rest + at
    if relative:
        # μ = ρ (pμ + (1 − p) rest)
        left = 1 - at * share
        return at * (1 - share) * rest / left if left > 0 else 2.0
    return rest + at / (1 - share)


def drawn_sizes(
    totals: tuple[int, ...], relative: bool
) -> Iterator[tuple[dict[str, list[float]], str]]:
    """Everyone as the target, the group's size being drawn with the rows."""
    for total in totals:
        tables = [
            (n, k, j) for n in range(1, total) for k in range(n + 1) for j in range(total - n + 1)
        ]
        n, k, j = (np.array(x, dtype=np.float64) for x in zip(*tables, strict=True))
        rows, ones = np.stack([n, total - n]), np.stack([k, j])
        for at in RATIOS if relative else GAPS:
            p = tails(rows, ones, Overall(), relative, at)
            for share in (0.1, 0.3, 0.5, 0.7, 0.9):
                size = chances(total, share)
                for rest in RATES[::3]:
                    own = own_rate("overall", relative, at, rest, share)
                    if not 0 <= own <= 1:
                        continue
                    one = [chances(int(a), own) for a in range(total + 1)]
                    two = [chances(int(a), rest) for a in range(total + 1)]
                    chance = np.array(
                        [size[a] * one[a][b] * two[total - a][c] for a, b, c in tables]
                    )
                    where = f"{total} rows, share {share:g}, rates {own:.3g}, {rest:.3g}"
                    yield errors(p, chance), where


def run(full: bool = False) -> dict[str, Any]:
    """Enumerate all questions; ``full`` takes ten sizes instead of four."""
    sizes = FULL if full else QUICK
    totals = (8, 16, 30) if full else (8, 16)
    studies: dict[str, Iterator[tuple[dict[str, list[float]], str]]] = {
        "known target": known_target(sizes),
        "everyone else or a reference, gap": two_parts(sizes, "complement", False),
        "everyone else or a reference, ratio": two_parts(sizes, "complement", True),
        "everyone, gap": two_parts(sizes, "overall", False),
        "everyone, ratio": two_parts(sizes, "overall", True),
        "everyone, sizes drawn, gap": drawn_sizes(totals, False),
        "everyone, sizes drawn, ratio": drawn_sizes(totals, True),
    }
    rows = []
    for name, found in studies.items():
        for question, worst in worst_of(found).items():
            rows.append(
                {"study": name, "question": question, **worst, "agrees": worst["excess"] <= BAR}
            )
            print(
                name,
                question,
                f"{100 * worst['excess']:+.2f} points",
                worst["where"],
                file=sys.stderr,
            )
    result = {
        "source": "enumeration of all tables",
        "sizes": list(sizes),
        "bar": BAR,
        "rows": rows,
        "worst": max(row["excess"] for row in rows),
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "enumeration", result, full)


_ = ndtr, ndtri

if __name__ == "__main__":
    main("enumeration", run)
