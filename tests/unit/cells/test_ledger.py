"""The ledger: append-only, sealed, the same from any source, and whole after any crash."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.cells.ledger import Ledger, merge_ledgers

CLAIM = eq.gap("selection_rate", across=eq.intersections("sex", "age"))
OTHER = eq.gap("accuracy", across="sex", target=0.5)


def table(period: int) -> dict[str, list[Any]]:
    rng = random.Random(period)
    rows = 30 + period % 7
    return {
        "sex": [rng.choice("fm") for _ in range(rows)],
        # a level that only some batches have
        "age": [rng.choice(["old", "young"] + ["new"] * (period % 2)) for _ in range(rows)],
        "hired": [rng.randrange(2) for _ in range(rows)],
        "fit": [rng.randrange(2) for _ in range(rows)],
        "month": [f"2026-{period:02d}"] * rows,
    }


def trail(*periods: int) -> eq.Trail:
    joined: dict[str, list[Any]] = {}
    for period in periods:
        for name, column in table(period).items():
            joined.setdefault(name, []).extend(column)
    return eq.read(pl.DataFrame(joined), label="fit", prediction="hired")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.start(tmp_path / "l.ledger", [CLAIM, OTHER])
    for period in range(1, 6):
        assert made.add(trail(period), f"2026-{period:02d}") == "added"
    return made


def test_one_table_and_single_files_give_the_same_bytes(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger.start(tmp_path / "other.ledger", [CLAIM, OTHER])
    other.add_all(trail(1, 2, 3, 4, 5), "month")
    assert other.path.read_bytes() == ledger.path.read_bytes()
    direct = eq.monitor(trail(5, 4, 3, 2, 1), CLAIM, period="month")
    assert eq.monitor(ledger, CLAIM).to_json() == direct.to_json()
    assert eq.monitor(str(ledger.path), CLAIM) == direct


def test_the_same_rows_again_change_nothing_and_others_are_refused(ledger: Ledger) -> None:
    before = ledger.path.read_bytes()
    assert ledger.add(trail(3), "2026-03") == "already there"
    with pytest.raises(eq.TrailError, match="already, with other rows"):
        ledger.add(trail(4), "2026-03")
    assert ledger.path.read_bytes() == before
    assert ledger.add(trail(9), "2026-03", late=True) == "added"
    assert ledger.add(trail(9), "2026-03", late=True) == "already there"
    assert ledger.periods[-1] == "2026-03 (late 1)"
    with pytest.raises(eq.TrailError, match="could be late for"):
        ledger.add(trail(9), "2027-01", late=True)
    # names no longer rise, and are found all the same
    assert ledger.add(trail(8), "2025-12") == "added"
    assert ledger.add(trail(8), "2025-12") == "already there"
    assert ledger.problems() == []


def test_whatever_is_changed_is_found(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.problems() == []
    lines = ledger.path.read_text(encoding="utf-8").splitlines(keepends=True)
    entry = json.loads(lines[3])
    entry["cells"][0]["total"][0] += 1
    hidden = {"changed": [*lines[:3], json.dumps(entry) + "\n", *lines[4:]]}
    hidden["left out"] = [*lines[:3], *lines[4:]]
    hidden["moved"] = [*lines[:3], lines[4], lines[3], *lines[5:]]
    for name, kept in hidden.items():
        path = tmp_path / f"{name}.ledger"
        path.write_text("".join(kept), encoding="utf-8")
        assert Ledger.open(path).problems(), name
    header = json.loads(lines[0])
    header["claims"] = header["claims"][:1]
    path = tmp_path / "header.ledger"
    path.write_text("".join([json.dumps(header) + "\n", *lines[1:]]), encoding="utf-8")
    with pytest.raises(eq.TrailError, match="changed after"):
        Ledger.open(path)


@pytest.mark.parametrize("tail", [b"{", b'{"period":"2026-06","late":0', b"\x00\x00"])
def test_an_unfinished_line_is_not_read_and_gives_way(ledger: Ledger, tail: bytes) -> None:
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + tail)
    assert len(ledger.periods) == 5
    assert ledger.add(trail(6), "2026-06") == "added"
    assert ledger.path.read_bytes().startswith(whole)
    assert len(ledger.periods) == 6
    assert ledger.problems() == []


def test_ledgers_of_several_places_are_as_one_of_all_rows(tmp_path: Path) -> None:
    halves = [Ledger.start(tmp_path / f"{i}.ledger", [CLAIM]) for i in range(2)]
    whole = Ledger.start(tmp_path / "whole.ledger", [CLAIM])
    for period in (1, 2, 3):
        name = f"2026-{period:02d}"
        halves[0].add(trail(period), name)
        halves[1].add(trail(period + 10), name)
        whole.add(trail(period, period + 10), name)
    made = merge_ledgers([half.path for half in halves], tmp_path / "merged.ledger")
    assert made.path.read_bytes() == whole.path.read_bytes()
    with pytest.raises(eq.TrailError, match="exists already"):
        merge_ledgers([half.path for half in halves], tmp_path / "merged.ledger")
    strange = Ledger.start(tmp_path / "strange.ledger", [OTHER])
    with pytest.raises(eq.TrailError, match="other questions"):
        merge_ledgers([halves[0].path, strange.path], tmp_path / "no.ledger")


def test_weights_clusters_and_real_metrics_come_back(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = {
        "g": [rng.choice("ab") for _ in range(200)],
        "loss": [rng.gauss(0, 1) for _ in range(200)],
        "w": [rng.random() + 0.1 for _ in range(200)],
        "home": [rng.randrange(40) for _ in range(200)],
        "month": [f"2026-{1 + i % 4:02d}" for i in range(200)],
    }
    claim = eq.gap(eq.metric("loss", "loss"), across="g", target=0.0)
    for roles in ({"weight": "w"}, {"cluster": "home"}, {"weight": "w", "cluster": "home"}, {}):
        source = eq.read(pl.DataFrame(rows), **roles)
        path = tmp_path / f"{len(roles)}{'w' in roles.values()}.ledger"
        ledger = Ledger.start(path, [claim])
        ledger.add_all(source, "month")
        assert eq.monitor(ledger, claim) == eq.monitor(source, claim, period="month")
        assert ledger.problems() == []


def test_what_cannot_be_a_ledger_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(eq.TrailError, match="exists already"):
        Ledger.start(ledger.path, [CLAIM])
    with pytest.raises(eq.TrailError, match="cannot be read"):
        Ledger.open(tmp_path / "none.ledger")
    (tmp_path / "text").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(eq.TrailError, match="damaged"):
        Ledger.open(tmp_path / "text")
    with pytest.raises(eq.TrailError, match="was not started for"):
        eq.monitor(ledger, eq.gap("error_rate", across="sex"))
    with pytest.raises(eq.ClaimError, match="edges="):
        Ledger.start(tmp_path / "q", [eq.gap("accuracy", across=eq.thresholds("x", grid=4))]).add(
            eq.from_arrays([1, 0], [1, 1], sensitive_features={"x": [1, 2]}), "1"
        )
    for name in ("", " ", "a\nb", "x" * 300):
        with pytest.raises(eq.TrailError, match="short name"):
            ledger.add(trail(7), name)


ADD = """
import random, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_ledger import Ledger, trail
ledger = Ledger.open(Path(sys.argv[1]))
print("ready", flush=True)
for period in range(10, 10_000):
    ledger.add(trail(period), f"p{period:05d}")
    print(period, flush=True)
