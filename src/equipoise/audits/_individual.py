"""Behind `individual` and `select_fair`: the values they take, and one question ready to be asked.

The values are ways to a fair metric, and to its error; the question is about comparable people, and
can be asked of any losses.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise._codec import from_plain, kind
from equipoise._validate import fraction, is_word, known_name, listing, modest, real, whole
from equipoise.audits._people import People, fewest_changes, find_people
from equipoise.cells.tally import Axis
from equipoise.claims import Metric
from equipoise.errors import OptionError
from equipoise.findings.words import Verdict, plural
from equipoise.methods import transport
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.trail import Trail

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class FairMetric:
    """A squared distance blind to the varied features and to what predicts them.

    By default the metric is learnt from the rows audited, and its error is part of the answer: the
    bounds hold for the metric that the whole population would give. In small samples, and at small
    budgets, they are wide. A metric that is known, or learnt elsewhere, gives shorter ones, about
    that metric.

    >>> FairMetric(split=0.3).split
    0.3
    """

    directions: Sequence[Mapping[str, Any]] | None = None
    """What is not to count, if it is known: for each direction a number for each feature, or for
    each level of a category, such as ``{"income": 1.0, "area": {"north": 2.0}}``. Features then
    keep their own units."""
    learn_from: Trail | None = None
    """Another table with the same features to learn from; the metric is then taken as given."""
    split: float | None = None
    """Share of the rows (or clusters), drawn at random, from which the metric is learnt and then
    taken as given; only the others are audited."""
    neighbours: int | None = None
    """Consider only moves to so many nearest kinds of people, and bound what is lost; all of them
    by default, unless there are too many pairs."""

    def __post_init__(self) -> None:
        given = [n for n in ("directions", "learn_from", "split") if getattr(self, n) is not None]
        if len(given) > 1:
            raise OptionError(
                f"A fair metric is known in one way; got {listing(given)}. Keep one of them."
            )
        if self.directions is not None:
            object.__setattr__(self, "directions", _directions(self.directions))
        if self.learn_from is not None and not isinstance(self.learn_from, Trail):
            raise OptionError(
                "learn_from must be a trail, such as equipoise.read(…) gives; got "
                f"{type(self.learn_from).__name__}."
            )
        if self.split is not None:
            fraction("split", self.split)
        if self.neighbours is not None:
            whole("neighbours", self.neighbours)


def _directions(value: object) -> tuple[Mapping[str, object], ...]:
    listed = value if isinstance(value, list | tuple) else ()
    if not listed or not all(isinstance(given, Mapping) and given for given in listed):
        raise OptionError(
            "directions must be a list of dictionaries from features to numbers, such as "
            f"[{{'income': 1.0}}]; got {value!r}."
        )
    return tuple(listed)


#: What moving people costs: nothing, a matrix over the cells, a function of two people, a metric.
Cost = (
    Literal["fair-metric"]
    | FairMetric
    | Sequence[Sequence[float]]
    | npt.NDArray[Any]
    | Callable[[dict[str, Any], dict[str, Any]], float]
    | None
)


@kind("directional")
@dataclass(frozen=True, slots=True, kw_only=True)
class Directional:
    """The limit itself: the smallest derivative over all prices that may be optimal.

    >>> Directional(kappa=2.0).kappa
    2.0
    """

    kappa: float | None = None
    """How many standard errors from optimal a price may be and still count as perhaps optimal;
    √log n by default."""

    def __post_init__(self) -> None:
        if self.kappa is not None and not real("kappa", self.kappa) >= 0:
            raise OptionError(f"kappa must be zero or more; got {self.kappa!r}.")


@kind("m_out_of_n")
@dataclass(frozen=True, slots=True, kw_only=True)
class MOutOfN:
    """The m-out-of-n bootstrap as published.

    >>> MOutOfN(m=100).m
    100
    """

    m: int | None = None
    """Rows, or clusters, in a resample; 2√n by default. It must grow with n, but more slowly."""

    def __post_init__(self) -> None:
        if self.m is not None:
            whole("m", self.m)


@kind("numerical_derivative")
@dataclass(frozen=True, slots=True, kw_only=True)
class NumericalDerivative:
    """Difference quotients along normal vectors, as published.

    >>> NumericalDerivative(step=0.05).step
    0.05
    """

    step: float | None = None
    """Step of the quotient; n^(−1/4) by default. It must vanish, but more slowly than 1/√n."""
    tries: int | None = None
    """Most vectors drawn, of which only those are kept that leave every share at zero or above; 20
    for each draw wanted by default."""

    def __post_init__(self) -> None:
        if self.step is not None and not real("step", self.step) > 0:
            raise OptionError(f"step must be above 0; got {self.step!r}.")
        if self.tries is not None:
            whole("tries", self.tries)


Inferred = Directional | MOutOfN | NumericalDerivative
IndividualMethod = (
    Inferred
    | Literal["auto", "exact", "beta", "normal"]
    | Literal["directional", "bootstrap", "m-out-of-n", "numerical"]
)

#: Names of the methods, as the option takes them.
METHODS = {
    "auto": transport.Method.AUTO,
    "exact": transport.Method.EXACT,
    "beta": transport.Method.BETA,
    "normal": transport.Method.NORMAL,
    "directional": transport.Method.DIRECTIONAL,
    "bootstrap": transport.Method.BOOTSTRAP,
    "m-out-of-n": transport.Method.M_OUT_OF_N,
    "numerical": transport.Method.NUMERICAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A method with its options, as the mathematics takes them."""

    method: transport.Method
    kappa: float | None = None
    units: int | None = None
    step: float | None = None
    tries: int | None = None


