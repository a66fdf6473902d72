"""What a stranger found out by setting findings of one page against each other.

Audits of rows, of streams and of groups by rule stand beside audits of groups; in every page of
these a few people could be counted, or found in the file beside the page.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.report.differences import Numbers, gives_away

K = 5
RATE = eq.selection_rate
Page = list[eq.Finding]


def table(**lost: list[int]) -> pl.DataFrame:
    """600 rows; in some columns values of these rows are missing."""
    rng = np.random.default_rng(0)
    score = rng.random(600).round(3)
    made = pl.DataFrame(
        {
            "g": np.repeat(["A", "B", "C"], [300, 200, 100]),
            "sex": rng.choice(["f", "m"], 600),
            "age": rng.integers(18, 80, 600).astype(float),
            "w": rng.integers(1, 4, 600),
            "score": score,
            "label": (rng.random(600) < score).astype(int),
            "pred": (score > 0.5).astype(int),
            "t": np.resize(np.arange(6), 600),
        }
    ).with_row_index("i")
    for name, rows in lost.items():
        gone = pl.col("i").is_in(rows)
        made = made.with_columns(pl.when(gone).then(None).otherwise(pl.col(name)).alias(name))
    return made.drop("i")


def read(frame: pl.DataFrame) -> eq.Trail:
    return eq.read(frame, label="label", prediction="pred", score="score")


def bounds(trail: eq.Trail, across: Any, metric: Any = RATE, **more: Any) -> eq.Finding:
    return eq.certify(trail, eq.gap(metric, across=across, **more), rng=1)


def published(page: Page, least: int = K) -> list[dict[str, Any] | None]:
    report = eq.report(*page, suppress=least)
    return [entry["finding"] for entry in json.loads(report.published or "")["entries"]]


def numbers(page: Page, least: int = K) -> list[int]:
    """Every number of people that is told: of groups, and of everybody."""
    told = [found for found in published(page, least) if found is not None]
    found = {row["n"] for one in told for row in one["rows"] if "n" in row}
    found |= {one["provenance"]["counted"] for one in told}
    return sorted(found - {0})


def aged(years: float, rows: list[int]) -> pl.DataFrame:
    made = table().with_row_index("i")
    old = pl.when(pl.col("i").is_in(rows)).then(years).otherwise(pl.col("age"))
    return made.with_columns(old.alias("age")).drop("i")


def of_labels(first: int, last: int) -> list[int]:
    return list(range(first, last))


LAST = of_labels(597, 600)


def selected() -> list[int]:
    """Three of C who are selected."""
    made = table().with_row_index("i").filter((pl.col("g") == "C") & (pl.col("pred") == 1))
    return made["i"].head(3).to_list()


THREE_BEYOND = aged(95.0, [0, 1, 2])

PAGES: dict[str, Callable[[], Page]] = {
    "two metrics that share no group": lambda: [
        bounds(t := read(table(label=[1, 400])), "g", eq.error_rate),
        bounds(t, "sex"),
    ],
    "a stream beside a table": lambda: [
        eq.monitor(
            t := read(table(label=LAST)), eq.gap(eq.error_rate, across="g"), above=0.05, time="t"
        ),
        bounds(t, "g"),
    ],
    "labels at their worst": lambda: [
        bounds(
            t := read(table(label=LAST)),
            "g",
            eq.error_rate,
            target=eq.complement(),
            unlabelled="worst",
        ),
        bounds(t, "g"),
    ],
    "a mask in a mask": lambda: [
        bounds(read(aged(95.0, [0, 1])), eq.masks(over50="age>50", b50to90="age>50 and age<90"))
    ],
    "masks that leave some out": lambda: [
        bounds(read(table(age=[0, 1])), eq.masks(young="age<50", old="age>=50"))
    ],
    "boxes that leave some out": lambda: [
        bounds(
            read(THREE_BEYOND), eq.boxes("age", "w", edges={"age": [18, 60, 90], "w": [1, 2, 3]})
        )
    ],
    "bins that leave some out": lambda: [
        bounds(read(table(score=[1, 2, 3])), eq.bins("g", edges=[0, 0.5, 1]))
    ],
    "two cuts of one number": lambda: [
        bounds(t := read(aged(60.5, [0, 1, 2])), [eq.binned("age", [18, 30, 60.2, 100])]),
        bounds(t, [eq.binned("age", [18, 30, 60.8, 100])]),
    ],
    "two tables": lambda: [
        bounds(read(t := table()), "g"),
        bounds(read(pl.concat([t, t.head(3)])), "g"),
    ],
    "rows without a number": lambda: [
        eq.shift(
            t := read(table(age=[0, 1])), eq.gap(RATE), over=eq.monotone("age", grid=4), rng=1
        ),
        bounds(t, "sex"),
    ],
    "rows on which something was learnt": lambda: [
        eq.discover(
            t := read(table(label=LAST)), eq.error_rate, features=["g", "age"], above=0.0, rng=1
        ),
        bounds(t, "sex"),
    ],
    "true and false positive rates beside all": lambda: [
        bounds(t := read(table(label=LAST)), "g", eq.true_positive_rate),
        bounds(t, "g", eq.false_positive_rate),
        bounds(t, "g"),
    ],
    "odds beside a stream": lambda: [
        bounds(t := read(table(label=LAST)), "g", eq.true_positive_rate),
        bounds(t, "g", eq.false_positive_rate),
        eq.monitor(t, eq.gap(RATE, across="g"), above=0.05, time="t"),
    ],
    "three tables": lambda: [
        bounds(read((t := table(sex=LAST)).filter(pl.col("sex") == "f")), "g"),
        bounds(read(t.filter(pl.col("sex") == "m")), "g"),
        bounds(read(t), "g"),
    ],
    "who adds one, in a table and a stream": lambda: [
        bounds(t := read(table(label=selected())), "g", eq.positive_predictive_value),
        eq.monitor(t, eq.gap(RATE, across="g"), above=0.05, time="t"),
    ],
    "two cuts under two metrics": lambda: [
        bounds(t := read(aged(60.5, [0, 1, 2])), [eq.binned("age", [18, 30, 60.2, 100])]),
        bounds(t, [eq.binned("age", [18, 30, 60.8, 100])], eq.error_rate),
    ],
    "a box as wide as another number": lambda: [
        bounds(
            t := read(aged(60.5, [0, 1, 2])),
            eq.boxes("age", "w", edges={"age": [18, 60.2, 100], "w": [1, 2, 4]}),
        ),
        bounds(t, [eq.binned("age", [18, 60.8, 100])]),
    ],
    "a tilt that is a group": lambda: [
        bounds(t := read(table(label=LAST)), "g", eq.error_rate),
        bounds(t, eq.tilts(c="(g=='C')*1")),
    ],
}


def reached(numbers_told: list[int]) -> set[int]:
    """What is left between a number and another, or the sum or the difference of two others."""
    pairs = itertools.combinations_with_replacement(numbers_told, 2)
    return {
        abs(n - part)
        for a, b in pairs
        for part in (a, b, a + b, abs(a - b))
        for n in numbers_told
        if part
    }


@pytest.mark.parametrize("order", [1, -1], ids=["", "turned"])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_counts_a_few_people(name: str, order: int) -> None:
    page = PAGES[name]()
    told = numbers(page[::order])
    if len(page) == 1:
        assert not told or not reached(told) & set(range(1, K))
        return
    # one finding goes; what stands on the page without it stays
    assert told
    assert None in published(page[::order])


def test_pages_without_a_few_people_stay_whole() -> None:
    t = read(table())
    whole: dict[str, Page] = {
        "monotone": [eq.shift(t, eq.gap(RATE), over=eq.monotone("age", grid=4), rng=1)],
        "categories": [eq.shift(t, eq.gap(RATE), over=["g", "sex"], rng=1)],
        "ranges": [bounds(t, eq.intervals("age", grid=6))],
        "bins": [bounds(t, eq.bins("g", edges=[0, 0.5, 1]))],
        "attributes": [bounds(t, ["sex", eq.binned("age", [18, 30, 61, 100])])],
        "rules beside groups": [
            bounds(t, "g"), eq.discover(t, RATE, features=["age", "w", "g"], above=0.0, rng=1)
        ],
        "a stream beside groups": [
            eq.monitor(t, eq.gap(eq.error_rate, across="g"), above=0.05, time="t"), bounds(t, "g")
        ],
        "metrics": [
            bounds(t, "g"), bounds(t, "g", eq.true_positive_rate),
            bounds(t, "g", eq.false_positive_rate), bounds(t, "sex", eq.error_rate),
        ],
    }  # fmt: skip
    for name, page in whole.items():
        assert all(found is not None for found in published(page)), name


def crossed(seed: int) -> eq.Trail:
    rng = np.random.default_rng(seed)
    score = rng.random(700).round(3)
    columns = {
        "g": rng.choice(list("ABCD"), 700, p=[0.5, 0.3, 0.15, 0.05]),
        "s": rng.choice(["f", "m", "x"], 700, p=[0.5, 0.46, 0.04]),
        "age": rng.integers(18, 80, 700),
        "pred": (score > 0.5).astype(int),
    }
    return eq.read(pl.DataFrame(columns), prediction="pred")


@pytest.mark.parametrize("seed", [0, 9, 11, 14])
def test_rows_kept_back_take_no_place_of_all_rows(seed: int) -> None:
    """The total of a half stood for the total of all, and hidden groups were shown again."""
    trail = crossed(seed)
    alone = bounds(trail, ["g", "s"])
    half = eq.discover(trail, RATE, features=["age"], above=0.0, rng=1)
    rows = [
        {row["group"] for row in found["rows"]}
        for page in ([alone], [alone, half], [half, alone])
        for found in published(page)
        if found is not None and found["kind"] == "bounds"
    ]
    assert rows[0] == rows[1] == rows[2]


def test_shifts_keep_their_sums_to_themselves() -> None:
    """From the averages behind a kernel every value's rows followed, single people included."""
    frame = table().with_columns(kids=pl.col("w") + 3 * (pl.int_range(pl.len()) == 0))
    around = eq.gaussian("kids", bandwidth=3)
    numbers_, categories, halves = published(
        [
            eq.shift(read(frame), eq.gap(RATE), over=over, rng=1)
            for over in (around, ["g"], eq.monotone("age", grid=4))
        ]
    )
    assert numbers_ is None
    assert categories is not None
    assert halves is not None
    assert not {"basis", "space", "halves", "stretches"} & {*categories, *halves}
    assert "fingerprint" not in json.dumps(halves).replace('"fingerprint": ""', "")


