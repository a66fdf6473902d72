"""What callers of `certify` and `flag` ask for, checked once, before any row is read."""

from dataclasses import dataclass
from typing import Any, Literal

from equipoise._validate import fraction, known_name, listing, modest, whole
from equipoise.audits._fields import possible_range
from equipoise.claims import Claim, Ratio
from equipoise.errors import OptionError
from equipoise.findings.limits import Ends, Side

Control = Literal["bh", "by", "e-bh", "holm", "max-t"]
Population = Literal["people like these", "these rows"]

#: How flags are controlled, in words.
CONTROLS = {
    "bh": "false discovery rate (Benjamini–Hochberg)",
    "by": "false discovery rate under any dependence (Benjamini–Yekutieli)",
    "e-bh": "false discovery rate under any dependence (e-BH)",
    "holm": "familywise error (Holm)",
    "max-t": "familywise error (step-down maxima)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """Everything about certifying but the data and the claim."""

    level: float
    side: Side
    tolerance: float | None
    method: Any
    """A method's value; None until the cells are known and a default can be chosen."""
    resamples: int | None = None
    """Asked for beside the method, for whichever is chosen."""

    def __post_init__(self) -> None:
        fraction("level", self.level)
        known_name("side", self.side, ("lower", "upper", "both"))
        if self.tolerance is not None:
            modest("tolerance", self.tolerance)
        if self.resamples is not None:
            whole("resamples", self.resamples, least=20)

    def check_claim(self, claim: Claim) -> None:
        """Refuse a tolerance that means nothing for the claim."""
        tolerance = self.tolerance
        if tolerance is None:
            return
        if isinstance(claim, Ratio):
            if tolerance <= 0 or (self.side == "both" and tolerance >= 1):
                raise OptionError(
                    "For a ratio the tolerance is a share such as 0.8, between 0 and 1; "
                    f"got {tolerance!r}."
                )
        elif self.side == "both" and tolerance <= 0:
            raise OptionError(f"tolerance must be above 0 with side='both'; got {tolerance!r}.")
        possible_limit("tolerance", tolerance, claim, possible_range(claim))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagOptions:
    """Everything about flagging but the data and the claim."""

    above: float | None
    below: float | None
    outside: tuple[float, float] | None
    fdr: float
    control: Control
    method: Any
    min_rows: int | None
    resamples: int | None
    population: Population = "people like these"

    @property
    def dealt(self) -> bool:
        """Whether the question is about exactly these rows."""
        return self.population == "these rows"

    def __post_init__(self) -> None:
        known_name("population", self.population, ("people like these", "these rows"))
        fraction("fdr", self.fdr)
        known_name("control", self.control, tuple(CONTROLS))
        given = ("above", "below", "outside")
        named = [name for name in given if getattr(self, name) is not None]
        if len(named) > 1:
            raise OptionError(f"Pass one of above=, below= and outside=; got {listing(named)}.")
        if self.min_rows is not None:
            whole("min_rows", self.min_rows)


def possible_limit(name: str, limit: float, claim: Claim, possible: Ends) -> None:
    """Refuse a limit that no disparity of the claim can reach, with what was likely meant."""
    low, high = possible
    beyond = (high is not None and limit >= high) or (low is not None and limit <= low)
    if isinstance(claim, Ratio) or not beyond:
        return
    ends = " and ".join(f"{end:g}" for end in (low, high) if end is not None)
    hint = ""
    if abs(limit) > 1 and claim.metric.low is not None and claim.metric.high == 1:
        hint = f" Rates are shares of 1, so {abs(limit):g} points are {abs(limit) / 100:g}."
    raise OptionError(
        f"{name} must lie between {ends}, the smallest and largest disparity that "
        f"{claim.metric.words} can have; got {limit:g}.{hint}"
    )
