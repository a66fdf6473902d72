"""Each pack on a made-up hiring table, every number worked out again without the package."""

import csv
import dataclasses
import io
import itertools
import json
from fractions import Fraction
from math import comb, exp, log, sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.packs import Definition, Filled, PackResult, definitions
from tests.laws.sameness import sameness_by_enumeration

# people and selected by sex, race and requisition
HIRED = {
    ("Female", "Black", "clerk"): (40, 8),
    ("Female", "Black", "driver"): (20, 9),
    ("Female", "White", "clerk"): (60, 15),
    ("Female", "White", "driver"): (30, 14),
    ("Female", "Pacific", "clerk"): (3, 1),
    ("Male", "Black", "clerk"): (25, 8),
    ("Male", "Black", "driver"): (35, 20),
    ("Male", "White", "clerk"): (30, 12),
    ("Male", "White", "driver"): (70, 45),
    ("Male", "Pacific", "driver"): (2, 0),
    (None, "White", "clerk"): (6, 2),
    ("Female", "Declined", "driver"): (4, 1),
}


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rows = [
        (sex, race, job, int(i < ones))
        for (sex, race, job), (people, ones) in HIRED.items()
        for i in range(people)
    ]
    rng = np.random.default_rng(11)
    frame = pl.DataFrame(rows, schema=["sex", "race", "job", "hired"], orient="row")
    score = np.round(rng.normal(50, 10, len(rows)) + 4 * frame["hired"].to_numpy(), 1)
    label = (rng.random(len(rows)) < 0.3 + 0.4 * frame["hired"].to_numpy()).astype(int)
    return frame.with_columns(score=score, good=label)


def _sums(**wanted: str) -> tuple[int, int]:
    """People and selected of a category, all unknown ones left out where they are asked about."""
    places = {"sex": 0, "race": 1, "job": 2}
    found = [
        both
        for key, both in HIRED.items()
        if all(key[places[name]] == value for name, value in wanted.items())
    ]
    return sum(n for n, _ in found), sum(k for _, k in found)


RACES = ("Black", "Pacific", "White")


def test_ll144_is_the_table_of_the_rule(table: pl.DataFrame) -> None:
    found = eq.pack("ll144", table, prediction="hired", unknown="declined", justification="few")
    categories: dict[str, list[dict[str, str]]] = {
        "sex": [{"sex": sex} for sex in ("Female", "Male")],
        "race": [{"race": race} for race in RACES],
        "sex and race": [
            {"sex": sex, "race": race} for sex, race in itertools.product(("Female", "Male"), RACES)
        ],
    }
    everybody = sum(n for n, _ in HIRED.values())
    for name, wanted in categories.items():
        counts = [_sums(**one) for one in wanted]
        rates = [Fraction(k, n) for n, k in counts]
        # those of less than 2 % are shown, but neither divided nor divided by
        kept = [50 * n >= everybody for n, _ in counts]
        top = max(rate for rate, keep in zip(rates, kept, strict=True) if keep)
        lines = found.table(name).lines
        assert len(lines) == len(wanted)
        for line, one, (n, k), rate, keep in zip(lines, wanted, counts, rates, kept, strict=True):
            assert line[:-2] == (*one.values(), n, k)
            assert line[-2] == pytest.approx(float(rate), abs=1e-15)
            assert line[-1] == (pytest.approx(float(rate / top), abs=1e-15) if keep else None)
        assert [line[0] for line in found.table(name, "uncertain").lines] == [
            line[0] for line, keep in zip(lines, kept, strict=True) if keep
        ]
    assert found.table("race").row("Pacific")["impact ratio"] is None
    unknown = found.facts["People of an unknown category, not in the calculations"]
    assert unknown == "10 (sex unknown: 6; race unknown: 4)"
    assert found.facts["People assessed"] == str(everybody)
    assert found.facts["Categories under 2 % left out of the ratios, because"] == "few"
    # without a justification nothing is left out, and that is said
    whole = eq.pack("ll144", table, prediction="hired", unknown="declined")
    assert None not in whole.table("race").column("impact ratio")
    assert any("1 category of race is less than 2 %" in said for said in whole.sentences())


def test_ll144_bounds_are_those_of_certify(table: pl.DataFrame) -> None:
    found = eq.pack("ll144", table, prediction="hired", unknown="declined")
    known = table.filter(pl.col("sex").is_not_null())
    claim = eq.ratio("selection_rate", across="sex", target="highest")
    wanted = eq.certify(known, claim, prediction="hired", rng=7)
    for row in wanted:
        line = found.table("sex", "uncertain").row(row.group)
        assert (line["impact ratio"], line["lower"], line["upper"]) == (
            row.disparity, row.lower, row.upper,
        )  # fmt: skip
        assert line["lower"] <= line["impact ratio"] <= line["upper"]
    assert found.findings[0].provenance.source == found.provenance.source


