"""From 10⁵ to 10⁸ rows: the whole audit against the bare group-by, and how each part grows."""

import json
import shutil
from pathlib import Path

from measure import Line, Measured, at_least, at_most, measure

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
#: Bytes that the largest table and its making may need.
ROOM = 20_000_000_000

_MAKE = """
    COPY (
        SELECT
            ['African-American','Caucasian','Hispanic','Asian','Other'][1 + (hash(i) % 5)::INT] AS race,
            ['Female','Male'][1 + (hash(i + 1) % 2)::INT] AS sex,
            ['under 25','25 to 45','over 45'][1 + (hash(i + 2) % 3)::INT] AS age,
            (hash(i + 4) % 100 < 45)::TINYINT AS label,
            (hash(i + 5) % 100 < 38 + hash(i) % 5)::TINYINT AS prediction,
            (hash(i + 6) % 1000) / 1000.0 AS score
        FROM range({rows}) t(i)
    ) TO '{path}' (FORMAT parquet)
"""

_RATES = (
    "selection_rate",
    "false_positive_rate",
    "false_negative_rate",
    "true_positive_rate",
    "true_negative_rate",
    "positive_predictive_value",
    "negative_predictive_value",
    "accuracy",
)
_MIXED = (*_RATES[:6], "brier", "absolute_error")

# Whatever the audit sends to an engine goes through one function, which is counted here; opening
# the file reads its footer, which grows with the rows, and is timed as part of the scan.
_SETUP = """
    import json
    import duckdb
    import equipoise as eq
    import equipoise.audits
    import importlib
    from equipoise.plan import Plan, run
    def timed(module, name, times):
        plain = getattr(module, name)
        def call(*args, **options):
            began = time.process_time()
            try:
                return plain(*args, **options)
            finally:
                times.append(time.process_time() - began)
        setattr(module, name, call)
        return times
    sent = timed(importlib.import_module("equipoise.cells.gather"), "fetch", [])
    opened = timed(importlib.import_module("equipoise.plan.run"), "read", [])
    path = {path!r}
    plan = Plan.from_plain({plan!r})
"""
_AUDIT = """
evidence = run(plan, data=path)
rows = {entry.finding.provenance.scanned for entry in evidence.entries}
answer = json.dumps([len(evidence.entries), sorted(rows), len(sent), sum(sent) + sum(opened)])
"""
_BARE = {
    "rates": "SELECT race, sex, age, label, prediction, count(*) FROM read_parquet('{}') GROUP BY ALL",
    "mixed": "SELECT race, sex, age, label, prediction, count(*), sum((label - score)**2), "
    "sum((label - score)**4), sum(abs(label - score)) FROM read_parquet('{}') GROUP BY ALL",
}


def run(folder: Path, sizes: tuple[int, ...] = SIZES) -> list[Line]:
    """All figures; the tables are made first and removed afterwards."""
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        raise RuntimeError(f"{folder} has {free / 1e9:.0f} GB free; this needs {ROOM / 1e9:.0f} GB")
    lines: list[Line] = []
    audits: dict[int, Measured] = {}
    for rows in sizes:
        path = _made(folder, rows)
        audits[rows] = _audit(str(path), _RATES)
        if rows == max(sizes):
            lines += _largest(str(path), rows, audits[rows])
        path.unlink()
    return [*lines, *_growth(audits), *_measures(folder)]


_KEYS = "race, sex, age"
_MEASURES = {
    "f1": f"SELECT {_KEYS}, label, prediction, count(*) FROM read_parquet('{{}}') GROUP BY ALL",
    "actual_expected": f"SELECT {_KEYS}, 0, 0, count(*), sum(label), sum(score), sum(label * score), "
    "sum(score * score) FROM read_parquet('{}') GROUP BY ALL",
    "expected_calibration_error": f"SELECT {_KEYS}, label, floor(score * 10), count(*), "
    "sum(label - score), sum((label - score)**2) FROM read_parquet('{}') GROUP BY ALL",
    "auc": f"SELECT {_KEYS}, label, score, count(*) FROM read_parquet('{{}}') GROUP BY ALL",
}
"""Measures that are no means, and the bare scan that gives the sums they need."""


