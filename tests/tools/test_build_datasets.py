from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import equipoise as eq
from tools.build_datasets import ADULT, BUNDLED, COMPAS, MORTGAGES, age_band, build, main

Row = dict[str, str]

COMPAS_HEADER = (
    "id,sex,age,age_cat,race,priors_count,days_b_screening_arrest,c_charge_degree,"
    "is_recid,decile_score,score_text,two_year_recid"
)
COMPAS_RAW = """\
1,Male,30,25 - 45,Caucasian,0,-1.0,F,0,10,High,0
2,Male,31,25 - 45,Caucasian,0,30.0,F,0,10,High,0
3,Male,32,25 - 45,Caucasian,0,31.0,F,0,10,High,0
4,Male,33,25 - 45,Caucasian,0,,F,0,10,High,0
5,Male,34,25 - 45,Caucasian,0,-30.0,F,0,2,Low,0
6,Male,35,25 - 45,Caucasian,0,0.0,F,-1,2,Low,0
7,Male,36,25 - 45,Caucasian,0,0.0,F,0,2,N/A,0
8,Female,20,Less than 25,Other,1,0.0,M,1,2,Low,1
9,Female,20,Less than 25,Other,3,0.0,M,1,2,Low,1
10,Female,20,Less than 25,Other,4,0.0,M,1,2,Low,1
11,Female,20,Less than 25,Other,4,0.0,O,1,2,Low,1
"""
COMPAS_COUNTS = """\
sex,race,age,priors,charge,decile_score,screened,reoffended,n
Female,Other,Less than 25,1 to 3,Misdemeanor,2,1,1,2
Female,Other,Less than 25,More than 3,Misdemeanor,2,1,1,1
Female,Other,Less than 25,More than 3,Ordinary traffic,2,0,1,1
Male,Caucasian,25 - 45,0,Felony,2,0,0,2
Male,Caucasian,25 - 45,0,Felony,2,1,0,1
Male,Caucasian,25 - 45,0,Felony,10,0,0,2
Male,Caucasian,25 - 45,0,Felony,10,1,0,2
"""
ADULT_RAW = """\
age,race,sex,score,income_gt_50K
25,White,Male,0.5,1
16,White,Male,0.9,1
26,White,Male,0.4999,1
17,Black,Female,0.1,0
"""
ADULT_COUNTS = """\
race,sex,age_band,high_income_predicted,high_income,n
Black,Female,16 to 25,0,0,1
White,Male,16 to 25,1,1,2
White,Male,26 to 35,0,1,1
"""

MORTGAGES_RAW = """\
deny,pirat,lvrat,phist,afam,single
no,0.27999,0.8,no,no,no
no,0.28,0.79,no,no,no
yes,0.36,0.95,yes,yes,yes
"""
MORTGAGES_COUNTS = """\
race,marital,payments,loan,bad_credit,approved,n
Black,Single,36 % and over,95 % and over,Public record,0,1
White,Married,28 to 36 %,under 80 %,No record,1,1
White,Married,under 28 %,80 to 95 %,No record,1,1
"""


LETTERS_RAW = """\
job_ad_id,job_city,race,gender,received_callback
7,Boston,white,f,1
7,Boston,white,f,0
7,Boston,black,f,0
7,Boston,black,m,0
9,Chicago,black,m,0
9,Chicago,white,m,0
"""
LETTERS_COUNTS = """\
city,first,second,n
Boston,f1f0,f0m0,1
Chicago,m0m0,,1
"""


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / COMPAS.raw).write_text(f"{COMPAS_HEADER}\n{COMPAS_RAW}", encoding="utf-8")
    (tmp_path / ADULT.raw).write_text(ADULT_RAW, encoding="utf-8")
    (tmp_path / MORTGAGES.raw).write_text(MORTGAGES_RAW, encoding="utf-8")
    (tmp_path / "resume-callbacks.csv").write_text(LETTERS_RAW, encoding="utf-8")
    return tmp_path


def test_counts_of_a_small_raw_table(raw: Path, tmp_path: Path) -> None:
    main([str(raw), str(tmp_path)])
    assert (tmp_path / COMPAS.counts).read_bytes() == COMPAS_COUNTS.encode()
    assert (tmp_path / ADULT.counts).read_bytes() == ADULT_COUNTS.encode()
    assert (tmp_path / MORTGAGES.counts).read_bytes() == MORTGAGES_COUNTS.encode()
    assert (tmp_path / "callbacks.csv").read_bytes() == LETTERS_COUNTS.encode()


def test_bundled_mortgages_are_the_applications_of_the_study() -> None:
    table = eq.describe(eq.datasets.mortgages(), metrics=["selection_rate"], across="race")
    rows = {row.group: (row.n, row.value) for row in table["selection_rate"]}
    # 339 Black applicants, of whom 96 were denied; 2,041 others, of whom 189 were
    assert rows == {"Black": (339, 243 / 339), "White": (2041, 1852 / 2041)}


def test_row_order_does_not_matter(raw: Path, tmp_path: Path) -> None:
    backwards = "\n".join(reversed(COMPAS_RAW.splitlines()))
    (raw / COMPAS.raw).write_text(f"{COMPAS_HEADER}\n{backwards}\n", encoding="utf-8")
    assert build(COMPAS, raw, tmp_path) == 11
    assert (tmp_path / COMPAS.counts).read_text(encoding="utf-8") == COMPAS_COUNTS


@pytest.mark.parametrize(
    ("age", "band"), [(16, "16 to 25"), (25, "16 to 25"), (26, "26 to 35"), (90, "86 to 95")]
)
def test_age_bands_span_ten_years(age: int, band: str) -> None:
    assert age_band(age) == band


def people(name: str, chosen: Callable[[Row], bool] = lambda row: True) -> int:
    with (BUNDLED / name).open(encoding="utf-8", newline="") as stream:
        return sum(int(row["n"]) for row in csv.DictReader(stream) if chosen(row))


def flagged(row: Row) -> bool:
    return row["screened"] == "1" and int(row["decile_score"]) >= 5


def test_bundled_compas_counts_are_the_published_ones() -> None:
    assert people("compas.csv") == 7214
    assert people("compas.csv", lambda row: row["screened"] == "1") == 6172
    unharmed = people("compas.csv", lambda r: r["screened"] == "1" and r["reoffended"] == "0")
    assert unharmed == 3363
    assert people("compas.csv", flagged) == 2751


@pytest.mark.parametrize(("race", "count"), [("African-American", 1829), ("Caucasian", 696)])
def test_bundled_compas_counts_by_race(race: str, count: int) -> None:
    assert people("compas.csv", lambda row: flagged(row) and row["race"] == race) == count


def test_bundled_adult_counts_are_the_raw_ones() -> None:
    assert people("adult_predictions.csv") == 14653
    assert people("adult_predictions.csv", lambda row: row["high_income"] == "1") == 3445
    assert people("adult_predictions.csv", lambda row: row["race"] == "Amer-Indian-Eskimo") == 125
    assert people("adult_predictions.csv", lambda row: row["age_band"] == "86 to 95") == 21


@pytest.mark.parametrize("name", ["compas.csv", "adult_predictions.csv", "callbacks.csv"])
def test_bundled_files_have_distinct_cells_and_unix_line_ends(name: str) -> None:
    content = (BUNDLED / name).read_bytes()
    cells = [line.rsplit(b",", 1)[0] for line in content.splitlines()]
    assert b"\r" not in content
    assert content.endswith(b"\n")
    assert len(set(cells)) == len(cells)
