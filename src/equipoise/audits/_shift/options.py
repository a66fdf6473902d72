"""What a caller of `shift` asks for, checked before any row is read."""

from dataclasses import dataclass
from typing import Literal

from equipoise._validate import fraction, known_name, real, whole
from equipoise.errors import OptionError
from equipoise.findings.limits import Side
from equipoise.methods import tilts

Engine = Literal["auto", "exact", "moments"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftOptions:
    """Everything about a tilt audit but the data, the claim and the kernel."""

    level: float
    side: Side
    method: str
    engine: str
    resamples: int
    floor: float
    residual: float
    max_rank: int
    sample: int | None

    def __post_init__(self) -> None:
        fraction("level", self.level)
        known_name("side", self.side, ("lower", "upper", "both"))
        known_name("shift method", self.method, [str(each) for each in tilts.Method])
        known_name("engine", self.engine, ("auto", "exact", "moments"))
        whole("resamples", self.resamples, least=20)
        whole("max_rank", self.max_rank)
        if self.sample is not None:
            whole("sample", self.sample, least=2)
        if not 0 < real("floor", self.floor) <= 1:
            raise OptionError(f"floor must lie in (0, 1]; got {self.floor!r}.")
        if not 0 <= real("residual", self.residual) < 1:
            raise OptionError(f"residual must lie in [0, 1); got {self.residual!r}.")
