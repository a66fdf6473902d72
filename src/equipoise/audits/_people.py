"""Who is comparable with whom: cells of people by features and label."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._codec import canonical
from equipoise._validate import is_word, known_name, listing, short
from equipoise.cells import Cells, gather
from equipoise.cells.gather import MAX_CELLS, all_cells, scan_for
from equipoise.cells.groups import attribute_text, level_where, shared_levels
from equipoise.cells.query import Scan, numbers
from equipoise.cells.rows import MAX_ROWS, cell_numbers, level_codes, pull_rows
from equipoise.cells.tally import Axis, steady_cells, totals_of
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap, only_means
from equipoise.claims.groups import Answers, Dimension, Intersections, Levels, Values, as_dimension
from equipoise.claims.metric import METRICS, as_metric, error_rate
from equipoise.errors import ClaimError, EquipoiseError, OptionError
from equipoise.methods import transport
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray, merge
from equipoise.methods.transport import Solution, TransportPlan
from equipoise.trail import Trail
from equipoise.trail.engine import fetch, one_moment
from equipoise.trail.trail import expect_trail

# --- Who is comparable with whom: cells of people by features and label ---

#: More cells than this are refused, those without rows included.
MAX_PEOPLE = 200_000
#: Up to this many, a model is asked about every combination of levels there could be.
MAX_CROSS = 20_000
#: A feature or label with more levels is more likely a measurement than a kind of people.
MAX_LEVELS = 200

_LABEL = Metric(
    name="label", value="label", binary=("label",), by_role=True, zero_one=True, low=0.0, high=1.0
)
#: The same where labels are any finite set: rows that have one.
_LABELLED = Metric(
    name="label", value="label == label", by_role=True, zero_one=True, low=0.0, high=1.0
)
_DIFFERS = Metric(
    name="error_rate", value="label != prediction", by_role=True, zero_one=True, low=0.0, high=1.0
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Kinds of people: one cell for each combination of features and label."""

    features: tuple[Axis, ...]
    """The features, the varied ones included."""
    varied: tuple[int, ...]
    """Positions of the varied features."""
    labels: tuple[object, ...]
    """What the label can be: 0 and 1, or any finite set."""
    index: IntArray
    """Level of each cell along each feature, and last the position of its label."""
    counts: IntArray
    """Rows of each cell."""
    sample: transport.Sample
    """The independent units that the rows make up, and the shares of the cells."""
    losses: FloatArray | None
    """Mean loss of the rows of each cell; None if the trail was not asked for it."""
    mixed: int
    """Cells whose rows do not all have the same loss."""
    cells: Cells
    """The cells as gathered, for the record."""
    complete: bool = False
    """Whether every combination of levels is a cell."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def label(self) -> IntArray:
        """Position of each cell's label."""
        return self.index[:, -1]

    def label_of(self, cell: int) -> object:
        """The label of a cell as data."""
        return self.labels[int(self.label[cell])]

    def only(self, sample: transport.Sample) -> "People":
        """The same kinds of people, with some of the rows."""
        before = np.maximum(self.sample.share * self.sample.total, 1e-300)
        counts = np.rint(self.counts * (sample.share * sample.total / before)).astype(np.int64)
        return dataclasses.replace(self, counts=counts, sample=sample)

    def classes(self) -> IntArray:
        """The class of each cell: label and every feature that is not varied."""
        rest = [i for i in range(self.index.shape[1]) if i not in self.varied]
        _, place = np.unique(self.index[:, rest], axis=0, return_inverse=True)
        return place.reshape(-1).astype(np.int64)

    def gaps(self, free: bool) -> int:
        """Kinds of people who could be compared with a combination that is not among the cells.

        With ``free`` moves that is a combination of the varied features; otherwise any at all,
        since whoever sets other costs may have any of them in reach.
        """
        where = self.classes() if free else self.label
        across = self.varied if free else range(len(self.features))
        every = math.prod(np.unique(self.index[:, i]).size for i in across)
        held = np.bincount(where)
        return int(held[held < every].sum())

    def where(self, cell: int) -> dict[str, object]:
        """The features of a cell as data."""
        return {
            axis.name: level_where(axis, int(self.index[cell, i]))
            for i, axis in enumerate(self.features)
        }

    def words(self, cell: int, only: Sequence[int] | None = None) -> str:
        """The features of a cell in words; ``only`` some of them if asked."""
        shared = shared_levels(self.features)
        texts = []
        for i in range(len(self.features)) if only is None else only:
            axis = self.features[i]
            level = axis.levels[int(self.index[cell, i])]
            texts.append(attribute_text(axis.dimension, level, level not in shared))
        return ", ".join(texts)


