"""Group collections: who is compared, and the dimensions by which they cut the rows."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy.typing as npt

from equipoise._codec import Written, from_plain, kind, made_from
from equipoise._validate import (
    columns_named,
    known_keywords,
    known_name,
    listing,
    real,
    whole,
    yes_or_no,
)
from equipoise.claims.formula import parse
from equipoise.claims.metric import Change
from equipoise.errors import ClaimError

# --- Dimensions: how one attribute cuts the population into levels ---
#
# Every group of a collection is a union of cells, and cells are the cross-product of dimensions.


@kind("levels")
@dataclass(frozen=True, slots=True)
class Levels:
    """Each distinct value of a column is a level; missing is a level of its own."""

    column: str

    @property
    def name(self) -> str:
        """What the dimension is called in labels."""
        return self.column

    def shorthand(self) -> str:
        """The bare column name."""
        return self.column


@kind("binned")
@dataclass(frozen=True, slots=True)
class Binned:
    """A number cut into named ranges: below the first cut, between cuts, from the last cut up."""

    column: str
    cuts: tuple[float, ...] = ()
    quantiles: int | None = None
    """Ranges of about equally many rows, whose cuts are found in the data, in place of ``cuts``."""

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.quantiles is None:
            object.__setattr__(self, "cuts", increasing("cuts", self.cuts, least=1))
            return
        if self.cuts:
            raise ClaimError("Pass either cuts= or quantiles=, not both.")
        whole("quantiles", self.quantiles, least=2)

    @property
    def name(self) -> str:
        """What the dimension is called in labels."""
        return self.column


@kind("ordered")
@dataclass(frozen=True, slots=True)
class Ordered:
    """A number whose ranges are groups.

    With ``edges``, the ranges between consecutive edges are the finest ones (the last includes its
    upper edge); with ``quantiles``, edges are found so that about equally many rows lie between
    them; with neither, every distinct value is an end point.
    """

    column: str
    edges: tuple[float, ...] | None = None
    quantiles: int | None = None
    role: bool = False
    """Whether ``column`` is the name of a role rather than of a column."""

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.edges is not None and self.quantiles is not None:
            raise ClaimError("Pass either edges= or grid=, not both.")
        yes_or_no("role", self.role)
        if self.edges is not None:
            object.__setattr__(self, "edges", increasing("edges", self.edges, least=2))
        if self.quantiles is not None:
            whole("grid", self.quantiles)

    @property
    def name(self) -> str:
        """What the dimension is called in labels."""
        return self.column


@kind("condition")
@dataclass(frozen=True, slots=True)
class Condition:
    """Rows for which a formula holds, and the others."""

    name: str
    formula: str

    def __post_init__(self) -> None:
        _check_formula("A group of your own", self.name, self.formula)


@kind("tilt")
@dataclass(frozen=True, slots=True)
class Tilt:
    """A weight of at least zero for each row; each distinct weight is a level."""

    name: str
    formula: str

    def __post_init__(self) -> None:
        _check_formula("A tilt", self.name, self.formula)


@kind("values")
@dataclass(frozen=True, slots=True)
class Values:
    """Each distinct value of a column, however many there are: what a function can be asked for."""

    column: str

    @property
    def name(self) -> str:
        """What the dimension is called."""
        return self.column


@kind("overlap")
@dataclass(frozen=True, slots=True)
class Overlap:
    """Whether a row counts under the old model (1), under the new one (2), or both (3)."""

    change: Change

    @property
    def name(self) -> str:
        """What the dimension is called."""
        return f"rows of {self.change.before} and {self.change.after}"


@kind("graded")
@dataclass(frozen=True, slots=True)
class Graded:
    """A number of which only the order counts: each value is a level, or each narrow range.

    Ranges are found in the data where there are too many values: those of equal width in
    log(1 + (x − low)/scale), ``times`` to the unit, so that long tails cost little.
    """

    formula: str
    low: float | None = None
    scale: float | None = None
    times: float | None = None

    @property
    def name(self) -> str:
        """What the dimension is called."""
        return self.formula


@kind("answers")
@dataclass(frozen=True, slots=True)
class Answers:
    """Each value that a label or a prediction has."""

    role: str

    @property
    def name(self) -> str:
        """What the dimension is called."""
        return f"role {self.role}"


Unit = Literal["day", "week", "month", "quarter", "year"]


@kind("period")
@dataclass(frozen=True, slots=True)
class Period:
    """The days of a column of dates, or the names of batches as they stand in a column."""

    column: str
    dated: bool = False

    @property
    def name(self) -> str:
        """The column."""
        return self.column


#: Words that are levels of many attributes, and tell of none.
# fmt: off
_COMMON_WORDS = frozenset([
    "yes", "no", "true", "false", "none", "other", "others", "unknown", "missing", "n/a",
    "nan", "null", "any", "all", "high", "low", "medium", "never", "always", "positive",
    "negative"
])
# fmt: on


def speaks_alone(level: str) -> bool:
    """Whether a level tells by itself what it is a level of: Female does, yes does not.

    >>> [speaks_alone(level) for level in ("Female", "yes", "2019", "Other")]
    [True, False, False, False]
    """
    word = level.strip().lower()
    plain = word.replace(".", "", 1)
    return bool(plain) and word not in _COMMON_WORDS and not plain.isdigit()


def named_level(name: str, level: str) -> str:
    """A level with its attribute before it, unless it speaks alone.

    >>> named_level("afam", "yes"), named_level("sex", "Female"), named_level("place", " ")
    ('afam: yes', 'Female', "place ' '")
    """
    if speaks_alone(level):
        return level
    return f"{name}: {level}" if level.strip() else f"{name} {level!r}"


Dimension = (
    Levels | Binned | Ordered | Condition | Tilt | Values | Period | Overlap | Graded | Answers
)

AttributeLike = str | Levels | Binned | Condition
"""What groups may be formed by: a column by its name, or what `binned` makes of one."""


@known_keywords
def binned(
    column: str, cuts: Iterable[float] | None = None, *, quantiles: int | None = None
) -> Binned:
    """Cut a numeric attribute into ranges, to be used like any other attribute.

    ``cuts`` say where; ``quantiles`` asks for so many ranges of about equally many rows, whose cuts
    are found in the data and named in the result.

    >>> binned("age", cuts=(25, 45)).cuts, binned("age", quantiles=4).quantiles
    ((25.0, 45.0), 4)
    """
    if cuts is None and quantiles is None:
        raise ClaimError("binned needs cuts=…, such as (25, 45), or a number of quantiles=….")
    return made_from(Binned, column, () if cuts is None else cuts, quantiles)


Learner = Literal["auto", "linear", "boosting"]


@kind("factors")
@dataclass(frozen=True, slots=True)
class Factors:
    """Legitimate factors that are too many, or too fine, to form strata of."""

    columns: tuple[str, ...]
    learner: Learner = "auto"
    folds: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(columns_named("factors", self.columns)))
        if not self.columns:
            raise ClaimError("factors(…) needs a column, such as factors('income').")
        known_name("learner", self.learner, ("auto", "linear", "boosting"), ClaimError)
        whole("folds", self.folds, least=2)

    @property
    def name(self) -> str:
        """The columns, as they read after "given"."""
        return ", ".join(self.columns)


@known_keywords
def factors(*columns: str, learner: Learner = "auto", folds: int = 5) -> Factors:
    """Legitimate factors from which outcome and membership are predicted, for ``given=``.

    Continuous or many factors form no strata. Models from other folds predict, from the factors
    alone, each row's outcome and its chance to be of the group; what is left of both says how far
    people differ who share their factors. ``"auto"`` takes whichever of a linear model and boosted
    trees predicts better.

    >>> import equipoise as eq
    >>> eq.gap("accuracy", across="sex", given=eq.factors("age", "income")).words
    'accuracy against everyone else, given age, income'
    """
    return made_from(Factors, columns, learner, folds)


def as_dimension(value: object) -> Dimension:
    """An attribute given by name, or already a dimension."""
    if isinstance(value, str) and value:
        return Levels(value)
    if isinstance(value, Levels | Binned | Condition):
        return value
    raise ClaimError(f"An attribute is a column name or binned(column, cuts=…); got {value!r}.")


def as_ordered(value: object) -> Ordered:
    """A numeric attribute given by name, or already an ordered dimension."""
    # anything else is taken for a column name, which the value itself checks
    return value if isinstance(value, Ordered) else made_from(Ordered, value)


def _check_formula(what: str, name: object, formula: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ClaimError(f"{what} needs a name; got {name!r}.")
    parse(formula)


def _check_column(column: object) -> None:
    if not isinstance(column, str) or not column:
        raise ClaimError(f"A numeric attribute is given by its column name; got {column!r}.")


def increasing(what: str, values: Iterable[float], least: int) -> tuple[float, ...]:
    """At least ``least`` finite numbers, each above the one before."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ClaimError(f"{what} must be a list of increasing numbers; got {values!r}.")
    numbers = tuple(real(what, value) for value in values)
    if len(numbers) < least or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise ClaimError(
            f"{what} must be at least {least} increasing numbers; got {list(numbers)}."
        )
    return numbers


