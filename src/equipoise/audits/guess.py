"""`guess`: groups as one expects them, to plan an audit before there are rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from narwhals.typing import IntoFrame

from equipoise._validate import known_keywords
from equipoise.audits._groups.problem import Problem, set_up
from equipoise.claims import Claim
from equipoise.claims.claim import Custom
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, TrailError
from equipoise.trail import Trail, read
from equipoise.trail.engine import from_columns
from equipoise.trail.trail import Roles as ColumnRoles
from equipoise.trail.trail import make_trail


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Groups as one expects them: how many rows each will have, and at what rate.

    Made by [`guess`][equipoise.guess].

    >>> import equipoise as eq
    >>> eq.guess({"sex": ["f", "m"], "n": [300, 3000], "rate": [0.3, 0.3]})
    Guess(a guess; 'rate' of 'n' rows)
    """

    trail: Trail
    """The table, each line counting as many rows as were guessed."""
    rate: str
    """The column with the metric's mean."""
    spread: str | None
    """The column with its standard deviation; None for a rate."""

    def __repr__(self) -> str:
        """In one line."""
        return f"Guess({self.trail.source}; {self.rate!r} of {self.trail.roles.count!r} rows)"


@known_keywords
def guess(
    table: Mapping[str, Sequence[object]] | str | Path | IntoFrame,
    *,
    n: str = "n",
    rate: str = "rate",
    spread: str | None = None,
) -> Guess:
    """A table of guessed sizes and rates, to plan an audit before there are rows.

    Parameters
    ----------
    table
        One line for each group, or for each combination of attributes: a mapping from name to
        values, a data frame or a file. All columns but the following are attributes.
    n
        Column with the number of rows on which the metric will count.
    rate
        Column with the metric's mean there.
    spread
        For a metric that is no rate: column with its standard deviation there.

    Examples
    --------
    >>> import equipoise as eq
    >>> expected = eq.guess({"sex": ["f", "m"], "n": [300, 3000], "rate": [0.3, 0.3]})
    >>> claim = eq.gap("selection_rate", across="sex", target=eq.reference(sex="m"))
    >>> found = eq.power(expected, claim, disparity=-0.05, rng=7)
    >>> 500 < found.ask("f").rows_to_flag < 600
    True
    """
    if isinstance(table, Mapping):
        columns = {str(name): np.asarray(values) for name, values in table.items()}
        if len({len(values) for values in columns.values()}) != 1:
            raise TrailError("All columns of a guess must have the same number of lines.")
        for name in (n, rate):
            if name not in columns:
                raise TrailError(f"A guess needs a column {name!r}; this one has {[*columns]}.")
        trail = make_trail(
            from_columns(columns, "a guess"),
            roles=ColumnRoles(count=n),
            attributes=None,
            positive=None,
            source="a guess",
        )
    else:
        trail = read(table, count=n)
    for name in (rate, *([] if spread is None else [spread])):
        if name not in trail.schema:
            raise TrailError(f"A guess needs a column {name!r}; this one has {[*trail.schema]}.")
        if not name.isidentifier():
            raise TrailError(f"The column {name!r} must have a name without spaces and signs.")
    return Guess(trail=trail, rate=rate, spread=spread)


def guessed(asked: Guess, claim: Claim) -> Problem:
    """The problem of a table that nobody has seen yet."""
    metric = claim.metric
    if claim.given or isinstance(claim.target, Custom) or metric.change is not None:
        raise ClaimError(
            "A guess says how many rows groups have and what their mean is: no given=, custom(…) "
            "or change(…), which need rows."
        )
    real = asked.spread is not None
    if metric.low is None and not real:
        raise ClaimError(
            f"{metric.words} is no rate, so a guess needs its standard deviation as well: "
            "guess(…, spread=…)."
        )

    def asking(value: str) -> Claim:
        plain = Metric(name=metric.name, value=value, low=None if real else 0.0,
                       high=None if real else 1.0)  # fmt: skip
        return replace(claim, metric=plain)

    try:
        found = set_up(asked.trail, asking(asked.rate))
    except TrailError as error:
        raise TrailError(f"In the guess: {error}") from error
    cells = found.cells
    if cells.excluded:
        raise TrailError("A guess must have a number of rows and a rate on every line.")
    mean = np.nan_to_num(cells.total / np.maximum(cells.rows, 1.0))
    square = cube = cells.total
    if asked.spread is not None:
        both = f"{asked.spread} * {asked.spread} + {asked.rate} * {asked.rate}"
        square = set_up(asked.trail, asking(both)).cells.total
        cube = 3 * mean * square - 2 * mean**3 * cells.rows
    cells = replace(
        cells,
        metric=metric,
        zero_one=not real,
        values=() if real else (0.0, 1.0),
        square=square,
        square2=square,
        square3=square,
        cube3=cube,
    )
    return replace(found, claim=claim, cells=cells)
