"""Same seed, same bytes: whatever the row order, the engine, the block size or the threads."""

import hashlib
import os
import subprocess
import sys
from typing import Any

import duckdb
import pytest

import equipoise as eq
from equipoise.methods.published.bootstrap import estimates as streams
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows

TABLE = make_table(300)
SHUFFLED = TABLE.sample(fraction=1.0, shuffle=True, seed=2)
ROLES = {"label": "label", "prediction": "prediction", "score": "score"}
CLAIMS = {
    "0/1": eq.gap("accuracy", across=eq.intersections("race", "sex")),
    "real": eq.gap("absolute_error", across=eq.intersections("race", "sex")),
    "ranges": eq.gap("absolute_error", across=eq.intervals("age", grid=5), target=0.4),
}


def answers(table: Any, claim: Any, **roles: str) -> list[str]:
    trail = eq.read(table, **ROLES, **roles)
    found = [
        eq.certify(trail, claim, resamples=100, rng=3),
        eq.certify(trail, claim, resamples=100, rng=3, method="certificates", tolerance=0.1),
        eq.flag(trail, claim, rng=3, method="bootstrap", resamples=100),
        eq.flag(trail, claim, rng=3, control="max-t"),
    ]
    # the name of the source is part of a result, and differs by design
    return [one.to_json().replace(one.provenance.source, "") for one in found]


@pytest.mark.parametrize("name", list(CLAIMS))
@pytest.mark.parametrize("roles", [{}, {"weight": "weight"}], ids=["plain", "weighted"])
def test_row_order_does_not_matter(name: str, roles: dict[str, str]) -> None:
    one, two = (answers(table, CLAIMS[name], **roles) for table in (TABLE, SHUFFLED))
    assert one == two


@pytest.mark.parametrize("name", list(CLAIMS))
def test_the_engine_does_not_matter(name: str) -> None:
    relation = duckdb.from_arrow(TABLE.to_arrow())
    found = [answers(table, CLAIMS[name]) for table in (TABLE, TABLE.to_pandas(), relation)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", list(CLAIMS))
def test_the_block_size_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answers(TABLE, CLAIMS[name])
    monkeypatch.setattr(streams, "BLOCK_NUMBERS", 40)
    assert answers(TABLE, CLAIMS[name]) == whole


def test_clusters_in_any_order() -> None:
    claim = CLAIMS["0/1"]
    one, two = (
        eq.certify(eq.read(t, cluster="site", **ROLES), claim, resamples=100, rng=3).to_json()
        for t in (TABLE, SHUFFLED)
    )
    assert one == two


def test_another_seed_is_another_answer() -> None:
    trail = eq.read(TABLE, **ROLES)
    one, two = (eq.certify(trail, CLAIMS["0/1"], resamples=100, rng=seed) for seed in (3, 4))
    assert one.critical != two.critical


SCRIPT = """
import hashlib, sys
sys.path.insert(0, ".")
from tests.unit.audits.test_determinism import CLAIMS, TABLE, answers
text = "".join(part for claim in CLAIMS.values() for part in answers(TABLE, claim))
sys.stdout.write(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_number_of_threads_does_not_matter() -> None:
    text = "".join(part for claim in CLAIMS.values() for part in answers(TABLE, claim))
    here = hashlib.sha256(text.encode()).hexdigest()
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
        env = {**os.environ, **dict.fromkeys(names, threads)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == here