def find_people(
    trail: Trail, features: object, vary: object, loss: Metric | None, max_levels: int = MAX_LEVELS
) -> People:
    """Gather the cells in one scan; ``loss`` is None when a model will be asked for losses."""
    number = _read_as_number(expect_trail(trail))
    chosen = _features(trail, features)
    varied = _varied(vary, chosen)
    label = trail.roles.column("label")
    # Here alone the label is one more attribute: comparable people share it.
    added = (label,) if trail.roles.weight is None else (label, trail.roles.weight)
    trail = dataclasses.replace(trail, attributes=(*trail.attributes, *added))
    ask = _Ask(trail=trail, features=chosen, label=Levels(label), loss=loss, number=number)
    try:
        people = _from_scan(ask, varied)
    except _TooManyError:
        with one_moment(trail.frame, trail.source):
            people = _from_trail(ask, varied)
    _check_levels(people, max_levels)
    return people


class _TooManyError(Exception):
    """One query cannot tell all, since rows of one cell have too many weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What is asked of a table, whether its label is a finite set or 0 and 1."""

    trail: Trail
    features: tuple[Dimension, ...]
    label: Levels
    loss: Metric | None
    number: bool | None
    """Whether the label is read as 0 and 1; None where that depends on its values."""

    def claims(self, finite: bool) -> list[Gap]:
        """The label and the loss, by cells."""
        # Labels that are not 0 and 1 are compared with predictions as they are.
        loss = _DIFFERS if self.compares(finite) else self.loss
        metrics = [_LABELLED if finite else _LABEL, *([] if loss is None else [loss])]
        across = Intersections(attributes=(*self.features, self.label))
        return [Gap(metric=m, across=across, target=overall()) for m in metrics]

    def compares(self, finite: bool) -> bool:
        """Whether labels and predictions are compared by their values."""
        return finite and self.loss is error_rate

    @property
    def weight(self) -> Values | None:
        """The weights, where each row is a unit and so each weight is one more kind of row."""
        roles = self.trail.roles
        return Values(roles.weight) if roles.weight and roles.cluster is None else None


def _from_scan(ask: _Ask, varied: tuple[int, ...]) -> People:
    """The people by one query, cut by everything that is asked of their rows."""
    possible = [not ask.number] if ask.number is not None else [False, True]
    compared = any(ask.compares(finite) for finite in possible)
    if compared and not _comparable(ask.trail):
        raise _TooManyError
    claims = [claim for finite in possible for claim in ask.claims(finite)]
    only_means(claims)
    predicted = (Answers("prediction"),) if compared else ()
    weights = () if ask.weight is None else (ask.weight,)
    try:
        scan = scan_for(ask.trail, claims, MAX_CELLS - 1, (*predicted, *weights))
    except ClaimError as error:
        # said again, and of which column, by the query without them
        raise _TooManyError from error
    labels = _sorted(scan.table[f"key{len(ask.features)}"])
    finite = _is_finite(labels) if ask.number is None else not ask.number
    if ask.compares(finite):
        _check_predictions(ask.trail, labels, _sorted(scan.table[f"key{len(ask.features) + 1}"]))
    wanted = ask.claims(finite)
    found = all_cells(scan.narrowed(wanted), wanted)
    if found[-1].counted > MAX_ROWS and weights:
        raise _TooManyError
    kinds = _weighed(scan, found[-1]) if weights else None
    return _from_cells(found, varied, ask.loss, finite, kinds)


