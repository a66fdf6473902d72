"""Build the bundled count tables from the raw tables they summarise.

    python tools/build_datasets.py RAW_FOLDER [OUT_FOLDER]

The raw folder holds `compas-two-years.csv` (ProPublica's two-year table),
`adult_income_with_predictions.csv` (a test split of Adult with a model's scores),
`boston-mortgages.csv` (the applications of the Boston Fed study) and `resume-callbacks.csv` (the
letters of Bertrand and Mullainathan's experiment). Only counts are written: no names, no dates, no
exact ages, no exact sums.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Row = dict[str, str]
Key = tuple[str, ...]

BUNDLED = Path(__file__).resolve().parent.parent / "src" / "equipoise" / "datasets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """How one raw table becomes one table of counts."""

    raw: str
    counts: str
    columns: Key
    key: Callable[[Row], Key]


def prior_offences(row: Row) -> str:
    """Band the number of prior offences."""
    priors = int(row["priors_count"])
    if priors == 0:
        return "0"
    return "1 to 3" if priors <= 3 else "More than 3"


def screened(row: Row) -> str:
    """Say whether the row passes ProPublica's whole filter.

    The score belongs to the arrest (screening within 30 days of it), the outcome and the
    score are known, and the charge is more than an ordinary traffic offence.
    """
    days = row["days_b_screening_arrest"]
    near = days != "" and abs(float(days)) <= 30
    known = row["is_recid"] != "-1" and row["score_text"] != "N/A"
    return str(int(near and known and row["c_charge_degree"] != "O"))


def compas_key(row: Row) -> Key:
    """Return the count cell of one COMPAS row."""
    # Ordinary traffic offences stay out of the filter but not out of the table.
    charge = {"F": "Felony", "M": "Misdemeanor", "O": "Ordinary traffic"}[row["c_charge_degree"]]
    decile, reoffended = str(int(row["decile_score"])), str(int(row["two_year_recid"]))
    who = (row["sex"], row["race"], row["age_cat"], prior_offences(row), charge)
    return (*who, decile, screened(row), reoffended)


def age_band(age: int) -> str:
    """Band an age into ten years ending in five: 16 to 25, 26 to 35, and so on."""
    # Published analyses of these predictions by age use (15, 25], (25, 35], ..., (85, 95].
    first = (age - 6) // 10 * 10 + 6
    return f"{first} to {first + 9}"


def adult_key(row: Row) -> Key:
    """Return the count cell of one Adult row; the prediction is a score of at least 0.5."""
    predicted = str(int(float(row["score"]) >= 0.5))
    income = str(int(row["income_gt_50K"]))
    return row["race"], row["sex"], age_band(int(row["age"])), predicted, income


COMPAS = Table(
    raw="compas-two-years.csv",
    counts="compas.csv",
    columns=(
        *("sex", "race", "age", "priors", "charge"),
        *("decile_score", "screened", "reoffended"),
    ),
    key=compas_key,
)
ADULT = Table(
    raw="adult_income_with_predictions.csv",
    counts="adult_predictions.csv",
    columns=("race", "sex", "age_band", "high_income_predicted", "high_income"),
    key=adult_key,
)


def mortgage_key(row: Row) -> Key:
    """Return the count cell of one mortgage application."""
    race = {"yes": "Black", "no": "White"}[row["afam"]]
    marital = {"yes": "Single", "no": "Married"}[row["single"]]
    ratio, loan = float(row["pirat"]), float(row["lvrat"])
    # lenders of the time looked closer from 36 % of income and from 80 % of the value on
    payments = "under 28 %" if ratio < 0.28 else "28 to 36 %" if ratio < 0.36 else "36 % and over"
    lent = "under 80 %" if loan < 0.80 else "80 to 95 %" if loan < 0.95 else "95 % and over"
    bad = {"yes": "Public record", "no": "No record"}[row["phist"]]
    return race, marital, payments, lent, bad, {"yes": "0", "no": "1"}[row["deny"]]


MORTGAGES = Table(
    raw="boston-mortgages.csv",
    counts="mortgages.csv",
    columns=("race", "marital", "payments", "loan", "bad_credit", "approved"),
    key=mortgage_key,
)


def ad_patterns(rows: Iterable[Row]) -> Counter[Key]:
    """Count advertisements by city and by what became of their pairs of letters.

    A pair is the first (or second) letter under a White name and under a Black name: the sex of the
    name and whether it was called back, White first.
    """
    ads: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        ad = ads.setdefault(row["job_ad_id"], {"city": [row["job_city"]], "white": [], "black": []})
        ad[row["race"]].append(row["gender"] + row["received_callback"])
    found: Counter[Key] = Counter()
    for ad in ads.values():
        pairs = [white + black for white, black in zip(ad["white"], ad["black"], strict=True)]
        found[(ad["city"][0], *pairs, *[""] * (2 - len(pairs)))] += 1
    return found


def read_rows(path: Path) -> Iterable[Row]:
    """Yield the rows of a raw table as column -> text."""
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def sort_key(cell: Key) -> tuple[tuple[int, str], ...]:
    """Sort numbers written as text by size (decile 2 before 10), words by alphabet."""
    return tuple((int(value) if value.isdigit() else 0, value) for value in cell)


def build(table: Table, raw: Path, out: Path) -> int:
    """Write one table of counts and return the number of people in it."""
    counts = Counter(table.key(row) for row in read_rows(raw / table.raw))
    return write_counts(table.columns, counts, out / table.counts)


def write_counts(columns: Key, counts: Counter[Key], path: Path) -> int:
    """Write counts in order, and return how many they are together."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((*columns, "n"))
        writer.writerows((*cell, counts[cell]) for cell in sorted(counts, key=sort_key))
    return counts.total()


def main(arguments: list[str] | None = None) -> None:
    """Build the tables and say how many people each one counts."""
    parser = argparse.ArgumentParser(description="Build the bundled count tables.")
    parser.add_argument("raw", type=Path, help="folder with the raw tables")
    parser.add_argument("out", type=Path, nargs="?", default=BUNDLED, help="folder to write to")
    options = parser.parse_args(arguments)
    for table in (COMPAS, ADULT, MORTGAGES):
        print(f"{table.counts}: {build(table, options.raw, options.out)} people")
    ads = ad_patterns(read_rows(options.raw / "resume-callbacks.csv"))
    total = write_counts(("city", "first", "second"), ads, options.out / "callbacks.csv")
    print(f"callbacks.csv: {total} advertisements")


if __name__ == "__main__":
    main()
