"""Measures that are no means: functions of a group's totals, as metrics of claims.

A measure says by what rows are cut besides the groups, and what is summed; its mathematics is in
`equipoise.methods.measures`.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from equipoise._codec import kind
from equipoise._validate import known_keywords, known_name, real
from equipoise.claims.formula import parse, with_condition
from equipoise.claims.metric import BOTH, METRICS, Harm, MakesMeasure, Metric, MetricLike, as_metric
from equipoise.errors import ClaimError

MeasureName = Literal[
    "auc",
    "gini",
    "f1",
    "lift",
    "balanced_accuracy",
    "matthews",
    "expected_calibration_error",
    "actual_expected",
    "macro_recall",
    "macro_precision",
    "macro_f1",
    "quantile",
    "standardised",
]
MEASURE_NAMES: tuple[str, ...] = get_args(MeasureName)
_OF_TABLE = ("f1", "lift", "balanced_accuracy", "matthews")
_TENTHS = tuple(i / 10 for i in range(11))


@kind("measure")
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(MakesMeasure):
    """What is measured of a group as a whole, as it is written in a plan.

    Made by `equipoise.quantile`, `equipoise.calibration_error` and the like, which give the metric
    itself; ready-made values such as `equipoise.auc` have one too.
    """

    name: MeasureName
    """Which measure."""
    of: str | None = None
    """Formula of the number whose quantile is asked, or that is actual or standardised."""
    q: float | None = None
    """Which quantile."""
    expected: str | None = None
    """Formula of what was expected."""
    edges: tuple[float, ...] = ()
    """Ends of the ranges of the score, for a calibration error."""

    def __post_init__(self) -> None:
        known_name("Measure", self.name, MEASURE_NAMES, ClaimError)
        if self.name in ("quantile", "standardised", "actual_expected"):
            object.__setattr__(self, "of", _as_formula(self.of))
        if self.name == "quantile":
            share = real("q", 0.5 if self.q is None else self.q)
            if not 0 < share < 1:
                raise ClaimError(f"q must lie between 0 and 1; got {share!r}.")
            object.__setattr__(self, "q", share)
        if self.name == "actual_expected":
            object.__setattr__(self, "expected", _as_formula(self.expected))
        if self.name == "expected_calibration_error":
            ends = tuple(real("edges", end) for end in self.edges or _TENTHS)
            if len(ends) < 2 or any(b <= a for a, b in itertools.pairwise(ends)):
                raise ClaimError(f"edges must be at least 2 increasing numbers; got {list(ends)}.")
            if ends[0] > 0 or ends[-1] < 1:
                raise ClaimError(
                    f"edges must reach from 0 to 1, where probabilities lie; got {list(ends)}."
                )
            object.__setattr__(self, "edges", ends)

    @property
    def graded(self) -> str | None:
        """Formula of the number whose order counts, if one does."""
        if self.name in ("auc", "gini"):
            return "role('score')"
        return self.of if self.name == "quantile" else None

    @property
    def classes(self) -> bool:
        """Whether label and prediction may be of several classes."""
        return self.name.startswith("macro_")

    @property
    def called(self) -> str:
        """What the metric is called."""
        if self.name == "quantile":
            which = "median" if self.q == 0.5 else f"{self.q:g} quantile"
            return f"{which} of {_plain_name(str(self.of))}"
        if self.name == "standardised":
            return f"standardised {_plain_name(str(self.of))}"
        usual = self.name != "actual_expected" or (self.of, self.expected) == ("label", "score")
        usual = usual and self.edges in ((), _TENTHS)
        if usual:
            return self.name
        if self.name == "actual_expected":
            return f"{_plain_name(str(self.of))} over {_plain_name(str(self.expected))}"
        return f"{self.name} in {len(self.edges) - 1} ranges"

    def formulas(self) -> tuple[str, ...]:
        """What is summed on each row, the metric's own value first."""
        if self.name in _OF_TABLE:
            return "label * prediction", "label + 0 * prediction", "prediction + 0 * label"
        if self.name in ("auc", "gini"):
            return ("label + 0 * score",)
        if self.name == "expected_calibration_error":
            return ("label - score",)
        if self.classes:
            return ("label == prediction",)
        if self.name == "quantile":
            return (str(self.of),)
        if self.name == "standardised":
            return str(self.of), f"({self.of}) ** 2", f"({self.of}) ** 3"
        a, e = f"({self.of})", f"({self.expected})"
        return f"{a} + 0 * {e}", f"{e} + 0 * {a}", f"{a} + {e}", f"{a} - {e}"

    def metric(self) -> Metric:
        """The metric itself."""
        return self.parts()[0]

    def parts(self) -> tuple[Metric, ...]:
        """The metric, and what else is summed beside it."""
        first, *others = self.formulas()
        two = self.name in (*_OF_TABLE, "auc", "gini", "expected_calibration_error")
        roles = ("label", "prediction") if self.name in _OF_TABLE else ("label",)
        low, high = _RANGES.get(self.name, (None, None))
        made = Metric(
            name=self.called,
            value=first,
            binary=roles if two else (),
            unit=("score",) if self.name == "expected_calibration_error" else (),
            by_role=self.of is None,
            low=low,
            high=high,
            harm=_HARMS.get(self.name, "both"),
            measure=self,
        )
        beside = (
            dataclasses.replace(
                made, name=f"{made.name} ({i})", value=text, low=None, high=None, measure=None
            )
            for i, text in enumerate(others)
        )
        return (made, *beside)


