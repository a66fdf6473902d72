"""`read`: the way in."""

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise._validate import columns_named, known_keywords
from equipoise.trail.roles import Roles
from equipoise.trail.sources import open_source
from equipoise.trail.trail import Trail, make_trail


@known_keywords
def read(
    source: Any,
    *,
    table: str | None = None,
    label: str | None = None,
    prediction: str | None = None,
    score: str | None = None,
    low: str | None = None,
    high: str | None = None,
    weight: str | None = None,
    count: str | None = None,
    cluster: str | None = None,
    attributes: Sequence[str] | None = None,
    positive: Any | Mapping[str, Any] = None,
) -> Trail:
    """Open a table of decisions as an audit trail.

    Parameters
    ----------
    source
        Path of a CSV or Parquet file, a folder of them, or a glob; or a pandas, Polars or PyArrow
        table, a DuckDB relation, a PySpark DataFrame, or an Ibis table; or the place of a database:
        ``postgres://user@host/database``, ``duckdb:///file.duckdb``, ``sc://host`` (Spark Connect),
        ``spark://host:port`` or ``spark://local[2]``, in which ``${NAME}`` stands for an
        environment variable. Or a `Trail`, to give it other roles.
    table
        Name of the table, where ``source`` is the place of a database.
    label, prediction
        Columns with what happened and what the model decided: 0/1, booleans, or any two values
        together with ``positive=``.
    score, low, high
        The model's number before deciding; the ends of its prediction interval.
    weight, count, cluster
        Sampling weight; number of identical rows a row stands for; column whose equal values mark
        rows that were not sampled independently.
    attributes
        Columns by which groups may be formed; all columns without a role if not given.
    positive
        The value of label and prediction that counts as 1, where it is not 1 or True; a mapping
        from role to value if the two differ.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame(
    ...     {"hired": ["yes", "no", "no"], "advised": [1, 0, 1], "sex": ["f", "m", "f"]}
    ... )
    >>> read(table, label="hired", prediction="advised", positive="yes")
    Trail(a polars table; label='hired', prediction='advised'; attributes 'sex')
    """
    frame, words = (
        (source.frame, source.source) if isinstance(source, Trail) else open_source(source, table)
    )
    roles = Roles(
        label=label,
        prediction=prediction,
        score=score,
        low=low,
        high=high,
        weight=weight,
        count=count,
        cluster=cluster,
    )
    chosen = None if attributes is None else columns_named("attributes", attributes)
    return make_trail(frame, roles=roles, attributes=chosen, positive=positive, source=words)