# --- Group collections: who is compared. Each is a value that knows which dimensions it needs ---

#: More groups than this are refused unless the collection says otherwise.
MAX_GROUPS = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(Written):
    """A collection of groups; every guarantee holds over the whole of it.

    >>> import equipoise as eq
    >>> isinstance(eq.intersections("race", "sex"), eq.Groups)
    True
    """

    weighs: ClassVar[bool] = False
    """Whether rows are weighed rather than told inside from outside."""

    max_groups: int = MAX_GROUPS
    """Refuse to form more groups than this."""

    def __post_init__(self) -> None:
        whole("max_groups", self.max_groups)

    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions whose cells make up every group."""
        raise NotImplementedError


GroupsLike = Groups | AttributeLike | Sequence[AttributeLike] | Mapping[str, object]
"""Groups as verbs take them: a collection, attributes to cross, or what a plan file holds."""


@kind("intersections")
@dataclass(frozen=True, slots=True, kw_only=True)
class Intersections(Groups):
    """Every combination of levels of up to ``depth`` attributes."""

    attributes: tuple[Dimension, ...]
    depth: int | None = None
    """How many attributes a group may combine; None means all."""

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        if not self.attributes:
            raise ClaimError('intersections needs at least one attribute: intersections("sex").')
        chosen = tuple(as_dimension(attribute) for attribute in self.attributes)
        _refuse_repeated("intersections", chosen)
        if self.depth is not None:
            whole("depth", self.depth)
        object.__setattr__(self, "attributes", chosen)

    def dimensions(self) -> tuple[Dimension, ...]:
        """The attributes."""
        return self.attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line(Groups):
    """Ranges of one numeric attribute."""

    attribute: Ordered

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        object.__setattr__(self, "attribute", as_ordered(self.attribute))

    def dimensions(self) -> tuple[Dimension, ...]:
        """The attribute."""
        return (self.attribute,)


@kind("intervals")
@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals(_Line):
    """Every range of one numeric attribute."""


@kind("thresholds")
@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(_Line):
    """Every half-line of one numeric attribute: below each end point, and from it up."""


@kind("boxes")
@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes(Groups):
    """Every rectangle of two numeric attributes."""

    attributes: tuple[Ordered, ...]

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        chosen = tuple(as_ordered(attribute) for attribute in self.attributes)
        if len({attribute.column for attribute in chosen}) != 2 or len(chosen) != 2:
            names = [attribute.column for attribute in chosen]
            raise ClaimError(f"boxes needs two different attributes; got {listing(names)}.")
        object.__setattr__(self, "attributes", chosen)

    def dimensions(self) -> tuple[Dimension, ...]:
        """The two attributes."""
        return self.attributes


@kind("masks")
@dataclass(frozen=True, slots=True, kw_only=True)
class Masks(Groups):
    """Groups given one by one, each by a formula; they may overlap."""

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        if not self.conditions:
            raise ClaimError('masks needs at least one group, such as masks(young="age < 25").')
        for given in self.conditions:
            if not isinstance(given, Condition):
                raise ClaimError(f"masks takes names with formulas; got {given!r}.")
        check_names("masks", "groups", self.conditions, self.max_groups)

    def dimensions(self) -> tuple[Dimension, ...]:
        """One two-level dimension for each group."""
        return self.conditions


@kind("bins")
@dataclass(frozen=True, slots=True, kw_only=True)
class Bins(Groups):
    """Each group of another collection, cut by ranges of the score."""

    groups: Groups
    by: Ordered

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        object.__setattr__(self, "groups", as_groups(self.groups))
        object.__setattr__(self, "by", as_ordered(self.by))
        # A second cut by the score would leave groups empty, and a tilt has no inside to cut.
        if self.by.edges is None or isinstance(self.groups, Bins) or self.groups.weighs:
            raise ClaimError("bins cuts a plain collection of groups once, at given edges.")
        _refuse_repeated("bins", self.dimensions())

    def dimensions(self) -> tuple[Dimension, ...]:
        """The other collection's dimensions, and the score."""
        return (*self.groups.dimensions(), self.by)