def test_ll144_scoring_rates_lie_above_the_median_of_everybody(table: pl.DataFrame) -> None:
    found = eq.pack("ll144", table, score="score", unknown="declined", data_kind="test")
    scores, races = table["score"].to_numpy(), table["race"].to_numpy()
    # the full sample: people of an unknown category count for the median
    median = float(np.median(scores))
    assert found.facts["Median score of the full sample"] == f"{median:.10g}"
    assert "why historical data were not used" in found.facts["Explanation of the data"]
    rates = {race: float((scores[races == race] > median).mean()) for race in RACES}
    for race in RACES:
        line = found.table("race").row(race)
        assert line["above the median"] == int((scores[races == race] > median).sum())
        assert line["scoring rate"] == pytest.approx(rates[race], abs=1e-15)
        assert line["impact ratio"] == pytest.approx(rates[race] / max(rates.values()), abs=1e-15)
        bounds = found.table("race", "uncertain").row(race)
        assert bounds["lower"] <= bounds["impact ratio"] <= bounds["upper"]
    assert eq.pack("ll144", table, prediction="hired", score="score", rate="scoring").table(
        "race"
    ).columns[-2:] == ("scoring rate", "impact ratio")


def _hypergeometric(n1: int, n0: int, ones: int) -> dict[int, Fraction]:
    every = comb(n1 + n0, ones)
    return {
        k: Fraction(comb(n1, k) * comb(n0, ones - k), every)
        for k in range(max(0, ones - n0), min(n1, ones) + 1)
    }


def _two_sided(law: dict[int, Fraction], seen: int) -> float:
    up = sum(chance for k, chance in law.items() if k >= seen)
    down = sum(chance for k, chance in law.items() if k <= seen)
    return float(min(2 * min(up, down), Fraction(1)))


def test_four_fifths_is_the_table_of_the_rule(table: pl.DataFrame) -> None:
    found = eq.pack("four-fifths", table, prediction="hired", unknown="declined")
    for name, groups in (("sex", ("Female", "Male")), ("race", RACES)):
        counts = {group: _sums(**{name: group}) for group in groups}
        rates = {group: Fraction(k, n) for group, (n, k) in counts.items()}
        top = max(groups, key=lambda group: rates[group])
        n0, k0 = counts[top]
        for group, (n, k) in counts.items():
            line = found.table(name).row(group)
            ratio = rates[group] / rates[top]
            assert (line["applicants"], line["selected"]) == (n, k)
            assert line["selection rate"] == pytest.approx(float(rates[group]), abs=1e-15)
            assert line["ratio to the highest"] == pytest.approx(float(ratio), abs=1e-15)
            assert line["below four fifths"] is (ratio < Fraction(4, 5))
            bounds = found.table(name, "uncertain").row(group)
            assert bounds["lower"] <= bounds["ratio"] <= bounds["upper"]
            if group == top:
                assert bounds["reading"] == "the highest rate"
                continue
            tests = found.table(f"{name}, tests", "uncertain").row(group)
            pooled = (k + k0) / (n + n0)
            wide = sqrt(pooled * (1 - pooled) * (1 / n + 1 / n0))
            assert tests["standard deviations"] == pytest.approx((k / n - k0 / n0) / wide)
            p = _two_sided(_hypergeometric(n, n0, k + k0), k)
            assert tests["exact p"] == pytest.approx(p, rel=1e-9)
            assert tests["p, highest chosen"] == pytest.approx(min(1, p * (len(groups) - 1)))
            assert tests["selections to change"] == _steps(n, k, rates[top])
            even = next(x for x in range(n) if Fraction(k + x, n) >= rates[top])
            assert tests["selections to even out"] == even
            said = "below four fifths" if ratio < Fraction(4, 5) else "smaller difference"
            assert bounds["reading"].startswith(said)
    assert found.table("sex").row("Female")["below four fifths"] is True


def _steps(n: int, k: int, top: Fraction) -> int:
    """Try one more, two more … selections, or fewer, until the answer changes."""
    below = Fraction(k, n) / top < Fraction(4, 5)
    step = 1 if below else -1
    moved = k
    while (Fraction(moved, n) / top < Fraction(4, 5)) is below:
        moved += step
    return moved - k