_RANGES: dict[str, tuple[float | None, float | None]] = {
    "auc": (0.0, 1.0),
    "gini": (-1.0, 1.0),
    "f1": (0.0, 1.0),
    "lift": (0.0, None),
    "balanced_accuracy": (0.0, 1.0),
    "matthews": (-1.0, 1.0),
    "expected_calibration_error": (0.0, 1.0),
    "macro_recall": (0.0, 1.0),
    "macro_precision": (0.0, 1.0),
    "macro_f1": (0.0, 1.0),
}
_HARMS: dict[str, Harm] = dict.fromkeys(
    ["auc", "gini", "f1", "balanced_accuracy", "matthews", "macro_recall", "macro_precision",
     "macro_f1", "lift"],
    "low",
)  # fmt: skip
_HARMS["expected_calibration_error"] = "high"


def _as_formula(text: object) -> str:
    """A formula as it is, or the name of a column that is none."""
    if not isinstance(text, str) or not text.strip():
        raise ClaimError(
            f"Name a column, a role, or a formula such as 'label - score'; got {text!r}."
        )
    try:
        return parse(text).text
    except ClaimError:
        # a name such as 'hourly pay'; anything else is refused when the table is read
        if any(sign in text for sign in "()=<>'\""):
            raise
        return f"column({text!r})"


def _plain_name(text: str) -> str:
    """A formula as it reads in a name."""
    found = parse(text)
    one = len(found.references) == 1 and found.text == f"column({found.names[0]!r})"
    return found.names[0] if one else found.text


@known_keywords
def quantile(of: str, q: float) -> Metric:
    """A quantile of a number within each group, to be asked for in `gap` or `ratio`.

    Parameters
    ----------
    of
        A column, a role, or a formula such as ``"abs(label - score)"``.
    q
        Which quantile: 0.5 is the median.

    Bounds come from the test of the share of rows up to a number, which is exact for any
    distribution, ties included; skewness does not matter.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.ratio(eq.quantile("pay", 0.9), across="sex", target=eq.reference(sex="Male")).words
    '0.9 quantile of pay as a share of Male'
    """
    return Measure(name="quantile", of=of, q=q).metric()


@known_keywords
def median(of: str) -> Metric:
    """The median of a number within each group, such as their pay; as `quantile` with q = 0.5.

    >>> import equipoise as eq
    >>> eq.gap(eq.median("pay"), across="sex").words
    'median of pay against everyone'
    """
    return Measure(name="quantile", of=of, q=0.5).metric()


@known_keywords
def standardised(of: str) -> Metric:
    """A number in units of its standard deviation over everyone: gaps are effect sizes.

    The gap of two groups is then the standardised mean difference, the difference of their means
    over the standard deviation of all rows (Cohen's d with everybody's spread). The standard
    deviation is estimated as well, and bounds allow for it.

    >>> import equipoise as eq
    >>> eq.gap(eq.standardised("score"), across="sex", target=eq.reference(sex="Male")).words
    'standardised score against Male'
    """
    return Measure(name="standardised", of=of).metric()