@known_keywords
def intersections(
    *attributes: AttributeLike, depth: int | None = None, max_groups: int = MAX_GROUPS
) -> Intersections:
    """All groups formed by one attribute, by two together, and so on up to ``depth``.

    >>> intersections("race", "sex", depth=1).dimensions()
    (Levels(column='race'), Levels(column='sex'))
    """
    return made_from(Intersections, attributes=attributes, depth=depth, max_groups=max_groups)


@known_keywords
def intervals(
    attribute: str,
    *,
    edges: Iterable[float] | None = None,
    grid: int | None = None,
    max_groups: int = MAX_GROUPS,
) -> Intervals:
    """All ranges of a numeric attribute.

    End points are every value in the data, or ``edges``, or ``grid`` quantiles of the data
    (computed once, and recorded in the result).

    >>> intervals("age", edges=(18, 30, 60)).attribute.edges
    (18.0, 30.0, 60.0)
    """
    return Intervals(attribute=_ordered(attribute, edges, grid), max_groups=max_groups)


@known_keywords
def thresholds(
    attribute: str,
    *,
    edges: Iterable[float] | None = None,
    grid: int | None = None,
    max_groups: int = MAX_GROUPS,
) -> Thresholds:
    """All half-lines of a numeric attribute: under each end point, and from it up.

    >>> thresholds("age", grid=10).attribute.quantiles
    10
    """
    return Thresholds(attribute=_ordered(attribute, edges, grid), max_groups=max_groups)