def test_exactly_four_fifths_is_not_below() -> None:
    rows = [("a", int(i < 40)) for i in range(100)] + [("b", int(i < 50)) for i in range(100)]
    frame = pl.DataFrame(rows, schema=["group", "hired"], orient="row")
    found = eq.pack("four-fifths", frame, prediction="hired", across="group")
    assert found.table("group").row("a")["below four fifths"] is False
    assert found.table("group, tests", "uncertain").row("a")["selections to change"] == -1


def test_four_fifths_within_requisitions(table: pl.DataFrame) -> None:
    found = eq.pack("four-fifths", table, prediction="hired", across="sex", given="job")
    line = found.table("sex given job", "uncertain").row("Female")
    jobs = ("clerk", "driver")
    own = [_sums(sex="Female", job=job) for job in jobs]
    top = [_sums(sex="Male", job=job) for job in jobs]
    law = {0: Fraction(1)}
    beyond = variance = 0.0
    weights, rates = [], []
    for (n1, k1), (n0, k0) in zip(own, top, strict=True):
        n, ones = n1 + n0, k1 + k0
        one = _hypergeometric(n1, n0, ones)
        law = {
            a: sum((law[b] * one[a - b] for b in law if a - b in one), Fraction(0))
            for a in {b + c for b in law for c in one}
        }
        beyond += k1 - n1 * ones / n
        variance += n1 * n0 * ones * (n - ones) / (n * n * (n - 1))
        weights.append(Fraction(n1 * n0, n))
        rates.append((Fraction(k1, n1), Fraction(k0, n0)))
    sides = [sum(w * r[i] for w, r in zip(weights, rates, strict=True)) for i in (0, 1)]
    assert line["ratio within"] == pytest.approx(float(sides[0] / sides[1]), rel=1e-12)
    every = [Fraction(sum(k for _, k in x), sum(n for n, _ in x)) for x in (own, top)]
    assert line["ratio before"] == pytest.approx(float(every[0] / every[1]), rel=1e-12)
    assert line["standard deviations"] == pytest.approx(beyond / sqrt(variance))
    assert line["exact p"] == pytest.approx(_two_sided(law, sum(k for _, k in own)), rel=1e-8)
    columns = np.array([[n1, n0, k1, k0] for (n1, k1), (n0, k0) in zip(own, top, strict=True)])
    assert line["p same"] == pytest.approx(sameness_by_enumeration(*columns.T), abs=0.1)
    assert line["people alone"] == 0
    numbered = table.with_columns(job=(pl.col("job") == "driver").cast(pl.Int64))
    again = eq.pack("four-fifths", numbered, prediction="hired", across="sex", given="job")
    assert again.table("sex given job", "uncertain").row("Female") == line


RATES = {"sensitivity": (1, 1), "specificity": (0, 0), "PPV": (1, 1), "NPV": (0, 0)}


def test_performance_is_recounted(table: pl.DataFrame) -> None:
    options = {"label": "good", "prediction": "hired", "score": "score", "across": "sex"}
    limits = {"sensitivity": 0.45, "npv": 0.9, "auc": 0.1}
    found = eq.pack("performance", table, **options, accept=limits)
    sex, label, said, score = (table[x].to_numpy() for x in ("sex", "good", "hired", "score"))
    for by, group in ((None, "everyone"), ("sex", "Female"), ("sex", "Male")):
        here = np.ones(len(sex), bool) if by is None else sex == group
        y, d, s = label[here], said[here], score[here]
        counts = found.table("counts").row(by, group)
        assert counts["people"] == here.sum()
        assert counts["false positives"] == int(((d == 1) & (y == 0)).sum())
        assert counts["true negatives"] == int(((d == 0) & (y == 0)).sum())
        parts = {
            "sensitivity": (y[y == 1] == d[y == 1]),
            "specificity": (y[y == 0] == d[y == 0]),
            "PPV": (y[d == 1] == 1),
            "NPV": (y[d == 0] == 0),
        }
        for measure, hits in parts.items():
            k, n = int(hits.sum()), len(hits)
            assert found.table("performance").row(by, group)[measure] == pytest.approx(k / n)
            line = found.table("performance", "uncertain").row(measure, by, group)
            # Clopper and Pearson, by the beta distribution
            ends = stats.beta.ppf(0.025, k, n - k + 1), stats.beta.ppf(0.975, k + 1, n - k)
            assert (line["people"], line["value"]) == (n, pytest.approx(k / n))
            assert (line["lower"], line["upper"]) == pytest.approx(ends, rel=1e-6)
        area, low, high = _area(s[y == 1], s[y == 0])
        line = found.table("performance", "uncertain").row("AUC", by, group)
        assert (line["value"], line["lower"], line["upper"]) == pytest.approx((area, low, high))
        assert line["shown to be"] == "reached"
    told = found.table("performance", "uncertain").row("NPV", None, "everyone")
    assert (told["limit"], told["shown to be"]) == (0.9, "not reached")
    assert found.table("performance", "uncertain").row("PPV", None, "everyone")["limit"] is None
    # shown to be reached only if an exact one-sided bound is above the limit
    k, n = int(said[label == 1].sum()), int((label == 1).sum())
    bound = stats.beta.ppf(0.05, k, n - k + 1)
    told = found.table("performance", "uncertain").row("sensitivity", None, "everyone")
    assert (told["shown to be"] == "reached") is bool(bound >= 0.45)