def test_ends_of_ranges_are_nobodys_values() -> None:
    rich = table().with_columns(
        income=pl.when(pl.int_range(pl.len()) == 0).then(250_317).otherwise(pl.col("age") * 1000)
    )
    page = [bounds(read(rich), eq.thresholds("income", grid=2))]
    text = json.dumps(published(page)) + eq.report(*page, suppress=K).html
    assert "250317" not in text
    assert "250,317" not in text
    assert "and over" in text


@pytest.mark.parametrize("few", [1, 4, 30])
def test_a_batch_of_a_few_people_is_not_drawn(few: int) -> None:
    frame = table().with_columns(row=pl.int_range(pl.len()).over("g", "t"))
    # of C in the first batch only a few are left
    kept = ~((pl.col("g") == "C") & (pl.col("t") == 0)) | (pl.col("row") < few)
    found = eq.monitor(read(frame.filter(kept)), eq.gap(RATE, across="g"), above=0.05, time="t")
    (told,) = published([found])
    assert told is not None
    drawn = {row["group"]: bool(row["history"]) for row in told["rows"]}
    assert drawn["A"]
    assert drawn["C"] == (few >= K)
    assert all(row["smallest"] is None for row in told["rows"])


def test_a_mask_in_a_stream_is_no_hidden_group() -> None:
    frame = table().with_columns(
        g=pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("Zed")).otherwise(pl.col("g"))
    )
    trail = read(frame)
    stream = eq.monitor(trail, eq.gap(RATE, across=eq.masks(c="g=='C'")), above=0.05, time="t")
    for page in ([bounds(trail, "g"), stream], [stream, bounds(trail, "g")]):
        assert not any(abs(n - 100) < K for n in numbers(page))


