"""Checks at the door: each public function calls these once, then trusts its values."""

import difflib
import functools
import inspect
import math
import numbers
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar, Unpack, get_args, get_origin

import numpy as np

from equipoise.errors import EquipoiseError, OptionError

#: Larger numbers than this are refused where variances are worked out from them.
LARGEST = 1e60

#: Confidence levels nearer to 0 or 1 than this leave a tail that rounding swallows.
TAIL = 1e-13

#: Resamples, groups or rows that can be asked for; more of them would fill the memory.
MOST = 10_000_000

P = ParamSpec("P")
R = TypeVar("R")


def listing(names: Iterable[object], most: int = 12) -> str:
    """Names for a message: quoted strings, comma separated, cut short when there are many.

    >>> listing(["label", "score"])
    "'label', 'score'"
    """
    shown = [short(repr(name)) for name in names]
    if len(shown) > most:
        return ", ".join(shown[:most]) + f" … ({len(shown) - most:,} more)"
    return ", ".join(shown) if shown else "none"


def short(text: str, most: int = 80) -> str:
    """A text for a message, cut off where it is long.

    >>> short("abcdef", most=4)
    'abc…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def number_text(value: float) -> str:
    """A number as people write it: no trailing zeros, and commas from ten thousand up.

    >>> number_text(25.0), number_text(0.125), number_text(1990), number_text(25000)
    ('25', '0.125', '1990', '25,000')
    """
    return f"{value:,.10g}" if 10_000 <= abs(value) < 1e10 else f"{value:.10g}"


def rows_text(number: int) -> str:
    """A number of rows in words.

    >>> rows_text(1), rows_text(1200)
    ('1 row', '1,200 rows')
    """
    return f"{number:,} row{'' if number == 1 else 's'}"


#: What other packages call things.
_ELSEWHERE = {
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "tpr": "true_positive_rate",
    "tnr": "true_negative_rate",
    "recall": "true_positive_rate",
    "sensitivity": "true_positive_rate",
    "specificity": "true_negative_rate",
    "precision": "positive_predictive_value",
    "ppv": "positive_predictive_value",
    "npv": "negative_predictive_value",
    "acc": "accuracy",
    "positive_rate": "selection_rate",
    "mae": "absolute_error",
    "mse": "squared_error",
    "alpha": "level",
    "confidence": "level",
    "seed": "rng",
    "random_state": "rng",
    "n_boot": "resamples",
    "y_true": "label",
    "y_pred": "prediction",
    "y_score": "score",
    "sample_weight": "weight",
    "groups": "across",
    "sensitive_features": "across",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint such as " Did you mean 'label'?", or nothing when no name is near.

    >>> did_you_mean("lable", ["label", "score"]), did_you_mean("male", ["Female", "Male"])
    (" Did you mean 'label'?", " Did you mean 'Male'?")
    """
    choices = {str(k): str(k).strip().casefold() for k in known}
    wanted = str(name).strip().casefold()
    if _ELSEWHERE.get(wanted) in choices:
        return f" Did you mean {_ELSEWHERE[wanted]!r}?"
    # "male" is nearer to "Male" than to "Female", whatever the letters in common say
    near = [choice for choice, plain in choices.items() if plain == wanted]
    near = near or difflib.get_close_matches(str(name), choices, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def is_word(value: object, word: str) -> bool:
    """Whether a value is this very word; comparing a column with it would give a column.

    >>> is_word("both", "both"), is_word(["both"], "both")
    (True, False)
    """
    return isinstance(value, str) and value == word


def known_name(
    what: str, name: object, known: Iterable[str], error: type[EquipoiseError] = OptionError
) -> str:
    """Return ``name`` if it is one of ``known``; otherwise say what exists."""
    choices = list(known)
    # a column or an array compares entry by entry, which is neither true nor false
    if isinstance(name, str) and name in choices:
        return name
    hint = did_you_mean(name, choices) if isinstance(name, str) else ""
    # columns and arrays print over several lines
    said = short(" ".join(repr(name).split()), most=200)
    raise error(f"{what} {said} does not exist.{hint} There is: {listing(choices, most=20)}.")


def fraction(what: str, value: object) -> float:
    """A number strictly between 0 and 1, such as a confidence level."""
    number = real(what, value)
    if not 0 < number < 1:
        raise OptionError(f"{what} must lie strictly between 0 and 1; got {value!r}.")
    return number


def confidence(value: object) -> float:
    """A confidence level whose error rate, and which itself, is more than rounding."""
    number = fraction("level", value)
    if not TAIL <= number <= 1 - TAIL:
        raise OptionError(
            f"level must lie between {TAIL:g} and 1 - {TAIL:g}, beyond which no tail is left to "
            f"compute with; got {value!r}."
        )
    return number


def real(what: str, value: object) -> float:
    """A finite real number; booleans, strings, NaN and infinities are refused."""
    # True is a number to Python, but whoever passes it meant another option.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionError(f"{what} must be a number; got {value!r}.")
    try:
        number = float(value)
    except OverflowError as error:
        raise OptionError(f"{what} must be finite; got a number beyond all floats.") from error
    if not math.isfinite(number):
        raise OptionError(f"{what} must be finite; got {value!r}.")
    return number


def modest(what: str, value: object) -> float:
    """A finite number whose fourth power is one too, so that no variance overflows."""
    number = real(what, value)
    if abs(number) > LARGEST:
        raise OptionError(f"{what} must lie within ±{LARGEST:g}; got {number:g}.")
    return number


def whole(what: str, value: object, least: int = 1, most: int = MOST) -> int:
    """A whole number of at least ``least``, and not so large that it fills the memory."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise OptionError(f"{what} must be a whole number of at least {least}; got {value!r}.")
    if int(value) > most:
        raise OptionError(f"{what} must be at most {most:,}; got a larger number.")
    return int(value)


def yes_or_no(what: str, value: object) -> bool:
    """True or False; a text such as "no" would otherwise count as true."""
    if not isinstance(value, bool):
        raise OptionError(f"{what} must be True or False; got {value!r}.")
    return value


def known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a misspelt or missing argument becomes an `OptionError` that says what exists."""
    signature = inspect.signature(function)
    names = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    further = next((p for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    # `**roles: Unpack[Roles]` names its keywords; any other `**` takes all there are
    listed = further is not None and get_origin(further.annotation) is Unpack
    if further is not None and listed:
        names += get_args(further.annotation)[0].__annotations__
    takes_any = further is not None and not listed
    named = names_extra(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        for keyword in () if takes_any else kwargs:
            known_name(f"{function.__name__}() option", keyword, names)
        # Bound once more by hand: Python's own TypeError is none of ours, and lists no choices.
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise OptionError(
                f"{function.__name__}(): {error}. It takes: {listing(names)}."
            ) from error
        return named(*args, **kwargs)

    return wrapper


#: Packages that not everybody needs, and the extra that brings them.
EXTRAS = {"altair": "report", "vl_convert": "report", "sklearn": "learn", "threadpoolctl": "learn"}


def names_extra(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: where a package is missing, the error says which extra brings it."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ModuleNotFoundError as error:
            extra = EXTRAS.get((error.name or "").split(".")[0])
            if extra is None:
                raise
            what = "Charts need" if extra == "report" else "This audit needs"
            raise OptionError(
                f"{what} a package that is not installed: pip install 'equipoise[{extra}]'."
            ) from error

    return wrapper


def columns_named(what: str, names: Iterable[object]) -> tuple[str, ...]:
    """One or more non-empty, distinct column names."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise OptionError(f"{what} must be a list of column names; got {names!r}.")
    chosen: list[str] = []
    for name in names:
        if not isinstance(name, str) or not name:
            raise OptionError(f"{what} must be column names; got {name!r}.")
        chosen.append(name)
    repeated = sorted({name for name in chosen if chosen.count(name) > 1})
    if repeated:
        raise OptionError(f"{what} names {listing(repeated)} more than once.")
    return tuple(chosen)


# --- Randomness: one seed, made at the edge, handed down as independent streams ---

Rng = int | np.random.Generator | None


@dataclass(frozen=True, slots=True)
class Seed:
    """Where an audit's randomness starts, and the number that repeats it."""

    sequence: np.random.SeedSequence
    number: int | None
    """The integer to pass as ``rng=`` to get the same answer; None for a caller's generator."""


def seed_of(rng: Rng) -> Seed:
    """Turn the ``rng`` argument of a verb into a seed.

    ``None`` draws a fresh seed, which the result records, so that even an unseeded audit can be
    performed again.

    >>> seed_of(7).number
    7
    """
    if isinstance(rng, np.random.Generator):
        # Drawn, not copied: the caller's generator moves on, so two audits in a row differ.
        words = rng.integers(0, 2**32, size=4, dtype=np.uint32)
        return Seed(np.random.SeedSequence([int(word) for word in words]), None)
    number = secrets.randbits(32) if rng is None else rng
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise OptionError(
            f"rng must be None, a whole number of at least 0, or a numpy Generator; got {rng!r}."
        )
    return Seed(np.random.SeedSequence(int(number)), int(number))


def open_range_text(name: str, low: float | None, high: float | None) -> str:
    """A range that includes its lower end and not its upper; None is unbounded.

    >>> open_range_text("age", None, 25), open_range_text("age", 25, 45)
    ('age under 25', 'age 25 to under 45')
    """
    if low is None:
        return f"{name} under {number_text(0.0 if high is None else high)}"
    if high is None:
        return f"{name} {number_text(low)} and over"
    return f"{name} {number_text(low)} to under {number_text(high)}"


def closed_range_text(name: str, low: float, high: float) -> str:
    """A range that includes both ends.

    >>> closed_range_text("age", 25, 45), closed_range_text("age", 25, 25)
    ('age 25 to 45', 'age 25')
    """
    if low == high:
        return f"{name} {number_text(low)}"
    return f"{name} {number_text(low)} to {number_text(high)}"