@known_keywords
def actual_over_expected(
    actual: str = "label", expected: str = "score", *, exposure: str | None = None
) -> Metric:
    """The total of what happened over the total of what was expected, in each group.

    Both are columns, roles or formulas. Where what is expected is a rate for each unit of exposure,
    such as claims a year, ``exposure`` is the column or formula with the units of the row. 1 is as
    expected, 1.2 a fifth more.

    >>> import equipoise as eq
    >>> eq.gap(eq.actual_over_expected("claims", "premium * 0.7"), across="region", target=1).words
    'claims over premium * 0.7 against 1'
    >>> eq.gap(eq.actual_over_expected("claims", exposure="years"), across="region", target=1).words
    'claims over (score) * (years) against 1'
    """
    if exposure is not None:
        expected = f"({expected}) * ({exposure})"
    return Measure(name="actual_expected", of=actual, expected=expected).metric()


@known_keywords
def calibration_error(edges: Iterable[float] = _TENTHS) -> Metric:
    """The expected calibration error with fixed ranges of the score, tenths unless told.

    It is the plug-in value, which noise alone makes larger than zero, the more so the smaller the
    group; bounds allow for that.

    >>> import equipoise as eq
    >>> eq.gap(eq.calibration_error([0, 0.2, 0.5, 1]), across="sex").words
    'expected calibration error in 3 ranges against everyone'
    """
    return Measure(name="expected_calibration_error", edges=tuple(edges)).metric()


@known_keywords
def exposure(rank: str, *, base: float = 2.0) -> Metric:
    """The exposure that a place in a ranking gives: 1/log2(1 + rank), 1 for the first place.

    ``rank`` is the column with the place, from 1 on. Places of one query depend on one another:
    read the trail with ``cluster="query"``.

    >>> import equipoise as eq
    >>> eq.gap(eq.exposure("place"), across="gender").words
    'exposure by place against everyone'
    """
    if not real("base", base) > 1:
        raise ClaimError(f"base must be above 1; got {base!r}.")
    place = f"column({rank!r})"
    return Metric(
        name=f"exposure by {rank}",
        # no place is before the first: others would be exposed more than fully
        value=f"{math.log(base)!r} / log({base!r} - 1 + {place})",
        low=0.0,
        high=1.0,
        harm="low",
    )


@known_keywords
def one_class(metric: MetricLike, value: str | float | bool) -> Metric:
    """A metric of label and prediction for one class of several against the rest.

    ``value`` is what label and prediction hold for that class. A family of claims, one for each
    class, is made by `equipoise.each_class`.

    >>> import equipoise as eq
    >>> eq.one_class("true_positive_rate", "cat").where
    "(role('label') == 'cat') == 1"
    """
    of = as_metric(metric)
    if of.measure is not None or of.change is not None or not set(of.names()) <= set(BOTH):
        raise ClaimError(
            f"One class against the rest takes rates of label and prediction; {of.name!r} is none."
        )
    if not isinstance(value, str | int | float):
        raise ClaimError(f"A class is a text or a number as the columns hold it; got {value!r}.")
    texts = [text for text in (of.value, of.where) if text is not None]
    put = [_of_class(str(text), value) for text in texts]
    return Metric(
        name=f"{of.name} of {value}",
        value=put[0],
        where=put[1] if len(put) > 1 else None,
        zero_one=of.zero_one,
        low=of.low,
        high=of.high,
        harm=of.harm,
    )


def _of_class(text: str, value: str | float | bool) -> str:
    for role in BOTH:
        text = with_condition(text, role, f"role({role!r}) == {value!r}")
    return text


# --- Those that need no option ---

auc, gini, f1, lift, balanced_accuracy, matthews = (
    Measure(name=name).metric()
    for name in ("auc", "gini", "f1", "lift", "balanced_accuracy", "matthews")
)
expected_calibration_error = Measure(name="expected_calibration_error").metric()
actual_expected = Measure(name="actual_expected", of="label", expected="score").metric()
macro_recall, macro_precision, macro_f1 = (
    Measure(name=name).metric() for name in ("macro_recall", "macro_precision", "macro_f1")
)

METRICS |= {
    made.name: made
    for made in (
        auc,
        gini,
        f1,
        lift,
        balanced_accuracy,
        matthews,
        expected_calibration_error,
        actual_expected,
        macro_recall,
        macro_precision,
        macro_f1,
    )
}