def as_inferred(value: object) -> Chosen:
    """A method given by name, as a value or as plain data."""
    given = from_plain(value) if isinstance(value, Mapping) else value
    match given:
        case Directional():
            return Chosen(method=transport.Method.DIRECTIONAL, kappa=given.kappa)
        case MOutOfN():
            return Chosen(method=transport.Method.M_OUT_OF_N, units=given.m)
        case NumericalDerivative():
            found = transport.Method.NUMERICAL
            return Chosen(method=found, step=given.step, tries=given.tries)
        case str():
            return Chosen(method=METHODS[known_name("method", given, METHODS)])
    raise OptionError(
        f"method is one of {listing(METHODS)}, or Directional(…), MOutOfN(…) or "
        f"NumericalDerivative(…); got {value!r}."
    )


# --- What it costs to move from one cell to another, from the ``cost`` argument of a verb ---

FAIR_METRIC = "fair-metric"
_MOST_PAIRS = 4_000_000
#: Resamples on which a metric is learnt again.
_RELEARNT = 999
#: A part of the distance that stands for nothing being known of it.
_ANYTHING = 1e6


@contextmanager
def checked_input() -> Iterator[None]:
    """What the mathematics refuses becomes an error that names the option."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise OptionError(f"{text[0].upper()}{text[1:]}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Who is audited, and what their moves cost."""

    people: People
    """Those audited: all of them, or the part that was not used to learn a metric."""
    at: Callable[[float], transport.Moves]
    """The moves, if learnt distances are off by this part of the distance with nothing left out."""
    errors: FloatArray | None = None
    """Draws of how far they are off; None where the costs are known."""
    metric: str = ""
    """How the fair metric is known, in words; empty if there is none."""

    def off(self, alpha: float) -> float:
        """How far learnt distances are off at most, except with probability ``alpha``."""
        if self.errors is None:
            return 0.0
        # the sample counts among its draws: a rate too small for them knows nothing
        place = math.ceil((1 - alpha) * (self.errors.size + 1) - 1e-9)
        return float(np.sort(self.errors)[place - 1]) if place <= self.errors.size else _ANYTHING


def costs_of(people: People, cost: object, rng: np.random.Generator) -> Costs:
    """The moves that ``cost`` allows."""
    with checked_input():
        if isinstance(cost, str):
            if cost != FAIR_METRIC:
                raise OptionError(f"cost as text can only be {FAIR_METRIC!r}; got {cost!r}.")
            return _fair(people, FairMetric(), rng)
        if isinstance(cost, FairMetric):
            return _fair(people, cost, rng)
        if cost is None:
            moves: transport.Moves = transport.within_classes(people.classes())
        elif callable(cost):
            moves = _by_function(people, cost)
        else:
            moves = _by_matrix(people, cost)
        return Costs(people=people, at=lambda off: moves)