def _area(ones: np.ndarray, zeros: np.ndarray) -> tuple[float, float, float]:
    """The AUC pair by pair, with DeLong's variance on the logit scale."""
    wins = np.array([[float(a > b) + 0.5 * (a == b) for b in zeros] for a in ones])
    area = float(wins.mean())
    spread = wins.mean(1).var(ddof=1) / len(ones) + wins.mean(0).var(ddof=1) / len(zeros)
    reach = stats.norm.ppf(0.975) * sqrt(spread) / (area * (1 - area))
    middle = log(area / (1 - area))
    return area, 1 / (1 + exp(reach - middle)), 1 / (1 + exp(-reach - middle))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ll144", {"prediction": "hired", "sex": "gender"}, "needs a column of sex"),
        ("ll144", {"prediction": "hired", "race": "colour"}, "needs a column of race"),
        ("ll144", {}, r"who was selected \(prediction=…\), or the scores \(score=…\)"),
        ("ll144", {"prediction": "hired", "rate": "scoring"}, r"the scores \(score=…\)"),
        ("ll144", {"score": "nothing"}, "holds no number"),
        ("ll144", {"prediction": "hired", "sex": "one"}, "one that is known: x. It needs at least"),
        ("ll144", {"prediction": "hired", "data_kind": "real"}, "'historical', 'test'"),
        ("ll144", {"prediction": "hired", "accept": "x"}, "'accept' does not exist"),
        ("four-fifths", {"across": "sex"}, "needs a column with who was selected"),
        ("four-fifths", {"prediction": "hired", "across": "one"}, "needs at least two"),
        ("four-fifths", {"prediction": "hired", "across": "colour"}, "no attribute 'colour'"),
        ("four-fifths", {"prediction": "hired", "across": "sex", "given": "shop"}, "'shop'"),
        ("four-fifths", {"prediction": "hired", "across": 3}, "separated by commas"),
        ("performance", {"prediction": "hired"}, "not named: label"),
        ("performance", {"prediction": "hired", "label": "good"}, "at least one attribute"),
        (
            "performance",
            {"prediction": "hired", "label": "good", "across": "sex", "accept": "auc=0.7"},
            "needs the scores",
        ),
        (
            "performance",
            {"prediction": "hired", "label": "good", "across": "sex", "accept": "npv=high"},
            "lower limits",
        ),
        ("performance", {"prediction": "hired", "label": "good", "across": "one"}, "at least two"),
        ("four-fifth", {}, "Did you mean 'four-fifths'"),
        ("four-fifths", {"prediction": "hired", "across": "sex", "weight": "score"}, "no weight"),
    ],
)
def test_what_a_rule_needs_is_said(
    table: pl.DataFrame, name: str, options: dict[str, object], message: str
) -> None:
    wide = table.with_columns(one=pl.lit("x"), nothing=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(eq.EquipoiseError, match=message):
        eq.pack(name, wide, **options)


def test_nobody_selected_has_no_ratio(table: pl.DataFrame) -> None:
    none = table.with_columns(hired=pl.lit(0))
    assert set(eq.pack("ll144", none, prediction="hired").table("sex").column("impact ratio")) == {
        None
    }
    found = eq.pack("four-fifths", none, prediction="hired", across="sex")
    assert found.table("sex").column("ratio to the highest") == [None, None]
    assert "nobody was selected" in found.sentences()[0]


def test_results_are_written_and_read_back(table: pl.DataFrame, tmp_path: Path) -> None:
    odd = table.with_columns(sex=pl.col("sex").replace({"Male": "<b>|Male*"}))
    found = eq.pack("four-fifths", odd, prediction="hired", across="sex", given="job")
    again = PackResult.from_dict(json.loads(found.to_json()))
    assert again == found
    assert str(again) == str(found)
    text = {kind: found.save(tmp_path / f"p.{kind}").read_text() for kind in ("md", "html", "csv")}
    assert "<b>" not in text["html"]
    assert "&lt;b&gt;" in text["html"]
    assert r"\<b\>\|Male\*" in text["md"]
    # the table of the rule comes first, everywhere
    for whole in (text["md"], text["html"], str(found)):
        assert 0 < whole.index("ratio to the highest") < whole.index("exact p")
    lines = list(csv.DictReader(io.StringIO(text["csv"])))
    assert (lines[0]["table"], lines[0]["part"]) == ("sex", "statutory")
    assert float(lines[0]["selection rate"]) == found.table("sex").lines[0][3]
    assert found._repr_html_().startswith("<div>")
    assert eq.report(*found.findings).html
    with pytest.raises(eq.EquipoiseError, match=r"'.md'"):
        found.save(tmp_path / "p.docx")
    with pytest.raises(eq.EquipoiseError, match="not a pack"):
        PackResult.from_dict({"kind": "bounds"})
    with pytest.raises(eq.EquipoiseError, match="begins with"):
        found.table("sex").row("nobody")


def test_every_pack_is_dated_and_judges_nothing(table: pl.DataFrame) -> None:
    roles = {"prediction": "hired", "label": "good", "across": "sex"}
    for name, pack in definitions().items():
        assert isinstance(pack, Definition)
        assert pack.dated
        options = {k: v for k, v in roles.items() if k in pack.options or k != "across"}
        said = str(eq.pack(name, table, **options)).lower()
        assert "rules change" in said
        assert "compli" not in said


def test_a_pack_is_one_file(table: pl.DataFrame) -> None:
    first = definitions()["four-fifths"]

    def fill(trail: eq.Trail, *, across: str) -> Filled:
        return first.fill(trail, across=across)

    mine = dataclasses.replace(first, name="mine", fill=fill)
    assert mine.options == ("across",)
    assert len(mine.fill(eq.read(table, prediction="hired"), across="sex").tables) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["ll144", "--prediction", "hired", "--unknown", "declined", "--distributed", "2026-01-05"],
        ["ll144", "--score", "score"],
        ["four-fifths", "--prediction", "hired", "--across", "sex", "--given", "job"],
        ["performance", "--prediction", "hired", "--label", "good", "--across", "sex"],
    ],
)
def test_the_command_prints_the_rule_first(
    table: pl.DataFrame,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    table.write_csv(tmp_path / "hiring.csv")
    name, *rest = arguments
    out = str(tmp_path / "pack.html")
    assert execute(["pack", name, str(tmp_path / "hiring.csv"), *rest, "--out", out]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    first = shown.index("By sex" if name != "performance" else "Counts")
    assert first < shown.index("How sure one can be") < shown.index("Rules change")
    assert Path(out).read_text().startswith("<!doctype html>")


def test_the_command_prints_json_and_refuses(
    table: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "hiring.csv")
    table.write_csv(data)
    assert execute(["pack", "ll144", data, "--prediction", "hired", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pack"] == "ll144"
    assert execute(["pack", "ll144", data, "--score", "score", "--sex", "gender"]) == 3
    # in the words of the command line
    assert "Pass --sex …" in " ".join(capsys.readouterr().err.split())


def test_levels_that_say_nothing_alone_are_found_again() -> None:
    # findings call such a level "race: Other"; a table of a rule calls it what the column does
    many = pl.DataFrame(
        {
            "race": ["Other", "White", "1"] * 60,
            "sex": ["yes", "no"] * 90,
            "job": ["a"] * 90 + ["b"] * 90,
            "hired": [1, 0, 1, 1, 0] * 36,
        }
    )
    made = eq.pack("four-fifths", many, prediction="hired", across=["race"], given="job")
    for table in made.tables:
        assert {str(line[0]) for line in table.lines} <= {"Other", "White", "1"}
    ruled = eq.pack("ll144", many, prediction="hired")
    for table in ruled.tables:
        assert {line[0] for line in table.lines} in ({"yes", "no"}, {"Other", "White", "1"})


def test_where_nobody_is_selected_nothing_is_read_into_it(table: pl.DataFrame) -> None:
    none = table.with_columns(hired=pl.lit(0))
    statutory, uncertain, *_ = eq.pack("four-fifths", none, across="sex", prediction="hired").tables
    assert [line[-1] for line in statutory.lines] == [None, None]
    assert {line[-1] for line in uncertain.lines} == {"nobody was selected"}
    endless = table.with_columns(score=pl.when(pl.col("hired") == 1).then(np.inf).otherwise(0.5))
    with pytest.raises(eq.TrailError, match="infinite numbers"):
        eq.pack("ll144", endless, score="score")
