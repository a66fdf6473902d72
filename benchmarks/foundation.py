"""Cells and groups: against the bare group-by, and the time to import."""

from pathlib import Path

from measure import Line, at_most, measure

ROWS = 20_000_000

_MAKE = """
    COPY (
        SELECT
            ['African-American','Caucasian','Hispanic','Asian','Other'][1 + (hash(i) % 5)::INT] AS race,
            ['Female','Male'][1 + (hash(i + 1) % 2)::INT] AS sex,
            ['under 25','25 to 45','over 45','unknown'][1 + (hash(i + 2) % 4)::INT] AS age,
            (hash(i + 3) % 5)::INT AS region,
            (hash(i + 4) % 100 < 45)::INT AS label,
            (hash(i + 5) % 100 < 40)::INT AS prediction,
            (hash(i + 6) % 1000) / 1000.0 AS score
        FROM range({rows}) t(i)
    ) TO '{path}' (FORMAT parquet)
"""

_SETUP = """
    import duckdb
    import equipoise as eq
    from equipoise.cells import form_groups, gather
    path = {path!r}
    trail = eq.read(path, label="label", prediction="prediction", score="score")
    across = eq.intersections("race", "sex", "age", "region")
    claim = eq.gap(eq.{metric}, across=across)
    connection = duckdb.connect()
"""


def run(folder: Path, rows: int = ROWS) -> list[Line]:
    """All figures of the foundation."""
    path = folder / f"decisions-{rows}.parquet"
    if not path.exists():
        import duckdb

        duckdb.connect().execute(_MAKE.format(rows=rows, path=path)).fetchall()
    return [*_cells(str(path)), *_group_sums(), *_import()]


def _cells(path: str) -> list[Line]:
    # What one would write by hand for each metric; the answer proves both looked at every row.
    bare = {
        "false_positive_rate": "SELECT race, sex, age, region, count(*), sum(prediction) "
        "FROM read_parquet('{}') WHERE label = 0 GROUP BY ALL",
        "brier": "SELECT race, sex, age, region, count(*), sum((label-score)**2), "
        "sum((label-score)**4) FROM read_parquet('{}') GROUP BY ALL",
    }
    lines = []
    for metric, sql in bare.items():
        setup = _SETUP.format(path=path, metric=metric)
        ours = measure("answer = gather(trail, [claim])[0].counted", setup, repeat=5)
        query = f'answer = sum(r[4] for r in connection.execute("{sql.format(path)}").fetchall())'
        theirs = measure(query, setup, repeat=5)
        if ours.answer != theirs.answer:
            raise RuntimeError(f"{metric}: {ours.answer} rows against {theirs.answer}")
        detail = (
            f"{ours.cpu:.2f} against {theirs.cpu:.2f} CPU s, {ours.wall:.2f} against "
            f"{theirs.wall:.2f} s on the clock, {int(ours.answer):,} rows counted"
        )
        name = metric.replace("_", " ")
        lines += [
            at_most(
                f"cells of {ROWS:,} rows, {name}, CPU time",
                ours.cpu / theirs.cpu,
                1.3,
                "× bare GROUP BY",
                detail,
            ),
            at_most(f"cells of {ROWS:,} rows, {name}, peak memory", ours.peak_mb, 1000, "MB"),
        ]
    return lines


_GROUPS = """
    import numpy as np
    import itertools
    from equipoise.cells import Axis, Cells, form_groups
    import equipoise as eq
    names = ["a", "b", "c", "d"]
    sizes = [10, 10, 10, 10]
    across = eq.intersections(*names, max_groups=200_000)
    index = np.array(list(itertools.product(*(range(s) for s in sizes))))
    ones = np.ones(len(index))
    axes = tuple(Axis(dimension=d, levels=tuple(f"{d.name}{i}" for i in range(s)))
                 for d, s in zip(across.attributes, sizes))
    cells = Cells(metric=eq.accuracy, axes=axes, index=index, present=ones, rows=ones, weight=ones,
                  total=ones, square=ones, weight2=ones, total2=ones, square2=ones, weight3=ones,
                  total3=ones, square3=ones, cube3=ones, zero_one=True, weighted=False,
                  scanned=len(index), excluded={}, source="made up")
"""
_INTERVALS = """
    import numpy as np
    from equipoise.cells import Axis, Cells, form_groups
    import equipoise as eq
    across = eq.boxes("x", "y", edges={"x": range(26), "y": range(26)}, max_groups=200_000)
    axes = tuple(Axis(dimension=d, levels=tuple((float(i), i + 1.0) for i in range(25))) for d in across.attributes)
    index = np.stack(np.meshgrid(np.arange(25), np.arange(25), indexing="ij"), -1).reshape(-1, 2)
    ones = np.ones(len(index))
    cells = Cells(metric=eq.accuracy, axes=axes, index=index, present=ones, rows=ones, weight=ones,
                  total=ones, square=ones, weight2=ones, total2=ones, square2=ones, weight3=ones,
                  total3=ones, square3=ones, cube3=ones, zero_one=True, weighted=False,
                  scanned=len(index), excluded={}, source="made up")
"""
_MASKS = """
    import numpy as np
    from equipoise.cells.groups import sparse_sums
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(100_000), 10)
    operator = sparse_sums(group, rng.integers(0, 10_000, len(group)), 100_000, 10_000)
    x = rng.random(10_000)
"""


def _group_sums() -> list[Line]:
    lines = []
    for what, setup in (("intersections", _GROUPS), ("boxes", _INTERVALS)):
        code = "groups = form_groups(across, cells); answer = (len(groups), groups.sums(cells.total).sum())"
        done = measure(code, setup)
        size = done.answer.strip("()").split(",")[0]
        lines.append(at_most(f"forming and summing {int(size):,} {what}", done.wall, 0.2, "s"))
    done = measure("answer = operator(x).sum()", _MASKS)
    lines.append(at_most("summing 100,000 sparse groups of 10,000 cells", done.wall, 0.2, "s"))
    return lines


def _import() -> list[Line]:
    done = measure("import equipoise", repeat=5)
    detail = f"{done.wall:.2f} s on the clock"
    return [at_most("import equipoise", done.cpu, 0.5, "CPU s", detail)]