def cost_words(cost: object, varied: str) -> str:
    """How people are compared, in words."""
    if cost is None:
        return f"people who share the label and everything but {varied}"
    if isinstance(cost, str | FairMetric):
        return f"people who share the label, at a distance blind to {varied} and its proxies"
    kind = "a function" if callable(cost) else "a matrix"
    return f"people at the costs given by {kind}"


def _by_matrix(people: People, cost: object) -> transport.Neighbours:
    try:
        matrix = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(
            "cost must be None, 'fair-metric', FairMetric(…), a function of two people, or a "
            f"matrix of numbers; got {type(cost).__name__}."
        ) from error
    if matrix.shape != (len(people), len(people)):
        raise OptionError(
            f"cost must have one row and one column for each of the {len(people):,} cells, in the "
            f"order of the finding's cells; got shape {matrix.shape}."
        )
    return transport.from_matrix(matrix)


def _pairs(people: People) -> int:
    return int((np.bincount(people.label) ** 2).sum())


def _same_label(people: People) -> tuple[IntArray, IntArray]:
    if _pairs(people) > _MOST_PAIRS:
        raise OptionError(
            f"A cost between all pairs of {len(people):,} cells is too much to compute. "
            "Use fewer features, cost=None, or FairMetric(neighbours=…)."
        )
    source, target = np.nonzero(people.label[:, None] == people.label)
    return source.astype(np.int64), target.astype(np.int64)


def _by_function(people: People, cost: Callable[..., object]) -> transport.Neighbours:
    source, target = _same_label(people)
    rows = [people.where(cell) for cell in range(len(people))]
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    paid = np.array([_cost(cost, rows[a], rows[b]) for a, b in pairs], dtype=np.float64)
    return transport.from_neighbours(source, target, paid, cells=len(people))


def _cost(cost: Callable[..., object], a: dict[str, object], b: dict[str, object]) -> float:
    try:
        paid: Any = cost(dict(a), dict(b))
        return float(paid)
    except Exception as error:
        raise OptionError(
            f"The cost failed on {a} and {b}: {type(error).__name__}: {error}"
        ) from error