def _from_trail(ask: _Ask, varied: tuple[int, ...]) -> People:
    """The people where one query cannot tell all."""
    trail, label = ask.trail, ask.label.column
    labels = [] if ask.number is not None else _values(trail, label)
    finite = _is_finite(labels) if ask.number is None else not ask.number
    if ask.compares(finite):
        prediction = _values(trail, trail.roles.column("prediction"))
        _check_predictions(trail, _values(trail, label), prediction)
    found = gather(trail, ask.claims(finite))
    kinds = None
    if ask.weight is not None:
        rows = pull_rows(trail, found[-1].metric, found[-1])
        kinds = rows.cell, rows.weights, rows.counts
    return _from_cells(found, varied, ask.loss, finite, kinds)


def _weighed(scan: Scan, cells: Cells) -> tuple[IntArray, FloatArray, IntArray]:
    """The cell, the weight and the number of rows of one cell and weight, which comes last."""
    rows = np.rint(totals_of(scan, scan.position(cells.metric)).rows).astype(np.int64)
    codes = [level_codes(axis, scan.table[f"key{i}"]) for i, axis in enumerate(cells.axes)]
    cell = cell_numbers(np.stack(codes, axis=1), cells.index)
    weight = numbers(scan.table[f"key{len(scan.dimensions) - 1}"])
    return cell[rows > 0], weight[rows > 0], rows[rows > 0]


def _read_as_number(trail: Trail) -> bool | None:
    """Whether the label is read as 0 and 1, and not as a finite set of its own."""
    column = trail.roles.column("label")
    if "label" in trail.positive or isinstance(trail.schema[column], nw.Boolean):
        return True
    return None if trail.schema[column].is_numeric() else False


def _is_finite(labels: Sequence[object]) -> bool:
    return any(value not in (0, 1) for value in labels)


def _comparable(trail: Trail) -> bool:
    """Whether labels and predictions are of one kind, so that an engine can compare them."""
    kinds = [trail.schema[trail.roles.column(role)] for role in ("label", "prediction")]
    return kinds[0].is_numeric() == kinds[1].is_numeric()


def _values(trail: Trail, column: str) -> list[object]:
    """The values a column holds, in order, without the missing one."""
    found = fetch(trail.frame.select(value=trail.key(column)).unique(), trail.source)["value"]
    return _sorted(found)


def _sorted(column: AnyArray) -> list[object]:
    # engines have several words for missing, one of which cannot even be compared
    values = {canonical(value) for value in column.tolist()} - {None}
    return sorted(values, key=lambda value: (str(type(value)), value))


def _check_predictions(trail: Trail, labels: list[object], predictions: list[object]) -> None:
    """Predictions are values of the label; written in another way they could never be right."""
    label, prediction = trail.roles.column("label"), trail.roles.column("prediction")
    foreign = [value for value in predictions if value not in labels]
    if foreign:
        raise EquipoiseError(
            f"The prediction column {prediction!r} holds {listing(foreign, 6)}, which the label "
            f"column {label!r} never does; the label holds {listing(labels, 6)}. Such a prediction "
            "would count as wrong for everybody. Write both in the same way, or leave out the rows "
            "whose prediction is not a value of the label."
        )


def with_unseen(people: People) -> People:
    """The same people, and those without rows on whom a model can be asked.

    All combinations of levels, since any of them may turn up in the population; if these are too
    many, those that differ from people in the table only where varied.
    """
    sizes = [len(axis) for axis in people.features]
    sizes.append(len(people.labels))
    whole = math.prod(sizes) <= MAX_CROSS
    index = _every(*sizes) if whole else _varied_everywhere(people)
    every, place = np.unique(np.concatenate([people.index, index]), axis=0, return_inverse=True)
    counts, old = np.zeros(len(every), dtype=np.int64), place.reshape(-1)[: len(people)]
    counts[old] = people.counts
    return dataclasses.replace(
        people,
        index=every,
        counts=counts,
        sample=people.sample.moved(old, len(every)),
        losses=None,
        mixed=0,
        complete=whole,
    )


def about_unseen(people: People) -> tuple[str, ...]:
    """What has to be assumed of people who are not in the table."""
    values = "the values of the features found in the table are all there are"
    weights = "people of kinds that are not in the table have weights like those seen"
    return (values, weights) if people.cells.weighted else (values,)


def _every(*sizes: int) -> IntArray:
    """All combinations of positions, in order."""
    return np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int64)


