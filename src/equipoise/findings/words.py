"""How numbers read in sentences."""

from collections.abc import Callable, Mapping


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.3027)
    '30.3 %'
    """
    return f"{100 * value:.{digits}f} %"


def level_text(level: float) -> str:
    """A confidence level, never rounded up to certainty.

    >>> level_text(0.95), level_text(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:.10g} %"


def amount(value: float | None, share: bool) -> str:
    """A metric's value: a percentage if it is a share, a plain number otherwise.

    >>> amount(0.25, True), amount(12.3456, False), amount(None, True)
    ('25.0 %', '12.35', 'not available')
    """
    if value is None:
        return "not available"
    return percent(value) if share else f"{value:.4g}"


def difference(value: float, share: bool) -> str:
    """A disparity: percentage points if the metric is a share, a plain number otherwise.

    >>> difference(0.0547, True), difference(-1.5, False)
    ('+5.5 points', '-1.5')
    """
    # adding zero turns a rounded -0.0 into 0.0
    return f"{round(100 * value, 1) + 0.0:+.1f} points" if share else f"{value + 0.0:+.4g}"


def disparity_text(value: float, relative: bool, share: bool) -> str:
    """A disparity, be it a ratio or a difference.

    >>> disparity_text(1.234, relative=True, share=True), disparity_text(0.1, False, share=True)
    ('1.23', '+10.0 points')
    """
    return f"{value:.2f}" if relative else difference(value, share)


def ends_text(
    lower: float | None, upper: float | None, said: Callable[[float], str], otherwise: str
) -> str:
    """The bounds there are, or what to say if there is none.

    >>> ends_text(0.25, None, "{:+.1f}".format, "no bound")
    'at least +0.2'
    """
    ends = [
        *([] if lower is None else [f"at least {said(lower)}"]),
        *([] if upper is None else [f"at most {said(upper)}"]),
    ]
    return " and ".join(ends) or otherwise


def unsigned(value: float, share: bool) -> str:
    """The size of a disparity, without its sign.

    >>> unsigned(-0.05, True)
    '5.0 points'
    """
    return difference(abs(value), share).removeprefix("+")


def plural(number: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "group"), plural(1234, "row")
    ('1 group', '1,234 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def be(number: int) -> str:
    """Whether so many things "are", or one "is".

    >>> be(1), be(0)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def left_out(excluded: Mapping[str, int], ineligible: int) -> str:
    """A sentence on the rows that were not used.

    >>> left_out({"missing label": 3}, 10)
    '3 rows were left out (3 missing label); the metric does not count on 10 others.'
    """
    lost = sum(excluded.values())
    reasons = ", ".join(f"{rows:,} {reason}" for reason, rows in excluded.items())
    were = "was" if lost == 1 else "were"
    first = f"{plural(lost, 'row')} {were} left out ({reasons})" if lost else "No row was left out"
    if not ineligible:
        return f"{first}."
    other = plural(ineligible, "other" if lost else "row")
    return f"{first}; the metric does not count on {other}."