def test_who_looks_at_hidden_groups_alone_counts_nobody() -> None:
    """800 rows less A and B leave 140; a table of C alone has 135."""
    rows = [(g, "fm"[i % 2], i % 3 == 0) for g, n in (("A", 400), ("B", 260), ("C", 138), ("D", 2))
            for i in range(n)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["g", "s", "pred"], orient="row")
    every, only = (eq.read(f, prediction="pred") for f in (frame, frame.filter(pl.col("g") == "C")))
    for page in ([bounds(every, "g"), bounds(only, "s")], [bounds(only, "s"), bounds(every, "g")]):
        assert published(page).count(None) == 1


def test_metrics_of_one_table_are_added_up_whatever_others_say() -> None:
    """Of 600 rows 344 have a true and 253 a false positive rate; another table has 1,512."""

    def one(metric: str, place: str, n: int) -> Numbers:
        return Numbers(
            metric=metric, table=place, sizes={"{}": n}, hits={}, left=(), whole=n, by_rule=False
        )

    rates = [one("true_positive_rate", "b", 344), one("false_positive_rate", "b", 253)]
    others = [one("selection_rate", "a", 1512), one("true_positive_rate", "a", 931)]
    for told in ([*others, *rates], [*rates, *others]):
        assert gives_away(one("selection_rate", "b", 600), told, K)
        assert not gives_away(one("selection_rate", "b", 597), told, K)