def _varied_everywhere(people: People) -> IntArray:
    """Each class of people in the table, at every combination of the varied levels."""
    combinations = _every(*(len(people.features[i]) for i in people.varied))
    _, first = np.unique(people.classes(), return_index=True)
    if first.size * len(combinations) > MAX_PEOPLE:
        raise ClaimError(
            f"The features make {first.size * len(combinations):,} kinds of people, more than "
            f"{MAX_PEOPLE:,}. Use fewer features, or fewer levels of those that are varied."
        )
    index = np.repeat(people.index[first], len(combinations), axis=0)
    index[:, list(people.varied)] = np.tile(combinations, (first.size, 1))
    return index


def _from_cells(
    found: Sequence[Cells],
    varied: tuple[int, ...],
    loss: Metric | None,
    finite: bool,
    kinds: tuple[IntArray, FloatArray, IntArray] | None,
) -> People:
    labels, cells = found[0], steady_cells(found[-1])
    # A row counts if both the label and what the loss reads are known, and it weighs anything.
    keep = (labels.rows > 0) & (cells.weight > 0)
    raw = cells.index.copy()
    if not finite:
        mean = labels.total[keep] / labels.weight[keep]
        raw[keep, -1] = np.rint(mean).astype(np.int64)
    names = ("rows", "weight", "total", "square")
    # Several values of the label may stand for 0.
    index, merged = merge(raw[keep], {name: getattr(cells, name)[keep] for name in names})
    mean = merged["total"] / merged["weight"]
    mixed = _spread(mean, merged["square"] / merged["weight"])
    counts = np.rint(merged["rows"]).astype(np.int64)
    place = np.full(len(cells), -1, dtype=np.int64)
    place[keep] = cell_numbers(raw[keep], index)
    return People(
        features=cells.axes[:-1],
        varied=varied,
        labels=_known(cells.axes[-1].levels) if finite else (0, 1),
        index=index,
        counts=counts,
        sample=_sample(cells, place, counts, kinds),
        losses=None if loss is None else mean,
        mixed=0 if loss is None else int(np.count_nonzero(mixed)),
        cells=cells,
    )


def _known(levels: tuple[object, ...]) -> tuple[object, ...]:
    # rows without a label count nowhere; the missing level comes last
    return tuple(level for level in levels if level is not None)


def _sample(
    cells: Cells,
    place: IntArray,
    counts: IntArray,
    kinds: tuple[IntArray, FloatArray, IntArray] | None,
) -> transport.Sample:
    """The independent units: clusters, weighted rows or plain rows."""
    table = cells.clusters
    if table is None and kinds is None:
        return transport.plain_sample(counts, counts.size)
    rows = float(cells.weight.sum() ** 2 / cells.weight2.sum())
    if table is not None:
        there = place[table.cell] >= 0
        unit = np.unique(table.cluster[there], return_inverse=True)[1]
        at, weight = place[table.cell[there]], table.weight[there]
        return transport.unit_sample(unit, at, weight, cells=counts.size, rows=rows)
    assert kinds is not None
    at, weights, rows_of = place[kinds[0]], kinds[1], kinds[2]
    # Rows of one cell and weight are alike, so they are listed once.
    pairs = np.stack([at, weights], axis=1)[at >= 0]
    units, kind = np.unique(pairs, axis=0, return_inverse=True)
    times = np.bincount(kind.reshape(-1), rows_of[at >= 0]).astype(np.int64)
    cell, weight = units[:, 0].astype(np.int64), units[:, 1]
    return transport.unit_sample(
        np.arange(len(units)), cell, weight, cells=counts.size, times=times, rows=rows
    )


def _spread(mean: FloatArray, square: FloatArray) -> BoolArray:
    return np.asarray(square - mean**2 > 1e-9 * np.maximum(square, 1e-300))


def _features(trail: Trail, features: object) -> tuple[Dimension, ...]:
    asked = trail.attributes if features is None else features
    if isinstance(asked, str) or not isinstance(asked, list | tuple) or not asked:
        raise OptionError(
            f"features must be a list of attributes, such as ['race', 'sex']; got {features!r}."
        )
    chosen = tuple(as_dimension(feature) for feature in asked)
    played = {column: role for role, column in trail.roles}
    for dimension in chosen:
        if dimension.name in played:
            raise ClaimError(
                f"{dimension.name!r} is the {played[dimension.name]} column, not a feature. "
                "People are compared by what the model knew about them."
            )
    return chosen


