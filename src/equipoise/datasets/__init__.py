"""Bundled examples: counts only, no personal records.

>>> import equipoise as eq
>>> eq.datasets.compas().source
'the bundled COMPAS counts'
"""

from importlib.resources import files
from pathlib import Path

import narwhals as nw
import numpy as np

from equipoise._files import write_atomically
from equipoise._validate import known_keywords
from equipoise.errors import OptionError
from equipoise.trail import Roles, Trail
from equipoise.trail.engine import fetch, from_columns
from equipoise.trail.sources import open_source
from equipoise.trail.trail import make_trail

__all__ = [
    "adult_predictions",
    "berkeley",
    "callbacks",
    "compas",
    "compas_by_month",
    "mortgages",
    "write_decisions",
]


@known_keywords
def compas(*, threshold: int = 5, everyone: bool = False) -> Trail:
    """Two-year recidivism counts from Broward County, with the COMPAS decile score.

    Each row of the table is a number of people (``n``) who share sex, race, age, prior offences,
    charge, decile score and outcome. The prediction ``high_risk`` is a decile score of at least
    ``threshold``; the score ``risk`` is the share of people with the same decile who reoffended, so
    that it is calibrated overall. By default only people screened within 30 days of arrest are
    included, as in most published analyses (6,172); ``everyone=True`` keeps all 7,214.

    >>> compas().roles.prediction
    'high_risk'
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int) or not 1 <= threshold <= 10:
        raise OptionError(f"threshold must be a decile from 1 to 10; got {threshold!r}.")
    frame = open_source(str(files(__name__) / "compas.csv")).frame
    frame = frame.with_columns(high_risk=(nw.col("decile_score") >= threshold).cast(nw.Int64))
    if not everyone:
        frame = frame.filter(nw.col("screened") == 1)
    # the observed rate of each decile is a number between 0 and 1, which the decile itself is not
    again, people = nw.col("reoffended") * nw.col("n"), nw.col("n")
    risk = again.sum().over("decile_score") / people.sum().over("decile_score")
    frame = frame.with_columns(risk=risk)
    return make_trail(
        frame,
        roles=Roles(label="reoffended", prediction="high_risk", score="risk", count="n"),
        attributes=None,
        positive=None,
        source="the bundled COMPAS counts",
    )


@known_keywords
def adult_predictions() -> Trail:
    """Income predictions for the 1994 census sample: counts by race, sex and age band.

    The prediction is a score of at least 0.5 from a gradient-boosted model; the label is an income
    above 50 000 dollars.

    >>> adult_predictions().attributes
    ('race', 'sex', 'age_band')
    """
    roles = Roles(label="high_income", prediction="high_income_predicted", count="n")
    return _bundled("adult_predictions", roles, "the bundled Adult counts")


@known_keywords
def compas_by_month() -> Trail:
    """The COMPAS counts of people screened in each month of 2013 and 2014, to be monitored.

    Counts by month, race, sex and age of the decision (a decile score of at least 5) and of what
    happened in the two years after it.

    >>> compas_by_month().attributes
    ('month', 'race', 'sex', 'age')
    """
    roles = Roles(label="reoffended", prediction="high_risk", count="n")
    return _bundled("compas_by_month", roles, "the bundled COMPAS counts by month")


@known_keywords
def berkeley() -> Trail:
    """Admissions to the six largest departments of the University of California, Berkeley, in 1973.

    24 counts by department, sex and decision, from Bickel, Hammel and O'Connell (1975): women were
    admitted less often overall, and not in most departments.

    >>> berkeley().attributes
    ('department', 'sex')
    """
    roles = Roles(prediction="admitted", count="n")
    return _bundled("berkeley", roles, "the bundled Berkeley counts")


@known_keywords
def mortgages() -> Trail:
    """Mortgage applications in Boston in 1990: counts by race, history and decision.

    2,380 applications from the study of the Federal Reserve Bank of Boston (Munnell and others,
    1996), as counts. The prediction is that the application was approved; ``payments`` is the
    monthly payment on all debts as a share of income, ``bad_credit`` a public record of bad credit.

    >>> mortgages().attributes
    ('race', 'marital', 'payments', 'loan', 'bad_credit')
    """
    roles = Roles(prediction="approved", count="n")
    return _bundled("mortgages", roles, "the bundled Boston mortgage counts")


@known_keywords
def callbacks() -> Trail:
    """Letters of application that differ by the name alone: who was called back.

    4,870 letters answered 1,323 advertisements in Boston and Chicago (Bertrand and Mullainathan,
    2004), half of them under names common among Black people, half under names common among White
    people. The table holds counts of advertisements; from them every advertisement is a cluster,
    and its letters are numbered pairs of one Black and one White name.

    >>> callbacks().roles.pair, callbacks().attributes
    ('pair', ('race', 'sex', 'city'))
    """
    table = fetch(open_source(str(files(__name__) / "callbacks.csv")).frame, "callbacks")
    columns: dict[str, list[object]] = {name: [] for name in _LETTER}
    ads = 0
    for city, first, second, n in zip(*(table[x].tolist() for x in _ADS), strict=True):
        for _ in range(int(n)):
            ads += 1
            for pair in (first, second):
                for race, (sex, called) in zip(("White", "Black"), _letters(pair), strict=False):
                    number = len(columns["ad"]) // 2
                    letter = (ads, number, race, sex, city, called)
                    for name, value in zip(_LETTER, letter, strict=True):
                        columns[name].append(value)
    return make_trail(
        from_columns({name: np.array(values) for name, values in columns.items()}, "letters"),
        roles=Roles(prediction="called_back", cluster="ad", pair="pair"),
        attributes=("race", "sex", "city"),
        positive=None,
        source="the bundled counts of letters",
    )


_ADS = ("city", "first", "second", "n")
_LETTER = ("ad", "pair", "race", "sex", "city", "called_back")


def _letters(pair: str | None) -> list[tuple[str, int]]:
    """Sex and callback of both letters of a pair, such as f0m1; none without a pair."""
    each = [] if not pair else [pair[:2], pair[2:]]
    return [({"f": "Female", "m": "Male"}[one[0]], int(one[1])) for one in each]


def write_decisions(path: str | Path) -> Path:
    """Write the made-up table of the documentation: 400 people, an outcome, and two models.

    >>> import tempfile
    >>> made = write_decisions(Path(tempfile.mkdtemp()) / "decisions.csv")
    >>> made.read_text().splitlines()[0]
    'race,sex,age,outcome,old_says,new_says'
    """
    rng, n = np.random.default_rng(1), 400
    outcome = rng.integers(0, 2, n)
    old, new = (np.where(rng.random(n) < 0.8, outcome, 1 - outcome) for _ in range(2))
    race, sex = rng.choice(["Green", "Blue", "Red"], n), rng.choice(["Female", "Male"], n)
    columns = (race, sex, rng.integers(18, 80, n), outcome, old, new)
    lines = ["race,sex,age,outcome,old_says,new_says"]
    lines += [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    return write_atomically(path, "\n".join(lines) + "\n")


def _bundled(name: str, roles: Roles, source: str) -> Trail:
    """A table of counts that stands beside this module."""
    frame = open_source(str(files(__name__) / f"{name}.csv")).frame
    return make_trail(frame, roles=roles, attributes=None, positive=None, source=source)