RACES = {"White": 500, "Black": 300, "Hispanic": 160, "Asian": 40, "Native": 4}


def of_races(sizes: dict[str, int], seed: int) -> pl.DataFrame:
    rng, n = np.random.default_rng(seed), sum(sizes.values())
    race, score = np.repeat(list(sizes), list(sizes.values())), rng.random(n)
    rare = np.where(np.isin(race, ["Asian", "Native"]), 0.9, 0.6)
    return pl.DataFrame(
        {
            "race": race,
            "label": (rng.random(n) < score).astype(int),
            "a": (score > 0.5).astype(int),
            "b": (score > rare).astype(int),
        }
    )


def remainders(page: Page) -> list[int]:
    told = [found for found in published(page, 10) if found is not None]
    return [one["provenance"]["counted"] - sum(row["n"] for row in one["rows"]) for one in told]


@pytest.mark.parametrize("turn", [1, -1])
def test_two_models_are_looked_at_each(turn: int) -> None:
    """The second's predicted positives were never counted: five were left over."""
    frame, claim = of_races(RACES, 5), eq.gap(eq.positive_predictive_value, across="race")
    for verb in (eq.describe, lambda *asked: eq.certify(*asked, rng=1)):
        page: Page = [verb(eq.read(frame, label="label", prediction=name), claim) for name in "ab"]
        assert all(n == 0 or n >= 20 for n in remainders(page[::turn]))


@pytest.mark.parametrize("more", [0, 1])
def test_two_months_of_as_many_rows_are_two_tables(more: int) -> None:
    later = {"White": 480 + more, "Black": 335, "Hispanic": 182, "Asian": 3, "Native": 4}
    page = [
        bounds(eq.read(of_races(sizes, seed), label="label", prediction="a"), "race")
        for seed, sizes in enumerate((RACES, later))
    ]
    assert all(n == 0 or n >= 20 for n in remainders(page))
    assert all(n == 0 or n >= 20 for n in remainders(page[::-1]))


def test_values_of_a_few_people_are_no_result() -> None:
    trail = read(table())
    top, middle = (
        eq.describe(trail, eq.gap(eq.quantile("age", q), across="g")) for q in (0.99, 0.5)
    )
    assert published([top]) == [None]
    assert published([middle]) != [None]
    claim = eq.gap(eq.residual, across="g")
    moved = eq.repair(trail, claim, tolerance=0.2, rule="recalibration", rng=1)
    assert published([moved]) == [None]


@pytest.mark.parametrize("quantiles", [2, 3, 4])
def test_open_bins_keep_their_names(quantiles: int) -> None:
    found = bounds(read(table()), [eq.binned("age", quantiles=quantiles)])
    (told,) = published([found])
    assert told is not None
    assert {row["group"]: row["n"] for row in told["rows"]} == {r.group: r.n for r in found.rows}


PLAN = """equipoise: 1
title: T
seed: 7
trail: {source: t.csv, label: label, prediction: pred, score: score}
audits:
  - audit: certify
    name: a
    claim: {kind: gap, metric: METRIC, across: [g]}
    tolerance: 0.3
"""


def test_files_of_a_build_conclude_from_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from equipoise.cli.main import app

    monkeypatch.chdir(tmp_path)
    small = table().with_columns(g=pl.lit("Zedland"), pred=0, t=0).head(9)
    pl.concat([*[table()] * 10, small.cast(table().schema)]).write_csv("t.csv")
    Path("p.yaml").write_text(PLAN.replace("METRIC", "selection_rate"), encoding="utf-8")
    files = ["--sarif", "s.sarif", "--summary", "s.md", "--junit", "j.xml", "--force"]
    done = CliRunner().invoke(app, ["check", "p.yaml", "--suppress", "10", *files])
    assert done.exit_code == 1
    texts = [Path(name).read_text(encoding="utf-8") for name in ("s.sarif", "s.md", "j.xml")]
    assert not any("violation is shown" in text or "exitCode" in text for text in texts)
    # and what could not be asked names no rows
    broken = pl.read_csv("t.csv").with_columns(
        label=pl.when(pl.int_range(pl.len()) < 3).then(7).otherwise(pl.col("label"))
    )
    broken.write_csv("t.csv")
    Path("p.yaml").write_text(PLAN.replace("METRIC", "error_rate"), encoding="utf-8")
    done = CliRunner().invoke(app, ["check", "p.yaml", "--suppress", "10", *files])
    if done.exit_code == 3:
        texts = [Path(name).read_text(encoding="utf-8") for name in ("s.sarif", "s.md", "j.xml")]
        assert all("said where the command was run" in text for text in texts[:2])
