"""A first plan from a table: what its columns seem to be, with comments on what to decide."""

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw

from equipoise._codec import Scalar, canonical
from equipoise._validate import listing
from equipoise.claims.metric import as_metric
from equipoise.errors import PlanError
from equipoise.plan.plan import UNSAID
from equipoise.trail import Trail, read
from equipoise.trail.delimited import COUNT_NAMES
from equipoise.trail.engine import engine_errors, fetch, number_of_levels, without_password
from equipoise.trail.trail import is_text

#: Attributes with more levels than this are not proposed for groups.
MOST_LEVELS = 20
#: Whole numbers with more different values than this are cut into ranges; others with more than 4.
MOST_NUMBERS = 10
#: Values and rows of a table up to which they are looked at here; beyond, the engine counts.
HELD, HELD_ROWS = 2_000_000, 50_000
#: Ranges into which a number is cut.
BINS = 4

_USUAL = {
    "label": ("label", "y_true", "y", "outcome", "target", "actual", "truth", "observed"),
    "prediction": ("prediction", "y_pred", "pred", "predicted", "decision", "decided"),
    "score": ("score", "y_score", "probability", "prob", "y_prob", "risk", "proba"),
    "weight": ("weight", "sample_weight", "weights"),
    "count": COUNT_NAMES,
}
#: Beginnings of words that name decisions; a column of two values with one of them may be guessed.
_DECISIONS = [
    "approv",
    "accept",
    "admit",
    "admis",
    "award",
    "hire",
    "hiring",
    "select",
    "offer",
    "grant",
    "decision",
    "decid",
    "den",
    "reject",
    "predict",
    "callback",
    "shortlist",
    "invit",
]
#: Beginnings of words that name what happened, or what a model said: never proposed as attributes.
_OUTCOMES = (
    *_DECISIONS,
    *[
        "label",
        "target",
        "outcome",
        "result",
        "default",
        "recid",
        "reoffend",
        "rearrest",
        "repa",
        "paid",
        "score",
        "risk",
        "prob",
        "pred",
        "decile",
        "truth",
        "actual",
        "observed",
        "charged_off",
        "churn",
        "fraud",
        "y_",
    ],
)
#: Beginnings of words that name attributes audits are mostly about, which come first.
_PEOPLE = [
    "sex",
    "gender",
    "race",
    "ethnic",
    "age",
    "afam",
    "black",
    "relig",
    "disab",
    "nation",
    "marit",
    "single",
    "veteran",
    "language",
]
#: Pairs of which nobody doubts which one counts as 1. Whatever is not here is not guessed: of two
#: words in another language, or of "low" and "high", the wrong one turns every answer round.
_YES_NO = {
    "yes": ("no",),
    "true": ("false",),
    "1": ("0",),
    "y": ("n",),
    "t": ("f",),
    "approved": ("denied", "rejected", "declined", "not approved"),
    "accepted": ("denied", "rejected", "declined", "not accepted"),
    "admitted": ("denied", "rejected", "declined", "not admitted"),
    "granted": ("denied", "rejected", "declined", "not granted"),
    "hired": ("rejected", "declined", "not hired"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftColumn:
    """What a column of the table looks like."""

    name: str
    """Its name."""
    type: str
    """Its type, in the engine's words."""
    levels: int
    """How many different values it holds, missing ones aside."""
    text: bool
    """Whether it holds text."""
    number: bool = False
    """Whether it holds numbers."""
    whole: bool = False
    """Whether these are whole."""

    @property
    def continuous(self) -> bool:
        """Whether one group per value would be too many: such a number is cut into ranges."""
        return self.number and self.levels > (MOST_NUMBERS if self.whole else BINS)

    def attribute(self, bins: int | None = BINS) -> str | dict[str, object]:
        """The column as groups are formed by it, in plan form."""
        if bins is None or not self.continuous:
            return self.name
        return {"kind": "binned", "column": self.name, "quantiles": bins}


def look(trail: Trail, names: Sequence[str] | None = None) -> list[DraftColumn]:
    """What columns of a table look like, in one query where the engine can answer one.

    >>> import equipoise as eq
    >>> [column.attribute() for column in look(eq.datasets.compas(), ["sex", "risk"])]
    ['sex', {'kind': 'binned', 'column': 'risk', 'quantiles': 4}]
    """
    schema = trail.schema
    chosen = [name for name in schema if names is None or name in names]
    plain = [name for name in chosen if not schema[name].is_nested()]
    counts = _levels(trail, plain)
    return [
        DraftColumn(
            name=name,
            type=str(schema[name]),
            levels=counts.get(name, 0),
            text=is_text(schema[name]),
            number=schema[name].is_numeric(),
            whole=schema[name].is_integer(),
        )
        for name in chosen
    ]


def _levels(trail: Trail, names: Sequence[str]) -> dict[str, int]:
    """How many different values each column has; a missing one is none."""
    frame, source = trail.frame, trail.source
    if frame.implementation.is_ibis():
        # which cannot ask PostgreSQL for counts of distinct values
        return {
            name: number_of_levels(frame.filter(trail.present(name)), nw.col(name), source)
            for name in names
        }
    if not names:
        return {}
    with engine_errors(source):
        size = fetch(frame.select(nw.len().alias("rows")), source)
    rows = int(size["rows"][0])
    if rows <= HELD_ROWS and rows * len(names) <= HELD:
        # with many columns an engine takes longer to count than to hand them over
        held = fetch(frame.select(*map(nw.col, names)), source)
        # what is not a number differs even from itself
        return {n: len({v for v in held[n].tolist() if v is not None and v == v}) for n in names}
    with engine_errors(source):
        counts = []
        for i, name in enumerate(names):
            known = trail.present(name)
            counts += [
                nw.when(known).then(nw.col(name)).n_unique().alias(f"n{i}"),
                (~known).any().alias(f"gone{i}"),
            ]
        found = fetch(frame.select(*counts), source)
    return {
        name: int(found[f"n{i}"][0]) - int(bool(found[f"gone{i}"][0]))
        for i, name in enumerate(names)
    }


def _some_values(trail: Trail, column: str) -> list[object]:
    """Different values of a column, in order; of more than four only some, missing ones aside."""
    frame = trail.frame.filter(trail.present(column)).select(level=trail.key(column))
    found = fetch(frame.unique().head(4), trail.source)["level"].tolist()
    return sorted(found, key=str)


def _is_probability(trail: Trail, column: str) -> bool:
    """Whether all values of a column lie between 0 and 1."""
    value = trail.number(column)
    ends = trail.frame.filter(trail.present(column)).select(low=value.min(), high=value.max())
    found = fetch(ends, trail.source)
    low, high = found["low"][0], found["high"][0]
    return low is None or high is None or (float(low) >= 0 and float(high) <= 1)


def draft(
    source: str,
    *,
    out: str | Path = "audit.yaml",
    table: str | None = None,
    encoding: str | None = None,
    positive: object = None,
    missing: Sequence[str] | None = None,
    **roles: str | None,
) -> str:
    r"""The text of a commented plan for a table, to be edited before it is run.

    ``out`` is where the plan will stand, since its paths start there. Roles that are not given are
    guessed from usual column names, and marked as guesses. Which of two words counts as 1 is
    ``positive``; without it only words such as yes and no are known, and for others the plan has a
    question mark, with which it does not run. Words that mean a missing value are ``missing``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "d.csv"
    >>> _ = path.write_text("label,prediction,sex\n0,1,f\n1,1,m\n")
    >>> "prediction: prediction" in draft(str(path))
    True
    """
    file = {"table": table, "encoding": encoding}
    opened = functools.partial(read, source, missing=missing, **file)
    trail = opened(**roles)
    columns = look(trail)
    if not columns:
        raise PlanError(f"{trail.source} has no columns to plan an audit of.")
    played = _as_scores({role: column for role, column in roles.items() if column}, columns)
    guessed = _guess(columns, played)
    found = {**played, **guessed}
    if "score" not in played:
        _expect_question(found, columns, trail.source)
    if positive is not None:
        # it speaks of columns that may have been guessed
        trail = opened(positive=positive, **found)
    drafted = _Draft(
        columns=columns,
        played=played,
        guessed=guessed,
        words=_words(trail, found, {column.name: column for column in columns}),
        questions=_questions(trail, found),
        notes=trail.notes,
        missing=missing,
    )
    # a password has no place in a file that is shared; the environment can hold it
    return _text(without_password(_relative(source, Path(out).parent)), file, drafted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Questions:
    """What the columns can be asked."""

    metrics: tuple[str, ...]
    """Metrics, as a plan writes them."""
    amounts: bool
    """Whether they are amounts, of which only those concerned know how much is much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What a plan is written from."""

    columns: list[DraftColumn]
    played: Mapping[str, str]
    guessed: Mapping[str, str]
    words: Sequence["_Words"]
    questions: _Questions
    notes: Sequence[str]
    missing: Sequence[str] | None


def _as_scores(played: Mapping[str, str], columns: list[DraftColumn]) -> dict[str, str]:
    """The roles, with a number of many values as the score: it decides nothing."""
    said = next((c for c in columns if c.name == played.get("prediction")), None)
    if said is None or "score" in played or not (said.number and said.levels > 2):
        return dict(played)
    return {("score" if role == "prediction" else role): name for role, name in played.items()}


def _questions(trail: Trail, roles: Mapping[str, str]) -> _Questions:
    """Metrics that the columns can have."""
    if amounts_in(trail, roles):
        return _Questions(metrics=AMOUNT_METRICS, amounts=True)
    fitting = {
        role: column
        for role, column in roles.items()
        if role not in ("label", "prediction") or not _is_amount(trail, column)
    }
    usual = fitting_metrics(trail, fitting)
    if usual:
        return _Questions(metrics=usual, amounts=False)
    # of a label alone one can ask how often it is 1, or how large it is
    if "label" in fitting:
        own = "{kind: metric, name: rate of the label, value: label, binary: [label]}"
        return _Questions(metrics=(own,), amounts=False)
    role = "label" if "label" in roles else "score"
    own = f"{{kind: metric, name: mean of the {role}, value: {role}}}"
    return _Questions(metrics=(own,), amounts=True)


def _guess(columns: list[DraftColumn], played: Mapping[str, str]) -> dict[str, str]:
    """Roles by usual names, for columns that have none yet."""
    taken, found = set(played.values()), {}
    by_name = {column.name.lower(): column for column in columns}
    for role, names in _USUAL.items():
        # Whole names only: a wrong guess that nobody notices does more harm than none.
        fitting = [by_name[n].name for n in names if n in by_name and by_name[n].name not in taken]
        if role not in played and fitting:
            found[role] = fitting[0]
            taken.add(fitting[0])
    said = {column.name: column for column in columns}.get(found.get("prediction", ""))
    if said is not None and said.number and said.levels > 2:
        # a number of many values decides nothing; it is what a decision is made from
        del found["prediction"]
        if "score" not in {*played, *found}:
            found["score"] = said.name
    if not {"label", "prediction"} & {*played, *found} and "score" not in played:
        # without any question there is no plan, so here the beginning of a word is enough
        likely = [c.name for c in columns if c.levels == 2 and _begins(c.name, _DECISIONS)]
        if likely:
            found["prediction"] = likely[0]
    return found


def _begins(name: str, words: Sequence[str]) -> bool:
    parts = name.lower().replace("-", "_").replace(" ", "_").split("_")
    return any(part.startswith(word) for part in (*parts, name.lower()) for word in words)


def _expect_question(roles: Mapping[str, str], columns: list[DraftColumn], source: str) -> None:
    if "label" in roles or "prediction" in roles:
        return
    # what people are called by is the least likely to be what is asked about
    likely = sorted(columns, key=lambda column: _begins(column.name, _PEOPLE))
    two = [column.name for column in likely if column.levels == 2]
    raise PlanError(
        f"No column of {source} is called like a decision or an outcome, so there is nothing to "
        "ask. Pass --prediction COLUMN (what was decided) or --label COLUMN (what happened). "
        f"Columns of two values: {listing(two, most=30) if two else 'none'}."
    )


def _free(columns: list[DraftColumn], taken: set[str]) -> list[DraftColumn]:
    """Columns that no role takes and that are no outcome."""
    return [
        column
        for column in columns
        if column.name not in taken and column.levels > 1 and not _begins(column.name, _OUTCOMES)
    ]


def _attributes(columns: list[DraftColumn], taken: set[str]) -> list[DraftColumn]:
    """Columns by which people may be told apart: text, few different values, or numbers cut."""
    free = _free(columns, taken)
    words = [column for column in free if column.text and column.levels <= MOST_LEVELS]
    few = [column for column in free if not column.text and column.levels <= MOST_NUMBERS]
    # a number with a value of its own in every row is likely to be a name
    cut = [c for c in free if c.continuous and c not in few and _begins(c.name, _PEOPLE)]
    people = [column for column in (*words, *few, *cut) if _begins(column.name, _PEOPLE)]
    # More attributes cut most tables into cells that are nearly empty.
    return list({column.name: column for column in (*people, *words, *few)}.values())[:3]


def _left_out(columns: list[DraftColumn], taken: set[str]) -> list[str]:
    """A comment on columns of text that have too many values to form groups."""
    many = [c for c in _free(columns, taken) if c.text and c.levels > MOST_LEVELS]
    if not many:
        return []
    said = ", ".join(f"{_in_quotes(c.name)} ({c.levels:,})" for c in many[:8])
    said += f" and {len(many) - 8:,} more" if len(many) > 8 else ""
    return [f"# Text of more than {MOST_LEVELS} different values forms no groups here: {said}."]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """A label or prediction of two words, or codes, and which of them counts as 1."""

    role: str
    levels: tuple[Scalar, Scalar]
    positive: Scalar
    """None if nobody said so and it is not plain from the words."""
    guessed: bool

    def line(self, name: str) -> str:
        """The line of a plan that says it, or a comment that asks."""
        if self.positive is not None:
            note = "  # a guess; it counts as 1" if self.guessed else "  # counts as 1"
            return f"{name}: {_value_text(self.positive)}{note}"
        one, other = map(_value_text, self.levels)
        return (
            f"{name}: {_in_quotes(UNSAID)}  # {one} or {other}: write which of the two counts as 1"
        )


def _value_text(value: Scalar) -> str:
    """A value of a column as a plan writes it."""
    return _in_quotes(value) if isinstance(value, str) else json.dumps(value)


def amounts_in(trail: Trail, roles: Mapping[str, object]) -> bool:
    """Whether label and score are amounts such as wages, not yes or no and its probability."""
    if not {"label", "score"} <= set(roles) or "prediction" in roles:
        return False
    return _is_amount(trail, str(roles["label"]))


def _is_amount(trail: Trail, column: str) -> bool:
    """Whether a column holds numbers, and more than two of them."""
    numeric = column in trail.schema and trail.schema[column].is_numeric()
    return numeric and len(_some_values(trail, column)) > 2


def _words(
    trail: Trail, roles: Mapping[str, str], columns: Mapping[str, DraftColumn]
) -> list[_Words]:
    """Label and prediction, where they are words or codes: which counts as 1, if that is known."""
    found = []
    for role in ("label", "prediction"):
        column = columns.get(roles.get(role, ""))
        if column is None or not (column.text or (column.number and column.levels == 2)):
            continue
        levels = [canonical(value) for value in _some_values(trail, column.name)]
        # 0 and 1 speak for themselves
        if column.number and {*levels} <= {0, 1}:
            continue
        if len(levels) != 2:
            raise PlanError(
                f"The {role} column {column.name!r} holds {listing(levels)}"
                f"{' …' * (len(levels) > 3)}; audits of decisions need two values. Name another "
                "column, or make one of two values from it."
            )
        named = trail.positive.get(role)
        chosen = _plainly_yes([str(level) for level in levels]) if column.text else None
        found.append(
            _Words(
                role=role,
                levels=(levels[0], levels[1]),
                positive=chosen if named is None else named,
                guessed=named is None,
            )
        )
    return found


def _plainly_yes(levels: Sequence[str]) -> str | None:
    """Of two words the one that means yes, if the other plainly means no.

    >>> _plainly_yes(["No", "Yes"]), _plainly_yes(["Ja", "Nein"])
    ('Yes', None)
    """
    one, other = (level.strip().lower() for level in levels)
    if other in _YES_NO.get(one, ()):
        return levels[0]
    return levels[1] if one in _YES_NO.get(other, ()) else None


def _text(source: str, file: Mapping[str, str | None], made: _Draft) -> str:
    roles = {**made.played, **made.guessed}
    taken = set(roles.values())
    across = _attributes(made.columns, taken)
    title = f"Audit of {file['table'] or Path(source).name}"
    missing = ", ".join(map(_in_quotes, made.missing or ()))
    lines = [
        "# Audit plan. Fix it before looking at outcomes by group: results of `equipoise run` then",
        "# count as confirmatory. Check it with `equipoise plan check`.",
        "equipoise: 1",
        f"title: {_quoted(title)}",
        "seed: 7            # the same seed gives the same numbers",
        "# model: {name: …, version: …, owner: …, purpose: …}   # for the report",
        "",
        "# The columns of the table:",
        *(
            f"#   {_in_quotes(c.name)}: {c.type}, {c.levels:,} different values"
            for c in made.columns
        ),
        *(f"# {' '.join(note.split())}" for note in made.notes),
        *_left_out(made.columns, taken),
        "trail:",
        f"  source: {_quoted(source)}",
        *(f"  {name}: {_quoted(value)}" for name, value in file.items() if value),
        *([f"  missing: [{missing}]"] if missing else []),
        *(_role_line(role, roles, made.guessed) for role in ("label", "prediction", "score")),
        *(_role_line(role, roles, made.guessed) for role in ("weight", "count") if role in roles),
        *_positive_lines(made.words),
        "",
        "audits:",
        *_audits(made.questions, across),
    ]
    return "\n".join(lines) + "\n"


def _role_line(role: str, roles: Mapping[str, str], guessed: Mapping[str, str]) -> str:
    if role not in roles:
        return f"  # {role}: COLUMN"
    note = "  # a guess by name; check it" if role in guessed else ""
    return f"  {role}: {_quoted(roles[role])}{note}"


def _positive_lines(words: Sequence[_Words]) -> list[str]:
    if not words:
        return ['  # positive: "yes"  # the value that counts as 1, if the columns hold words']
    # one value for both would be asked of a column of 0 and 1 as well, if it is a number
    codes = any(not isinstance(level, str) for one in words for level in one.levels)
    if len({(one.levels, one.positive) for one in words}) == 1 and not codes:
        return [f"  {words[0].line('positive')}"]
    return ["  positive:", *(f"    {one.line(one.role)}" for one in words)]


def _attribute_text(column: DraftColumn) -> str:
    if not column.continuous:
        return _quoted(column.name)
    return f"{{kind: binned, column: {_quoted(column.name)}, quantiles: {BINS}}}"


def _claim(metric: str, across: list[DraftColumn]) -> list[str]:
    groups = f"[{', '.join(map(_attribute_text, across))}]" if across else "[ATTRIBUTE]"
    return [
        "    claim:",
        "      kind: gap",
        f"      metric: {metric}",
        f"      across: {groups}      # every combination of these is a group",
        "      target: overall       # or complement, or {kind: reference, where: {sex: Male}}",
    ]


def _spoken(metric: str) -> str:
    """A metric in the name of a finding."""
    _, _, own = metric.partition("name: ")
    return (own.partition(",")[0] or metric).replace("_", " ")


def _audits_of_amounts(metrics: Sequence[str], across: list[DraftColumn]) -> list[str]:
    """Bounds without a limit: how much of an amount is much only those concerned know."""
    made = [
        "  # Bounds that hold for every group at once. Without a tolerance nothing is judged.",
    ]
    for metric in metrics:
        made += [
            "  - audit: certify",
            f"    name: bounds of {_spoken(metric)}",
            *_claim(metric, across),
            "    level: 0.95",
            "    # tolerance: 1.0   # what is tolerated, in the units of the column",
            "",
        ]
    return made[:-1]


def _audits(asked: _Questions, across: list[DraftColumn]) -> list[str]:
    if asked.amounts:
        return _audits_of_amounts(asked.metrics, across)
    metric = asked.metrics[0]
    claim = _claim(metric, across)
    return [
        "  # Which groups differ by more than 5 points? At most a tenth of the flags is false.",
        "  - audit: flag",
        f"    name: flags of {_spoken(metric)}",
        *claim,
        "    outside: [-0.05, 0.05]",
        "    fdr: 0.10",
        "",
        "  # Bounds that hold for every group at once, judged against a tolerance.",
        "  - audit: certify",
        f"    name: bounds of {_spoken(metric)}",
        *claim,
        "    level: 0.95",
        "    tolerance: 0.10",
    ]


#: What is asked first of a model that predicts a number.
AMOUNT_METRICS = ("residual", "absolute_error")


def usual_metrics(roles: Mapping[str, object]) -> tuple[str, ...]:
    """What people ask first of a table with these roles; nothing if it has no decision.

    >>> usual_metrics({"prediction": "hired"})
    ('selection_rate',)
    """
    if "label" in roles and "prediction" in roles:
        rates = ("false_positive_rate", "false_negative_rate", "selection_rate")
        # whether the score promises some people more than comes true
        return (*rates, "residual") if "score" in roles else rates
    if "label" in roles and "score" in roles:
        return "brier", "residual"
    return ("selection_rate",) if "prediction" in roles else ()


def fitting_metrics(trail: Trail, roles: Mapping[str, object]) -> tuple[str, ...]:
    """What people ask first, as far as the score is a probability, or else how well it ranks."""
    usual = usual_metrics(roles)
    rest = tuple(name for name in usual if "score" not in as_metric(name).names())
    if rest == usual or _is_probability(trail, str(roles["score"])):
        return usual
    return (*rest, "auc")


def _relative(source: str, folder: Path) -> str:
    """The source as seen from the plan's folder, with forward slashes."""
    if "://" in source or source.startswith("equipoise:") or Path(source).is_absolute():
        return source
    return Path(os.path.relpath(source, folder)).as_posix()


def _quoted(word: str) -> str:
    """A word as YAML text; JSON's quotation is YAML's."""
    plain = word.replace("_", "").isalnum() and word.isascii() and not word.isdigit()
    # Words that this reader of YAML, or another one, takes for truth values or for nothing.
    reserved = word.lower() in ("true", "false", "null", "yes", "no", "on", "off")
    return word if plain and not reserved else _in_quotes(word)


def _in_quotes(word: str) -> str:
    # YAML ends a line, and a comment with it, at signs that JSON leaves as they are
    return json.dumps(word, ensure_ascii=not word.isprintable())
