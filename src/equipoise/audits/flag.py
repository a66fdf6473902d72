"""`flag`: which groups differ, with control over how many flags are false."""

from dataclasses import replace
from typing import Literal, Unpack, overload

from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import known_keywords
from equipoise.audits._common import Progress, Roles, TrailLike, as_source
from equipoise.audits._groups.flags import flag_groups
from equipoise.audits._groups.problem import Control, FlagOptions, Population, jointly, set_up
from equipoise.audits.methods import Bootstrap, Euclidean, Likelihood, Pivotal
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Together, as_claim
from equipoise.findings.flags import Flags
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import level_text

FlagMethod = (
    Literal["pivotal", "bootstrap", "bootstrap-unscaled"]
    | Literal["likelihood", "likelihood-plugin", "euclidean"]
    | Pivotal
    | Bootstrap
    | Likelihood
    | Euclidean
)


class _Options(Roles, total=False):
    """All options: none of them changes what kind of finding comes back."""

    above: float | None
    below: float | None
    outside: tuple[float, float] | None
    fdr: float
    control: Control
    population: Population
    method: FlagMethod | None
    min_rows: int | None
    resamples: int | None
    rng: Rng
    progress: Progress


@overload
def flag(trail: TrailLike | Tallied, claim: Claim, **options: Unpack[_Options]) -> Flags: ...
@overload
def flag(trail: TrailLike | Tallied, claim: Together, **options: Unpack[_Options]) -> Joint: ...
@overload
def flag(
    trail: TrailLike | Tallied, claim: Claim | Together, **options: Unpack[_Options]
) -> Flags | Joint: ...
@known_keywords
def flag(
    trail: TrailLike | Tallied,
    claim: Claim | Together,
    *,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    fdr: float = 0.10,
    control: Control = "bh",
    population: Population = "people like these",
    method: FlagMethod | None = None,
    min_rows: int | None = None,
    resamples: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[Roles],
) -> Flags | Joint:
    """Flag the groups whose disparity lies above, below or outside a limit.

    Parameters
    ----------
    trail, claim
        The audit trail, or its counts from `tally`, and the question. A path or a table will do as
        well, with what its columns mean as further keywords: ``label="hired"``, as in `read`.
    above, below, outside
        What to flag: disparities above a limit, below one, or outside a range. ``outside=(0, 0)``
        flags any difference. With none given, that is what is asked. For a ratio claim limits are
        ratios: ``below=0.8`` flags groups under four fifths of the target.
    fdr
        The rate of false flags that is controlled.
    control
        ``"bh"`` (false discovery rate; the default), ``"by"`` and ``"e-bh"`` (the same under any
        dependence between groups), ``"holm"`` or ``"max-t"`` (chance of any false flag at all).
    population
        Whom the flags speak of. ``"people like these"``: the population of which the rows are a
        sample. ``"these rows"``: exactly the people in the table; a flag then says that their
        outcomes can hardly have been dealt without regard to the group (all margins given).
    method
        How p-values are computed, as a value or by name: `Pivotal` (the default), or as published
        `Bootstrap`, whose p-values are too small in small groups, `Likelihood` and `Euclidean`.
    min_rows
        Leave out groups with fewer rows; the default method needs no minimum.
    resamples, rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))
    >>> flags = eq.flag(eq.datasets.compas(), claim, above=0.05, fdr=0.10)
    >>> flags.flagged[0].group
    'Less than 25'
    """
    options = FlagOptions(
        above=above,
        below=below,
        outside=outside,
        fdr=fdr,
        control=control,
        population=population,
        method=method,
        min_rows=min_rows,
        resamples=resamples,
    )
    source = as_source(trail, roles)
    if not isinstance(claim, Together):
        return flag_groups(set_up(source, as_claim(claim)), options, seed_of(rng), progress)

    def part(each: Claim, error: float, seed: Seed) -> Flags:
        return flag_groups(set_up(source, each), replace(options, fdr=error), seed, progress)

    promise = f"The stated rate of false flags, {level_text(fdr)}, covers all claims together"
    return jointly(claim, part, fdr, rng, promise)