@known_keywords
def boxes(
    *attributes: str,
    edges: Mapping[str, Iterable[float]] | None = None,
    grid: int | None = 10,
    max_groups: int = MAX_GROUPS,
) -> Boxes:
    """All rectangles of two numeric attributes, on explicit edges or a quantile grid of each.

    >>> len(boxes("age", "income", grid=8).attributes)
    2
    """
    if edges is not None and not isinstance(edges, Mapping):
        raise ClaimError(f"edges maps each attribute to its edges; got {edges!r}.")
    for name in attributes:
        as_ordered(name)
    given = dict(edges or {})
    unknown = [name for name in given if name not in attributes]
    if unknown:
        raise ClaimError(
            f"edges names {listing(unknown)}; the attributes are {listing(attributes)}."
        )
    chosen = tuple(
        _ordered(name, given.get(name), None if name in given else grid) for name in attributes
    )
    return Boxes(attributes=chosen, max_groups=max_groups)


@known_keywords
def masks(
    conditions: Mapping[str, str] | None = None, /, *, max_groups: int = MAX_GROUPS, **named: str
) -> Masks:
    """Groups of your own, each a name and a formula; a boolean column is the simplest formula.

    >>> masks({"young men": "age < 25 and sex == 'Male'"}).dimensions()[0].name
    'young men'
    """
    if conditions is not None and not isinstance(conditions, Mapping):
        raise ClaimError(f"masks takes a mapping from name to formula; got {conditions!r}.")
    given = [*(conditions or {}).items(), *named.items()]
    return Masks(
        conditions=tuple(Condition(name, formula) for name, formula in given),
        max_groups=max_groups,
    )