"""


@pytest.mark.slow
def test_killed_at_two_hundred_moments_nothing_is_lost_or_torn(ledger: Ledger) -> None:
    rng = random.Random(7)
    told = 0
    here = str(Path(__file__).parent)
    for kill in range(KILLS):
        command = [sys.executable, "-c", ADD, str(ledger.path), here]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(rng.random() * 0.06)
            child.send_signal(signal.SIGKILL)
            said = [int(x) for x in child.stdout.read().split("\n") if x.strip().isdigit()]
        told = max([told, *said])
        kept = {int(name[1:]) for name in ledger.periods if name.startswith("p")}
        # all that was reported as added is there, once, and in order
        assert set(range(10, told + 1)) <= kept, kill
    assert len(set(ledger.periods)) == len(ledger.periods)
    assert ledger.problems() == []


KILLS = int(os.environ.get("EQUIPOISE_KILLS", "12"))


def _add(path: str, numbers: list[int]) -> None:
    ledger = Ledger.open(path)
    for number in numbers:
        ledger.add(trail(number % 12 + 1), f"b{number:03d}")


def test_several_processes_lose_nothing(ledger: Ledger) -> None:
    context = multiprocessing.get_context("spawn")
    shares = [list(range(i, 40, 4)) for i in range(4)]
    workers = [context.Process(target=_add, args=(str(ledger.path), part)) for part in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {name for name in ledger.periods if name[0] == "b"} == {f"b{i:03d}" for i in range(40)}
    assert ledger.problems() == []
