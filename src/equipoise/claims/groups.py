"""Group collections: who is compared. Each is a value that knows which dimensions it needs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from equipoise._codec import Written, from_plain, kind
from equipoise._validate import known_keywords, listing, whole
from equipoise.claims.dimension import (
    Binned,
    Condition,
    Dimension,
    Levels,
    Ordered,
    as_dimension,
    as_ordered,
)
from equipoise.errors import ClaimError

#: More groups than this are refused unless the collection says otherwise.
MAX_GROUPS = 250_000


class Named(Protocol):
    """Whatever goes by a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


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
    *attributes: str | Dimension, depth: int | None = None, max_groups: int = MAX_GROUPS
) -> Intersections:
    """All groups formed by one attribute, by two together, and so on up to ``depth``.

    >>> intersections("race", "sex", depth=1).dimensions()
    (Levels(column='race'), Levels(column='sex'))
    """
    # Names become dimensions in the value itself, which a plan file may build as well.
    return Intersections(attributes=attributes, depth=depth, max_groups=max_groups)  # type: ignore[arg-type]


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
def leaves(tree: Any, features: Sequence[str], *, max_groups: int = MAX_GROUPS) -> Masks:
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
    groups: Groups,
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
    score = Ordered("score", edges=chosen, role=True)  # type: ignore[arg-type]
    return Bins(groups=groups, by=score, max_groups=max_groups)


def everyone() -> Masks:
    """The collection of one group that holds every row.

    >>> everyone().dimensions()[0].name
    'everyone'
    """
    # A formula that reads no column holds for every row, whatever is missing in it.
    return masks(everyone="1 == 1")


def as_groups(value: Any) -> Groups:
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
    # The value itself checks its fields, since a plan file may build it as well.
    return Ordered(name, edges=edges, quantiles=grid)  # type: ignore[arg-type]


def check_names(called: str, what: str, given: Sequence[Named], limit: int) -> None:
    """Refuse groups that were named one by one if two share a name, or if they are too many."""
    _refuse_repeated(called, given)
    if len(given) > limit:
        raise ClaimError(
            f"{called} names {len(given):,} {what}, more than the limit of {limit:,}. "
            "Name fewer, or pass max_groups=…."
        )


def _refuse_repeated(called: str, given: Sequence[Named]) -> None:
    times = Counter(one.name for one in given)
    repeated = sorted(name for name, number in times.items() if number > 1)
    if repeated:
        raise ClaimError(f"{called} names {listing(repeated)} more than once.")


def _leaf_rules(
    tree: Any, features: list[str], node: int, path: list[tuple[str, str, float]]
) -> list[tuple[str, str]]:
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