def _measures(folder: Path, rows: int = 1_000_000) -> list[Line]:
    """Bounds on measures that are no means, beside the bare scan with the same keys."""
    path = str(_made(folder, rows))
    roles = 'label="label", prediction="prediction", score="score"'
    setup = f"""
        import equipoise as eq
        import equipoise.audits.certify
        import equipoise.methods.inference.ranks
        trail = eq.read({path!r}, {roles})
        def claim(metric):
            return eq.gap(metric, across=eq.intersections("race", "sex", "age", depth=1))
        eq.certify(trail, claim("selection_rate"), resamples=1000, rng=1)
    """
    lines = []
    for metric, query in _MEASURES.items():
        code = f"answer = eq.certify(trail, claim({metric!r}), resamples=1000, rng=1).provenance.scanned"
        ours, bare = measure(code, setup, repeat=3), _scan(query.format(path))
        if ours.answer != bare.answer:
            raise RuntimeError(f"{ours.answer} rows against {bare.answer}")
        detail = f"{ours.cpu:.2f} against {bare.cpu:.2f} CPU s"
        what = f"certify {metric} of {rows:,} rows, 10 groups, CPU time"
        lines.append(at_most(what, ours.cpu / bare.cpu, 10, "× bare GROUP BY", detail))
    Path(path).unlink()
    return lines


def _made(folder: Path, rows: int) -> Path:
    import duckdb

    path = folder / f"scale-{rows}.parquet"
    if not path.exists():
        duckdb.connect().execute(_MAKE.format(rows=rows, path=path)).fetchall()
    return path


def _plan(metrics: tuple[str, ...]) -> dict[str, object]:
    audits: list[dict[str, object]] = []
    for metric in metrics:
        claim = {"kind": "gap", "metric": metric, "across": ["race", "sex", "age"]}
        limits = {"outside": [-0.01, 0.01]}
        audits += [
            {"audit": "certify", "name": f"bounds {metric}", "claim": claim, "resamples": 1000},
            {"audit": "flag", "name": f"flags {metric}", "claim": claim, **limits},
        ]
    roles = {"label": "label", "prediction": "prediction", "score": "score"}
    return {"equipoise": 1, "seed": 7, "trail": {"source": "x", **roles}, "audits": audits}


def _audit(path: str, metrics: tuple[str, ...]) -> Measured:
    return measure(_AUDIT, _SETUP.format(path=path, plan=_plan(metrics)), repeat=3)


def _bare(path: str, kind: str) -> Measured:
    return _scan(_BARE[kind].format(path))


def _scan(query: str) -> Measured:
    code = f'answer = sum(row[5] for row in connection.execute("{query}").fetchall())'
    setup = """
        import duckdb
        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")
    """
    return measure(code, setup, repeat=3)


def _largest(path: str, rows: int, audit: Measured) -> list[Line]:
    lines = []
    for kind, metrics, ours in (
        ("rates", _RATES, audit),
        ("mixed", _MIXED, _audit(path, _MIXED)),
    ):
        bare = _bare(path, kind)
        number, scanned, queries, _ = json.loads(ours.answer)
        if (number, scanned, bare.answer) != (2 * len(metrics), [rows], str(rows)):
            raise RuntimeError(f"{number} audits of {scanned} rows against {bare.answer}")
        what = "8 rates" if kind == "rates" else "6 rates, brier and absolute error"
        detail = (
            f"{ours.cpu:.1f} against {bare.cpu:.1f} CPU s, {ours.wall:.1f} against {bare.wall:.1f} s "
            "on the clock"
        )
        whole = f"whole audit of {rows:,} rows ({what}, 3 attributes, certify and flag, B = 1000)"
        lines += [
            at_most(f"{whole}, CPU time", ours.cpu / bare.cpu, 1.25, "× bare GROUP BY", detail),
            at_most(f"{whole}, peak memory", ours.peak_mb, 2000, "MB"),
            at_most(f"{whole}, queries sent to the engine", queries, 1, "scan"),
        ]
    return lines


def _growth(audits: dict[int, Measured]) -> list[Line]:
    parts = {}
    for rows, done in audits.items():
        _, _, _, cpu = json.loads(done.answer)
        parts[rows] = (cpu, done.cpu - cpu)
    said = "; ".join(
        f"{rows:,} rows {scan:.2f} + {rest:.2f}" for rows, (scan, rest) in parts.items()
    )
    (small, first), (large, last) = parts[min(parts)], parts[max(parts)]
    factor = max(parts) / min(parts)
    ten = parts[max(parts)][0] / parts[sorted(parts)[-2]][0]
    return [
        at_most(
            "scan, ten times the rows (the two largest tables)", ten, 12, "× the CPU time", said
        ),
        at_most("inference, 10⁸ rows against 10⁵", last / first, 1.25, "× the CPU time", said),
        at_least("scan, 10⁸ rows against 10⁵", large / small, 0, f"× for {factor:,.0f} × the rows"),
    ]
