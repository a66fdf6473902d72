"""What is said of every group beside its disparity: without factors, or before and after."""

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.findings.finding import Group
from equipoise.findings.words import disparity_text, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedGroup(Group):
    """A group's disparity before it was adjusted, and what the adjustment rests on."""

    unadjusted: float | None
    """The disparity without the factors, over all rows."""
    explained: float | None
    """The part of an unadjusted gap that composition explains (Kitagawa; with models, or where
    rows have weights or clusters, all that is not left); None for ratios."""
    strata: int | None = None
    """Strata in which the group has rows, where counts of strata are used."""
    shared: int | None = None
    """Those of them in which there is somebody to compare with."""
    apart: int | None = None
    """Rows of the group in the others, which say nothing."""
    same: float | None = None
    """p-value of "the odds ratio is the same in all strata"; None if too few can tell."""
    differing: tuple[str, ...] = ()
    """Strata whose odds ratio departs from all others' by more than chance does in any of them."""
    compared: float | None = None
    """How many rows' worth of people the factors leave open, where rows are used."""
    smallest: float | None = None
    """The smallest chance, by the factors, of belonging to the group or to the others."""
    unknown: int | None = None
    """Rows of the group of which a factor that forms strata is missing: a stratum of their own."""
    hidden: float | None = None
    """E-value: what a hidden factor would have to multiply both rates and chances by to explain
    all that is left; None for metrics that are no rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedGroup(Group):
    """A group's metric under two models on the same rows, or of both members of its pairs."""

    before: float | None
    """The metric before, or of the partners; None where it counts on no row."""
    after: float | None
    """The metric after, or of the group itself."""
    change: float | None
    """How far it went."""


def changed_sentences(
    groups: tuple[ChangedGroup, ...], claim: Mapping[str, object], *, share: bool
) -> list[str]:
    """The groups whose metric moved furthest, with what it was and is, or is among partners."""
    known = [row for row in groups if row.change is not None]
    furthest = sorted(known, key=lambda row: -abs(row.change or 0.0))[:3]
    both = [(row.group, _value(row.before, share), _value(row.after, share)) for row in furthest]
    if is_paired(claim):
        said = [f"{group} {after}, their partners {before}" for group, before, after in both]
        return [f"Furthest apart: {'; '.join(said)}."] if said else []
    said = [f"{group} {before} before and {after} after" for group, before, after in both]
    return [f"Moved furthest: {'; '.join(said)}."] if said else []


def is_paired(claim: Mapping[str, object]) -> bool:
    """Whether what is listed are pairs with a reference group, not a change."""
    target = claim.get("target")
    return isinstance(target, Mapping) and target.get("kind") == "reference"


def _value(value: float | None, share: bool) -> str:
    if value is None:
        return "unknown"
    return f"{100 * value:.1f} %" if share else f"{value:.3g}"


def adjusted_sentences(
    groups: tuple[AdjustedGroup, ...], given: str, *, relative: bool, share: bool
) -> list[str]:
    """Unadjusted disparities, what composition explains, and who has nobody to compare with."""
    known = [row for row in groups if row.unadjusted is not None]
    if not known:
        return []
    even = 1.0 if relative else 0.0
    furthest = sorted(known, key=lambda row: -abs((row.unadjusted or 0.0) - even))
    said = []
    for row in furthest[:3]:
        text = f"{row.group} {disparity_text(row.unadjusted or 0.0, relative, share)}"
        if row.explained is not None:
            part = disparity_text(row.explained, relative, share)
            text += f", of which composition explains {part}"
        said.append(text)
    out = [f"People are compared given {given}. Without that: {'; '.join(said)}."]
    alone = sum(row.apart or 0 for row in groups)
    if alone:
        out.append(
            f"{plural(alone, 'row')} of the groups share their {given} with nobody else and say "
            "nothing here."
        )
    without = [f"{row.unknown:,} of {row.group}" for row in groups if row.unknown]
    if without:
        more = f" and {len(without) - 3} more groups" if len(without) > 3 else ""
        out.append(
            f"Rows without {given} ({', '.join(without[:3])}{more}) are compared with one another."
        )
    uneven = [row for row in groups if row.same is not None and row.same < 0.05 / len(groups)]
    for row in uneven[:3]:
        where = f"; {', '.join(row.differing[:3])} differs most" if row.differing else ""
        out.append(f"For {row.group} it is not the same for every {given}{where}.")
    return [*out, *_hidden(groups)]


def _hidden(groups: tuple[AdjustedGroup, ...]) -> list[str]:
    """How strong a factor that nobody measured would have to be, and how thin the overlap is."""
    out = []
    told = [row for row in groups if row.hidden is not None]
    if told:
        most = max(told, key=lambda row: row.hidden or 0.0)
        out.append(
            f"To explain away all that is left for {most.group}, a factor that nobody measured "
            f"would have to multiply both the rate and the chance to be of the group by at least "
            f"{most.hidden:.1f}."
        )
    thin = [row for row in groups if row.smallest is not None and row.smallest < 0.01]
    if thin:
        names = ", ".join(row.group for row in thin[:3])
        out.append(
            f"The factors of some rows nearly decide the group ({names}: chances below 1 %); such "
            "rows tell little."
        )
    return out