def _varied(vary: object, features: Sequence[Dimension]) -> tuple[int, ...]:
    asked = [vary] if isinstance(vary, str) else vary
    if not isinstance(asked, list | tuple) or not asked:
        raise OptionError(
            f"vary names one or more features, such as ['race', 'sex']; got {vary!r}."
        )
    names = [dimension.name for dimension in features]
    for name in asked:
        known_name("Varied feature", name, names, ClaimError)
    if len(set(asked)) < len(asked):
        raise OptionError(f"vary names a feature twice: {listing(asked)}.")
    return tuple(sorted(names.index(name) for name in asked))


def _check_levels(people: People, most: int) -> None:
    for position, axis in enumerate(people.features):
        found = np.unique(people.index[:, position]).size
        if found > most:
            raise ClaimError(
                f"Feature {axis.name!r} has {found:,} levels, more than {most:,}: hardly anybody "
                f"would be comparable. Cut it into ranges with binned({axis.name!r}, cuts=…), or "
                "leave it out with features=…."
            )
    if len(people.labels) > most:
        raise ClaimError(
            f"The label has {len(people.labels):,} values, more than {most:,}: hardly anybody "
            "would be comparable. Comparable people share the label; cut it into few kinds first."
        )
    sizes = [np.unique(people.index[:, i]).size for i in people.varied]
    if math.prod(sizes) < 2:
        names = listing(people.features[i].name for i in people.varied)
        raise ClaimError(
            f"{names} has one level only, so nobody differs in it. Vary a feature with two or more."
        )


# --- Among equally bad kinds of people, the one that differs least ---


def fewest_changes(people: People, losses: FloatArray, solution: Solution) -> Solution:
    """The same solution of free moves, with nobody changed in more features than needed.

    Where moves are free, all cells of a class with the largest loss are equally good targets. The
    one with the fewest changes says most plainly what makes the difference.
    """
    plan = solution.plan
    moved = np.flatnonzero(plan.source != plan.target)
    target = plan.target.copy()
    alike = _alike(people.classes(), losses)
    for i in moved.tolist():
        target[i] = _closest(people.index, plan.source[i], alike[int(plan.target[i])])
    after = np.bincount(target, plan.mass, minlength=len(people)).astype(np.float64)
    again = TransportPlan(source=plan.source, target=target, mass=plan.mass, gain=plan.gain)
    return dataclasses.replace(solution, plan=again, after=after)


def _closest(index: IntArray, cell: int, among: IntArray) -> int:
    changes = (index[among] != index[cell]).sum(axis=1)
    return int(among[np.argmin(changes)])


def _alike(classes: IntArray, losses: FloatArray) -> dict[int, IntArray]:
    """For each cell, the cells of its class with exactly its loss."""
    order = np.lexsort((np.arange(len(losses)), losses, classes))
    breaks = (np.diff(classes[order]) != 0) | (np.diff(losses[order]) != 0)
    found: dict[int, IntArray] = {}
    for cells in np.split(order, np.flatnonzero(breaks) + 1):
        found.update(dict.fromkeys(cells.tolist(), cells))
    return found


# --- Losses in every cell: read off the trail, or found by asking the model ---

Loss = str | Metric | Callable[[Any, Any], Any]
Model = Callable[[Any], Any]


def loss_metric(loss: object, model: object) -> Metric | None:
    """The metric that gives each row's loss, or None if the model will be asked."""
    if model is not None:
        if not is_word(loss, "zero-one") and (not callable(loss) or isinstance(loss, Metric)):
            raise OptionError(
                "With model=…, loss is 'zero-one' or a function of (labels, model's answers); "
                f"got {short(repr(loss))}."
            )
        return None
    if isinstance(loss, Metric) or (isinstance(loss, str) and loss in METRICS):
        return as_metric(loss)
    if is_word(loss, "zero-one"):
        return error_rate
    raise OptionError(
        "From a trail alone, loss is 'zero-one' or a metric such as equipoise.brier; to use a "
        f"function of (labels, answers), pass model=… as well. Got {short(repr(loss))}."
    )