@known_keywords
def leaves(tree: object, features: Sequence[str], *, max_groups: int = MAX_GROUPS) -> Masks:
    """The leaves of a fitted scikit-learn tree as groups with readable rules.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor(max_depth=1).fit([[20], [30], [50], [60]], [0, 0, 1, 1])
    >>> [group.name for group in leaves(tree, ["age"]).conditions]
    ['age <= 40', 'age > 40']
    """
    fitted = getattr(tree, "tree_", None)
    if fitted is None:
        raise ClaimError(
            "leaves needs a fitted scikit-learn decision tree; this one is not fitted."
        )
    if len(features) != fitted.n_features:
        raise ClaimError(
            f"The tree was fitted on {fitted.n_features} features; {len(features)} were named."
        )
    rules = _leaf_rules(fitted, list(features), 0, [])
    return Masks(
        # Not by a mapping: cuts that differ in the eleventh digit read alike, and must not merge.
        conditions=tuple(Condition(name, formula) for name, formula in rules),
        max_groups=max_groups,
    )


@known_keywords
def bins(
    groups: GroupsLike,
    *,
    edges: Iterable[float] | None = None,
    number: int = 10,
    max_groups: int = MAX_GROUPS,
) -> Bins:
    """Each group cut by ranges of the score: equal widths on [0, 1], or explicit ``edges``.

    >>> bins(intersections("sex"), number=4).by.edges
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    whole("number", number)
    chosen = [i / number for i in range(number + 1)] if edges is None else edges
    score = made_from(Ordered, "score", edges=chosen, role=True)
    return made_from(Bins, groups=groups, by=score, max_groups=max_groups)


def everyone() -> Masks:
    """The collection of one group that holds every row.

    >>> everyone().dimensions()[0].name
    'everyone'
    """
    # A formula that reads no column holds for every row, whatever is missing in it.
    return masks(everyone="1 == 1")


def as_groups(value: object) -> Groups:
    """A collection given as a value, as plain data, or as the attribute names to cross."""
    if isinstance(value, Groups):
        return value
    if isinstance(value, Mapping) and "kind" in value:
        return as_groups(from_plain(value))
    if isinstance(value, str | Levels | Binned | Condition):
        return intersections(value)
    if isinstance(value, list | tuple) and value:
        return intersections(*value)
    raise ClaimError(
        'across= takes groups such as intersections("race", "sex"), or attribute names; '
        f"got {value!r}."
    )


def _ordered(name: str, edges: Iterable[float] | None, grid: int | None) -> Ordered:
    return made_from(Ordered, name, edges=edges, quantiles=grid)


def check_names(
    called: str, what: str, given: "Sequence[Dimension | Computed]", limit: int
) -> None:
    """Refuse groups that were named one by one if two share a name, or if they are too many."""
    _refuse_repeated(called, given)
    if len(given) > limit:
        raise ClaimError(
            f"{called} names {len(given):,} {what}, more than the limit of {limit:,}. "
            "Name fewer, or pass max_groups=…."
        )


def _refuse_repeated(called: str, given: "Sequence[Dimension | Computed]") -> None:
    times = Counter(one.name for one in given)
    repeated = sorted(name for name, number in times.items() if number > 1)
    if repeated:
        raise ClaimError(f"{called} names {listing(repeated)} more than once.")


def _leaf_rules(
    fitted: object, features: list[str], node: int, path: list[tuple[str, str, float]]
) -> list[tuple[str, str]]:
    tree: Any = fitted
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        steps = path or [("", "", 0.0)]
        words = " and ".join(f"{name} {sign} {cut:.10g}" for name, sign, cut in steps if name)
        # The formula keeps every digit of the cut; the words are for reading.
        formula = " and ".join(f"column({n!r}) {s} {c!r}" for n, s, c in steps if n)
        return [(words or "everyone", formula or "1 == 1")]
    name, cut = features[int(tree.feature[node])], float(tree.threshold[node])
    return [
        *_leaf_rules(tree, features, left, [*path, (name, "<=", cut)]),
        *_leaf_rules(tree, features, right, [*path, (name, ">", cut)]),
    ]


# --- Tilts: collections of weights under which the population is looked at anew ---

Weigh = Callable[[Mapping[str, npt.NDArray[Any]]], npt.ArrayLike]
"""Takes an array for each column and returns the weight of each entry."""


@kind("computed_tilt")
@dataclass(frozen=True, slots=True)
class Computed:
    """A weight that a Python function works out, row by row, from some columns."""

    name: str
    function: Weigh
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ClaimError(
                f"The tilt {self.name!r} needs the function itself, which a plan cannot hold; got "
                f"{self.function!r}. Write the weight as a formula or as a column."
            )
        if not self.columns:
            raise ClaimError(
                f"The tilt {self.name!r} is a function; say which columns it reads: columns=…."
            )


@kind("tilts")
@dataclass(frozen=True, slots=True, kw_only=True)
class Tilts(Groups):
    """Weights of at least zero, each seen as a population of its own; they may overlap."""

    weighs: ClassVar[bool] = True

    weights: tuple[Tilt | Computed, ...]

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        if not self.weights:
            raise ClaimError('tilts needs at least one weight, such as tilts(older="age / 100").')
        for given in self.weights:
            if not isinstance(given, Tilt | Computed):
                raise ClaimError(f"tilts takes names with formulas or functions; got {given!r}.")
        check_names("tilts", "weights", self.weights, self.max_groups)

    def dimensions(self) -> tuple[Dimension, ...]:
        """The weights that are formulas, and the columns that functions read."""
        needed: list[Dimension] = []
        for tilt in self.weights:
            if isinstance(tilt, Tilt):
                needed.append(tilt)
            else:
                # The function is asked once for each combination of values, so these are the cells.
                needed += [Values(column) for column in tilt.columns]
        return tuple(dict.fromkeys(needed))


@known_keywords
def tilts(
    *weights: str | Mapping[str, str | Weigh],
    columns: Sequence[str] | None = None,
    max_groups: int = MAX_GROUPS,
    **named: str | Weigh,
) -> Tilts:
    """Weights under which to look at the population: columns, formulas or functions.

    Under a tilt h the metric is E[h L] / E[h]: its mean if rows were met in proportion to h. Only
    the proportions of a tilt matter, not its scale. A weight of 0 and 1 is a group.

    Parameters
    ----------
    weights
        Names of columns that hold weights, or a mapping from names to formulas or functions.
    columns
        The columns that functions read. A function takes a mapping from these names to arrays and
        returns one weight for each entry; it may not look at other entries, since it is asked once
        for each combination of values that occurs. A plan cannot hold a function.
    max_groups
        Refuse more tilts than this.
    named
        Formulas or functions by name.

    Examples
    --------
    >>> import equipoise as eq
    >>> [tilt.name for tilt in eq.tilts("urban_weight", older="age / 100").weights]
    ['urban_weight', 'older']
    """
    given: list[tuple[str, str | Weigh]] = []
    for weight in weights:
        if isinstance(weight, Mapping):
            given += weight.items()
        elif isinstance(weight, str) and weight:
            # Marked as a column, since a bare name could be that of a role.
            given.append((weight, f"column({weight!r})"))
        else:
            raise ClaimError(
                f"tilts takes names of columns, or names with formulas; got {weight!r}."
            )
    given += named.items()
    read = () if columns is None else columns_named("columns", columns)
    if read and not any(callable(weight) for _, weight in given):
        raise ClaimError("columns= is for functions, and none of these tilts is one.")
    made = tuple(Computed(n, w, read) if callable(w) else Tilt(n, w) for n, w in given)
    return Tilts(weights=made, max_groups=max_groups)
