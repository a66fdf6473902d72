"""What callers of `certify` and `flag` ask for, checked once, before any row is read."""

from dataclasses import dataclass
from typing import Any

from equipoise._validate import fraction, known_name, listing, modest, whole
from equipoise.audits._groups.testing import Control
from equipoise.claims import Claim, Ratio
from equipoise.errors import OptionError
from equipoise.findings.limits import Side

#: How flags are controlled, in words.
CONTROLS = {
    "bh": "false discovery rate (Benjamini–Hochberg)",
    "by": "false discovery rate under any dependence (Benjamini–Yekutieli)",
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

    def __post_init__(self) -> None:
        fraction("fdr", self.fdr)
        known_name("control", self.control, tuple(CONTROLS))
        given = ("above", "below", "outside")
        named = [name for name in given if getattr(self, name) is not None]
        if len(named) > 1:
            raise OptionError(f"Pass one of above=, below= and outside=; got {listing(named)}.")
        if self.min_rows is not None:
            whole("min_rows", self.min_rows)
