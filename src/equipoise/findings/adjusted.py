"""What is said of every group where legitimate factors are given."""

from dataclasses import dataclass

from equipoise.findings.finding import Group
from equipoise.findings.words import disparity_text, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedGroup(Group):
    """A group's disparity before it was adjusted, and what the adjustment rests on."""

    unadjusted: float | None
    """The disparity without the factors, over all rows."""
    explained: float | None
    """The part of an unadjusted gap that composition explains (Kitagawa); None for ratios."""
    strata: int
    """Strata in which the group has rows."""
    shared: int
    """Those of them in which there is somebody to compare with."""
    apart: int
    """Rows of the group in the others, which say nothing."""
    same: float | None
    """p-value of "the odds ratio is the same in all strata"; None if too few can tell."""


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
    alone = sum(row.apart for row in groups)
    if alone:
        out.append(
            f"{plural(alone, 'row')} of the groups share their {given} with nobody else and say "
            "nothing here."
        )
    uneven = [row for row in groups if row.same is not None and row.same < 0.05 / len(groups)]
    if uneven:
        names = ", ".join(row.group for row in uneven[:3])
        out.append(f"It is not the same in all strata: {names}. Look at them one by one.")
    return out
