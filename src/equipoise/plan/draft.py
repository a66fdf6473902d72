"""A first plan from a table: what its columns seem to be, with comments on what to decide."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw

from equipoise.errors import PlanError
from equipoise.trail import Trail, read
from equipoise.trail.engine import number_of_levels, without_password
from equipoise.trail.trail import is_text

#: Attributes with more levels than this are not proposed for groups.
MOST_LEVELS = 20

_USUAL = {
    "label": ("label", "y_true", "y", "outcome", "target", "actual", "truth", "observed"),
    "prediction": ("prediction", "y_pred", "pred", "predicted", "decision", "decided"),
    "score": ("score", "y_score", "probability", "prob", "y_prob", "risk", "proba"),
    "weight": ("weight", "sample_weight", "weights"),
    "count": ("count", "n"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What a column of the table looks like."""

    name: str
    """Its name."""
    type: str
    """Its type, in the engine's words."""
    levels: int
    """How many different values it holds."""
    text: bool
    """Whether it holds text."""


def draft(
    source: str,
    *,
    out: str | Path = "audit.yaml",
    table: str | None = None,
    encoding: str | None = None,
    **roles: str | None,
) -> str:
    r"""The text of a commented plan for a table, to be edited before it is run.

    ``out`` is where the plan will stand, since its paths start there. Roles that are not given are
    guessed from usual column names, and marked as guesses.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "d.csv"
    >>> _ = path.write_text("label,prediction,sex\n0,1,f\n1,1,m\n")
    >>> "prediction: prediction" in draft(str(path))
    True
    """
    trail = read(source, table=table, encoding=encoding, **roles)
    columns = _columns(trail)
    played = {role: column for role, column in roles.items() if column is not None}
    guessed = _guess(columns, played)
    # a password has no place in a file that is shared; the environment can hold it
    place = without_password(_relative(source, Path(out).parent))
    file = {"table": table, "encoding": encoding}
    return _text(place, file, columns, played, guessed, trail.notes)


def _columns(trail: Trail) -> list[Column]:
    names = list(trail.schema)
    if not names:
        raise PlanError(f"{trail.source} has no columns to plan an audit of.")
    plain = [name for name in names if not trail.schema[name].is_nested()]
    counts = {name: number_of_levels(trail.frame, nw.col(name), trail.source) for name in plain}
    return [
        Column(
            name=name,
            type=str(trail.schema[name]),
            levels=counts.get(name, 0),
            text=is_text(trail.schema[name]),
        )
        for name in names
    ]


def _guess(columns: list[Column], played: Mapping[str, str]) -> dict[str, str]:
    """Roles by usual names, for columns that have none yet."""
    taken, found = set(played.values()), {}
    by_name = {column.name.lower(): column for column in columns}
    for role, names in _USUAL.items():
        # Whole names only: a wrong guess that nobody notices does more harm than none.
        fitting = [by_name[n].name for n in names if n in by_name and by_name[n].name not in taken]
        if role not in played and fitting:
            found[role] = fitting[0]
            taken.add(fitting[0])
    return found


def _attributes(columns: list[Column], taken: set[str]) -> list[str]:
    """Columns by which people may be told apart: text, or few different values."""
    free = [column for column in columns if column.name not in taken and column.levels > 1]
    words = [column.name for column in free if column.text and column.levels <= MOST_LEVELS]
    few = [column.name for column in free if not column.text and column.levels <= 10]
    # More attributes cut most tables into cells that are nearly empty.
    return (words + few)[:3]


def _text(
    source: str,
    file: Mapping[str, str | None],
    columns: list[Column],
    played: Mapping[str, str],
    guessed: Mapping[str, str],
    notes: Sequence[str] = (),
) -> str:
    roles = {**played, **guessed}
    across = _attributes(columns, set(roles.values()))
    title = f"Audit of {file['table'] or Path(source).name}"
    lines = [
        "# Audit plan. Fix it before looking at outcomes by group: results of `equipoise run` then",
        "# count as confirmatory. Check it with `equipoise plan check`.",
        "equipoise: 1",
        f"title: {_quoted(title)}",
        "seed: 7            # the same seed gives the same numbers",
        "",
        "# The columns of the table:",
        *(f"#   {_in_quotes(c.name)}: {c.type}, {c.levels:,} different values" for c in columns),
        *(f"# {' '.join(note.split())}" for note in notes),
        "trail:",
        f"  source: {_quoted(source)}",
        *(f"  {name}: {_quoted(value)}" for name, value in file.items() if value),
        *(_role_line(role, roles, guessed) for role in ("label", "prediction", "score")),
        *(_role_line(role, roles, guessed) for role in ("weight", "count") if role in roles),
        '  # positive: "yes"  # the value that counts as 1, if the columns hold words',
        "",
        "audits:",
        *_audits(roles, across),
    ]
    return "\n".join(lines) + "\n"


def _role_line(role: str, roles: Mapping[str, str], guessed: Mapping[str, str]) -> str:
    if role not in roles:
        return f"  # {role}: COLUMN"
    note = "  # a guess by name; check it" if role in guessed else ""
    return f"  {role}: {_quoted(roles[role])}{note}"


def _audits(roles: Mapping[str, str], across: list[str]) -> list[str]:
    metric = (usual_metrics(roles) or ("selection_rate",))[0]
    groups = f"[{', '.join(map(_quoted, across))}]" if across else "[ATTRIBUTE]"
    claim = [
        "    claim:",
        "      kind: gap",
        f"      metric: {metric}",
        f"      across: {groups}      # every combination of these is a group",
        "      target: overall       # or complement, or {kind: reference, where: {sex: Male}}",
    ]
    return [
        "  # Which groups differ by more than 5 points? At most a tenth of the flags is false.",
        "  - audit: flag",
        f"    name: flags of {metric.replace('_', ' ')}",
        *claim,
        "    outside: [-0.05, 0.05]",
        "    fdr: 0.10",
        "",
        "  # Bounds that hold for every group at once, judged against a tolerance.",
        "  - audit: certify",
        f"    name: bounds of {metric.replace('_', ' ')}",
        *claim,
        "    level: 0.95",
        "    tolerance: 0.10",
    ]


def usual_metrics(roles: Mapping[str, object]) -> tuple[str, ...]:
    """What people ask first of a table with these roles; nothing if it has no decision.

    >>> usual_metrics({"prediction": "hired"})
    ('selection_rate',)
    """
    if "label" in roles and "prediction" in roles:
        return "false_positive_rate", "false_negative_rate", "selection_rate"
    if "label" in roles and "score" in roles:
        return "brier", "residual"
    return ("selection_rate",) if "prediction" in roles else ()


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