def _fair(people: People, metric: FairMetric, rng: np.random.Generator) -> Costs:
    rest = [i for i in range(len(people.features)) if i not in people.varied]
    if not rest:
        raise OptionError("A fair metric needs a feature that is not varied; features= has none.")
    axes = [people.features[i] for i in rest]
    audited, errors = people, None
    if metric.directions is not None:
        units = np.ones(_numbers(people, axes).shape[1])
        directions = np.stack([_direction(d, axes) for d in metric.directions], axis=1)
        words = "the directions that do not count were given"
    else:
        learnt, learners, audited, words = _learnt_on(people, metric, rng)
        numbers, varied = _numbers(learners, axes), _numbers(learners, _varied_axes(people))
        found = transport.learn_metric(numbers, varied, learnt.share)
        units, directions = found.units, found.directions
        if metric.learn_from is None and metric.split is None:
            errors = transport.metric_errors(numbers, varied, learnt, resamples=_RELEARNT, rng=rng)
    points = _numbers(people, axes) / units
    listed = metric.neighbours
    if listed is None and _pairs(people) > _MOST_PAIRS:
        listed = max(1, _MOST_PAIRS // len(people))

    def at(off: float) -> transport.Moves:
        return transport.fair_costs(
            points, directions, classes=people.label, off=off, neighbours=listed
        )

    return Costs(people=audited, at=at, errors=errors, metric=words)


def _learnt_on(
    people: People, metric: FairMetric, rng: np.random.Generator
) -> tuple[transport.Sample, People, People, str]:
    """The rows a metric is learnt on, whose cells they are counted in, and those audited."""
    if metric.learn_from is not None:
        features = [axis.dimension for axis in people.features]
        vary = [axis.name for axis in _varied_axes(people)]
        other = find_people(metric.learn_from, features, vary, None)
        return other.sample, other, people, "it was learnt on another table and is taken as given"
    if metric.split is not None:
        first, second = people.sample.split(metric.split, rng)
        unit = "clusters" if people.cells.clusters is not None else "rows"
        words = (
            f"it was learnt on {first.n:,} {unit} drawn at random and is taken as given; the other "
            f"{second.n:,} were audited"
        )
        return first, people, people.only(second), words
    words = "it was learnt on the rows audited, and the bounds allow for its error"
    return people.sample, people, people, words


def _varied_axes(people: People) -> list[Axis]:
    return [people.features[i] for i in people.varied]


def _columns(axis: Axis) -> list[object]:
    """The levels that get an indicator; a single None stands for a column of numbers."""
    plain = all(isinstance(level, int | float) for level in axis.levels)
    return [None] if plain else list(axis.levels)


def _numbers(people: People, axes: Sequence[Axis]) -> FloatArray:
    """Features as columns of numbers; categories, by the levels of ``axes``, become indicators."""
    names = [axis.name for axis in people.features]
    columns = []
    for axis in axes:
        i = names.index(axis.name)
        levels, codes = people.features[i].levels, people.index[:, i]
        if _columns(axis) == [None]:
            if not all(isinstance(level, int | float) for level in levels):
                raise OptionError(
                    f"Feature {axis.name!r} is a number in the rows audited, but not in the table "
                    "to learn from. Read both tables in the same way."
                )
            columns.append(np.array(levels, dtype=np.float64)[codes])
        else:
            held = np.array([str(level) for level in levels], dtype=object)[codes]
            columns += [(held == str(level)).astype(np.float64) for level in axis.levels]
    return np.stack(columns, axis=1)


def _direction(given: Mapping[str, object], axes: Sequence[Axis]) -> FloatArray:
    """One direction as numbers, in the order of the columns."""
    for name in given:
        known_name("Feature of a direction", name, [axis.name for axis in axes])
    out: list[float] = []
    for axis in axes:
        part, columns = given.get(axis.name, 0.0), _columns(axis)
        if columns == [None]:
            out.append(real(f"directions[{axis.name!r}]", part))
        elif part == 0:
            out += [0.0] * len(columns)
        else:
            out += _by_level(part, axis)
    if not any(out):
        raise OptionError(f"A direction must not be zero everywhere; got {given!r}.")
    return np.array(out)


def _by_level(part: object, axis: Axis) -> list[float]:
    if not isinstance(part, dict):
        raise OptionError(
            f"{axis.name!r} is a category: a direction takes a number for each of its levels "
            f"({listing(axis.levels, 4)}) in a dictionary; got {part!r}."
        )
    unknown = [level for level in part if level not in axis.levels]
    if unknown:
        raise OptionError(
            f"{axis.name!r} has no level {listing(unknown)}; it has {listing(axis.levels, 6)}."
        )
    return [real(f"directions[{axis.name!r}]", part.get(level, 0.0)) for level in axis.levels]


# --- One question about comparable people, ready to be asked of any losses ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the caller asks for, checked as far as it can be before the table is read."""

    cost: object
    budget: float
    bounds: tuple[float, float]
    tolerance: float | None
    method: Chosen
    resamples: int


def terms_of(
    cost: object,
    budget: object,
    bounds: object,
    tolerance: object,
    method: object,
    resamples: object,
) -> Terms:
    """Check the options that both verbs share."""
    limit = None if tolerance is None else modest("tolerance", tolerance)
    if limit is not None and limit < 0:
        raise OptionError(f"tolerance must be zero or more; got {tolerance!r}.")
    return Terms(
        cost=cost,
        budget=_budget(budget),
        bounds=_pair(bounds),
        tolerance=limit,
        method=as_inferred(method),
        resamples=whole("resamples", resamples, least=100),
    )


def _budget(budget: object) -> float:
    if isinstance(budget, float) and budget == math.inf:
        return math.inf
    return real("budget", budget)


def _pair(bounds: object) -> tuple[float, float]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise OptionError(f"bounds must be a pair (least loss, largest loss); got {bounds!r}.")
    return modest("bounds", bounds[0]), modest("bounds", bounds[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Who may be moved where, and how uncertainty is to be found."""

    costs: Costs
    moves: transport.Moves
    terms: Terms

    @property
    def people(self) -> People:
        """Those who are audited."""
        return self.costs.people

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(axis.name for axis in self.people.features)

    @property
    def vary(self) -> tuple[str, ...]:
        """Names of the varied ones."""
        return tuple(self.features[i] for i in self.people.varied)

    @property
    def compared(self) -> str:
        """Who is compared with whom, in words."""
        return cost_words(self.terms.cost, " and ".join(self.vary))

    def problem(
        self, losses: FloatArray, moves: transport.Moves | None = None
    ) -> transport.Problem:
        """The auditor's problem for given losses, and for other moves than usual if given."""
        with checked_input():
            return transport.prepare(
                self.moves if moves is None else moves,
                losses,
                budget=self.terms.budget,
                bounds=self.terms.bounds,
            )

    def easier(self, problem: transport.Problem, off: float = 0.0) -> transport.Problem:
        """A problem no harder than the true one: cheap moves, and those left out cheaper still."""
        moves = self.costs.at(-off) if off else self.moves
        if isinstance(moves, transport.Neighbours):
            moves = transport.relaxed(moves, problem.losses)
        return self.problem(problem.losses, moves)

    def lost(self, problem: transport.Problem) -> float:
        """The most by which moves left out could raise the value."""
        if isinstance(self.moves, transport.Classes) or self.moves.left_out is None:
            return 0.0
        share = self.people.sample.share
        return float(self.easier(problem).values(share) - problem.values(share))

    def solve(self, problem: transport.Problem) -> transport.Solution:
        """The worst comparable population; of equally bad ones, one that is easy to read."""
        with checked_input():
            solution = transport.solve(problem, self.people.sample)
        free = self.terms.cost is None
        return fewest_changes(self.people, problem.losses, solution) if free else solution

    def infer(
        self, problem: transport.Problem, sequence: np.random.SeedSequence
    ) -> transport.Inference:
        """The audit value and its sampling error; none where losses are themselves estimated."""
        found = self._known(problem, sequence)
        if self.people.mixed:
            return _without_answer(found, self.people)
        learnt = self.costs.errors is not None
        if not learnt and self.lost(problem) == 0:
            return found
        found = transport.between(
            found,
            lambda alpha: self._end(problem, sequence, self.costs.off(alpha), hard=True),
            lambda alpha: self._end(problem, sequence, self.costs.off(alpha), hard=False),
            ceiling=float(self.easier(problem).gradient(0.0).max()),
            learnt=learnt,
        )
        if not learnt or found.limit is None:
            return found
        # the value may vary with the metric where it does not with the shares
        reason = f"{found.reason}; the error of the learnt metric is allowed for"
        return dataclasses.replace(found, outcome=transport.AnswerKind.ESTIMATED, reason=reason)

    def trusted(
        self, problem: transport.Problem, found: transport.Inference, level: float
    ) -> transport.Inference:
        """The answer with what repeated rows say of losses that were read off the table.

        Losses are taken to depend on the features and the label alone. Rows of the same kind that
        agree speak for it; where they are few, some kinds may show a loss by chance, and what those
        could add to the value, or hide of it, is allowed for. If that is all of the value, or if no
        rows repeat, nothing is known.
        """
        if found.limit is None:
            return found
        # a quarter: each end of an interval has half of the error rate, and half of that is spent
        doubt = transport.doubt(self.people.sample.units, (1 - level) / 4)
        down, up = self._swayed(problem, doubt) if doubt.number else (0.0, 0.0)
        if doubt.repeats and down == up == 0:
            return found
        if doubt.repeats == 0 or down >= found.value > 0 or math.isinf(up):
            return _unrepeated(found, doubt)
        reason = (
            f"{found.reason}; of {plural(int(doubt.cells.sum()), 'kind')} of people with few rows, "
            f"the bounds allow for {doubt.number:,} showing a loss by chance"
        )
        limit = transport.ShiftedLimit(limit=found.limit, down=down, up=up)
        low, high = self.terms.bounds
        return dataclasses.replace(found, limit=limit, reason=reason, ceiling=high - low)

    def _swayed(self, problem: transport.Problem, doubt: transport.Doubt) -> tuple[float, float]:
        """The most that kinds with a wrong loss could add to the value, and hide of it."""
        if not isinstance(self.moves, transport.Classes):
            # a single kind may be the worst within everybody's reach
            return math.inf, math.inf
        share, (low, high) = self.people.sample.share, self.terms.bounds
        place = self.moves.labels
        gained = np.bincount(place, share * problem.gradient(math.inf)).astype(np.float64)
        most = (high - low) * np.bincount(place, share).astype(np.float64)
        # whoever is comparable with nobody sways nothing
        most[np.bincount(place) == 1] = 0.0
        return doubt.explains(gained, place), doubt.explains(most - gained, place)

    def _known(
        self, problem: transport.Problem, sequence: np.random.SeedSequence
    ) -> transport.Inference:
        """The answer if this were the true problem."""
        chosen = self.terms.method
        with checked_input():
            return transport.infer(
                problem,
                self.people.sample,
                rng=np.random.default_rng(sequence),
                method=chosen.method,
                resamples=self.terms.resamples,
                units=chosen.units,
                step=chosen.step,
                tries=chosen.tries,
                kappa=chosen.kappa,
                outside=self._outside(),
            )

    def _outside(self) -> float | None:
        """What people could gain whose features have values that are not in the table."""
        people, (low, high) = self.people, self.terms.bounds
        # Only other values of what is not varied can be met by chance; those of what is varied
        # would make everybody comparable with people nobody has seen.
        known = people.complete and len(people.varied) == len(people.features)
        return None if known else high - low

    def _end(
        self,
        problem: transport.Problem,
        sequence: np.random.SeedSequence,
        off: float,
        *,
        hard: bool,
    ) -> transport.Limit | None:
        """What is known of the value where moves cost the most, or the least, that they may."""
        if hard:
            moves = self.costs.at(off) if off else self.moves
            return self._known(self.problem(problem.losses, moves), sequence).limit
        return self._known(self.easier(problem, off), sequence).limit


def make_inquiry(people: People, terms: Terms, sequence: np.random.SeedSequence) -> Inquiry:
    """Find the moves that the terms allow between these people."""
    costs = costs_of(people, terms.cost, np.random.default_rng(sequence))
    with checked_input():
        return Inquiry(costs=costs, moves=costs.at(0.0), terms=terms)


def _without_answer(found: transport.Inference, people: People) -> transport.Inference:
    # Picking the worst of several noisy means exaggerates, and no method here allows for it.
    reason = (
        f"the loss differs from row to row in {people.mixed:,} of {len(people):,} kinds of people, "
        "so the value is too large by an unknown amount; name every feature the model uses, or "
        "pass model=…"
    )
    return dataclasses.replace(found, limit=None, reason=reason)


def _unrepeated(found: transport.Inference, doubt: transport.Doubt) -> transport.Inference:
    if doubt.repeats == 0:
        why = "no kind of people has two rows, so nothing shows"
    else:
        why = (
            f"{int(doubt.cells.sum()):,} of {doubt.kinds:,} kinds of people have so few rows that "
            f"up to {doubt.number:,} of them could show by chance a loss that is not theirs; that "
            "could explain all of the value, so it is not shown"
        )
    reason = (
        f"{why} that the loss depends on the features and the label alone; pass model=…, or name "
        "fewer features"
    )
    return dataclasses.replace(
        found, limit=None, reason=reason, outcome=transport.AnswerKind.FEW_REPEATS
    )


def tolerance_verdict(
    found: transport.Inference, level: float, tolerance: float, gaps: int = 0
) -> Verdict:
    """Whether the value is at most the tolerance; of the two tests at most one can err.

    Where comparable people were neither seen nor asked about (``gaps``), the model may do worse on
    them by any amount, so that a tolerance can be shown to be exceeded, but not to be kept.
    """
    low, high = found.lower(level), found.upper(level)
    if gaps == 0 and high is not None and high <= tolerance:
        return Verdict.KEPT
    return Verdict.EXCEEDED if low is not None and low > tolerance else Verdict.UNDETERMINED


def loss_words(loss: object, metric: Metric | None) -> str:
    """The average loss, as it reads in a sentence."""
    if metric is not None:
        return metric.words
    if is_word(loss, "zero-one"):
        return "error rate"
    name = getattr(loss, "__name__", "")
    return f"average {name.replace('_', ' ')}" if name.isidentifier() else "average loss"