def asked_losses(trail: Trail, people: People, model: object, loss: object) -> FloatArray:
    """The loss in every cell, by asking the model about each combination of features once."""
    kinds, place = np.unique(people.index[:, :-1], axis=0, return_inverse=True)
    answers = _answers(people, kinds, model)[place.reshape(-1)]
    finite = people.labels != (0, 1)
    labels = np.array(people.labels)[people.label] if finite else people.label.astype(np.float64)
    if callable(loss):
        return _losses(loss, labels, answers)
    if finite:
        return _other_labels(people, answers)
    return np.asarray(labels != _decisions(trail, people, answers), dtype=np.float64)


def _answers(people: People, kinds: AnyArray, model: object) -> AnyArray:
    predict = getattr(model, "predict", model)
    if not callable(predict):
        raise OptionError(
            f"model must be a function of a frame, or have predict(); got {type(model).__name__}."
        )
    frame = _frame(people, kinds)
    try:
        answers = predict(frame)
    except Exception as error:
        raise EquipoiseError(
            f"The model failed on a {type(frame).__module__.split('.')[0]} frame of "
            f"{len(kinds):,} rows with columns {listing(axis.name for axis in people.features)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    made = np.asarray(answers)
    if made.shape == (len(kinds), 1):
        made = made[:, 0]
    if made.shape != (len(kinds),):
        raise EquipoiseError(
            f"The model must return one answer for each of {len(kinds):,} rows; "
            f"it returned an array of shape {made.shape}."
        )
    return made


def _frame(people: People, kinds: AnyArray) -> object:
    import narwhals as nw

    columns = {}
    for position, axis in enumerate(people.features):
        if not isinstance(axis.dimension, Levels):
            raise OptionError(
                f"A model cannot be asked about a range of {axis.name!r}: it needs values. Add a "
                "column that names the ranges to the table the model reads, or audit the trail "
                "alone, without model=…."
            )
        columns[axis.name] = [axis.levels[i] for i in kinds[:, position].tolist()]
    backend = next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
    if backend is None:
        raise EquipoiseError("Asking a model needs pandas, polars or pyarrow; install one of them.")
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]


def _decisions(trail: Trail, people: People, answers: AnyArray) -> FloatArray:
    """Answers as 0 and 1: given so, or as the values that the label column holds."""
    values = [canonical(value) for value in answers.tolist()]
    positive = trail.positive.get("label")
    label_values = people.cells.axes[-1].levels
    if (
        positive is not None
        and answers.dtype != np.bool_
        and all(value in label_values for value in values)
    ):
        return np.array([float(value == positive) for value in values])
    wrong = [value for value in dict.fromkeys(values) if value not in (0, 1)]
    if wrong:
        known = (
            "" if positive is None else f", or a value of the label ({listing(label_values, 4)})"
        )
        raise EquipoiseError(
            f"With loss='zero-one' the model must return 0 or 1{known}; it returned "
            f"{listing(wrong, 3)}. Turn its scores into decisions, or pass a loss of your own."
        )
    return np.array([float(value) for value in values])


def _other_labels(people: People, answers: AnyArray) -> FloatArray:
    """Whether each answer is another label than the cell's; answers are values of the label."""
    values = [canonical(value) for value in answers.tolist()]
    wrong = [value for value in dict.fromkeys(values) if value not in people.labels]
    if wrong:
        raise EquipoiseError(
            f"With loss='zero-one' the model must return values of the label "
            f"({listing(people.labels, 6)}); it returned {listing(wrong, 6)}, which would count as "
            "wrong for everybody. Let it answer in the words of the label, or pass a loss of your "
            "own."
        )
    pairs = zip(people.label.tolist(), values, strict=True)
    return np.array([float(people.labels[label] != value) for label, value in pairs])


def _losses(loss: Callable[..., object], labels: AnyArray, answers: AnyArray) -> FloatArray:
    try:
        made = np.asarray(loss(labels, answers), dtype=np.float64)
    except Exception as error:
        raise EquipoiseError(f"The loss failed: {type(error).__name__}: {error}") from error
    if made.shape != labels.shape:
        raise EquipoiseError(
            f"The loss must return one number for each of {labels.size:,} cells; "
            f"it returned an array of shape {made.shape}."
        )
    return made
