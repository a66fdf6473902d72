"""What is said of every group beside its disparity: factors, changes, and who is unknown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from equipoise.findings.finding import Group
from equipoise.findings.words import disparity_text, listed, plural


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


# --- People whose group is unknown ---


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownGroup(Group):
    """How many people may be of a group, and what they can change; n are those who surely are."""

    unknown: int
    """Rows that may be of the group: an attribute that forms it is not known of them. Where labels
    are unknown, rows of the group without one."""
    lowest: float | None = None
    """The lowest that the disparity can be in these rows, whoever the unknown are."""
    highest: float | None = None
    """The highest."""
    lower: float | None = None
    """Lower bound as if attributes were missing completely at random, for all groups at once."""
    upper: float | None = None
    """Upper bound of the same."""
    tipping: float | None = None
    """The verdict among the known holds until the odds of being of the group, for unknown people of
    one outcome, are this many times those of known people, and for the other outcome as many times
    less; None if there is none, or if no spread of the unknown changes it."""
    regressed: float | None = None
    """Where only probabilities are known: the disparity by regression on them. It and the one
    weighted by probabilities lie either side of the truth if two covariances have one sign."""
    what: str = "people"
    """What is unknown: people, that is their groups, or labels."""
    by_chance: bool = False
    """Whether the group is known by probabilities only; n is then how many are expected."""
    calibration: float | None = None
    """p-value of "the probabilities are right", from rows whose group is known after all."""
    left_out: bool = False
    """Whether the unknown are left out, as if missing completely at random."""


def missing_sentences(groups: Iterable[Group]) -> list[str]:
    """How many people's attributes are unknown, where those form groups of their own."""
    alone = [group for group in groups if list(group.where.values()) == [None]]
    if not alone:
        return []
    said = listed([f"{next(iter(group.where))} of {plural(group.n, 'row')}" for group in alone])
    return [
        f"Not known: {said}. Here they are groups of their own; asked for the worst of what the "
        "unknown may be, an audit tells what they could change in the others."
    ]


def unknown_sentences(
    groups: Sequence[UnknownGroup], *, relative: bool, share: bool, made: str = "Bounds hold"
) -> list[str]:
    """How many are unknown, how far they can move the groups, and what it would take."""
    if any(g.what == "labels" for g in groups):
        return _label_ranges(groups, relative=relative, share=share, made=made)
    alone = {next(iter(g.where)): g.unknown for g in groups if len(g.where) == 1 and g.unknown}
    if not alone:
        return ["Of the rows that count, everyone's attributes are known."] if groups else []
    said = listed([f"{name} of {plural(rows, 'row')}" for name, rows in alone.items()])
    ranged = [g for g in groups if g.lowest is not None and g.highest is not None and g.unknown]
    if any(g.by_chance for g in groups):
        said = f"{said}, but for probabilities"
    if any(g.left_out for g in groups):
        return [
            f"Not known: {said}, who are left out of the groups it forms. That is right if "
            "attributes are missing completely at random, whatever outcome and group."
        ]
    if not ranged:
        return [f"Not known: {said}. No group has enough known people to speak of."]
    out = [f"Not known: {said}. {made} whichever groups they belong to."]

    def told(value: float | None) -> str:
        return disparity_text(value or 0.0, relative, share)

    widest = max(ranged, key=lambda g: (g.highest or 0.0) - (g.lowest or 0.0))
    out.append(
        f"Without any sampling error, the unknown alone leave the disparity of {widest.group} "
        f"anywhere from {told(widest.lowest)} to {told(widest.highest)}; of no group do they leave "
        "more open."
    )
    return [*out, *_tipping(groups), *_bracket(groups, told), *_calibration(groups)]


def _bracket(groups: Sequence[UnknownGroup], told: Callable[[float | None], str]) -> list[str]:
    both = [g for g in groups if g.regressed is not None]
    if not both:
        return []
    most = max(both, key=lambda g: abs(g.regressed or 0.0))
    return [
        f"Regression on the probabilities gives {told(most.regressed)} for {most.group}. The truth "
        "lies between that and the estimate weighted by them if outcome and membership, at equal "
        "probability, and outcome and probability, at equal membership, go the same way; nothing "
        "in these rows can show that."
    ]


def _calibration(groups: Sequence[UnknownGroup]) -> list[str]:
    known = [g for g in groups if g.calibration is not None]
    if not known:
        return []
    worst = min(known, key=lambda g: g.calibration or 0.0)
    p = min((worst.calibration or 0.0) * len(known), 1.0)
    if p < 0.05:
        return [
            f"Where the attribute is known, the probabilities are not right (worst for "
            f"{worst.group}, p = {p:.2g}): what is said above rests on them."
        ]
    return [f"Where the attribute is known, the probabilities fit (smallest p = {p:.2g})."]


def _label_ranges(
    groups: Sequence[UnknownGroup], *, relative: bool, share: bool, made: str
) -> list[str]:
    first = next(iter(groups[0].where), None)
    rows = sum(g.unknown for g in groups if list(g.where) == [first])
    if not rows:
        return ["Of the rows with a prediction, every one has a label."]
    out = [f"No label: {plural(rows, 'row')} of these groups. {made} whatever their labels are."]
    ranged = [g for g in groups if g.lowest is not None and g.highest is not None and g.unknown]
    if ranged:
        widest = max(ranged, key=lambda g: (g.highest or 0.0) - (g.lowest or 0.0))
        ends = [disparity_text(x or 0.0, relative, share) for x in (widest.lowest, widest.highest)]
        out.append(
            f"Without any sampling error, missing labels alone leave the disparity of "
            f"{widest.group} anywhere from {ends[0]} to {ends[1]}; of no group do they leave more "
            "open."
        )
    return out


def _tipping(groups: Sequence[UnknownGroup]) -> list[str]:
    tips = [g for g in groups if g.tipping is not None]
    if not tips:
        return []
    least = min(tips, key=lambda g: g.tipping or 0.0)
    if (least.tipping or 0.0) <= 1:
        return [
            f"Spread over the groups like known people of the same outcome, the unknown already "
            f"change what is shown of {least.group} among the known."
        ]
    return [
        f"To change what is shown among the known, the unknown would have to be spread unevenly: "
        f"for {least.group}, the first to change, odds {least.tipping:.2g} times those of known "
        "people with one outcome, and as many times less with the other."
    ]


# --- Few true labels, many cheap ones ---


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledGroup(Group):
    """A group by its true labels alone, and what the cheap ones add; n are rows with true ones."""

    gold: float | None
    """The metric by true labels alone."""
    worth: float
    """How many rows with true labels would tell as much as both kinds do."""
    followed: float
    """How far the cheap label is followed (λ): 0 where it does not help."""


def label_sentences(groups: Sequence[LabelledGroup], cheap: int) -> list[str]:
    """How many labels are cheap, and what they are worth."""
    told = [g for g in groups if g.n > 0]
    if not told:
        return []
    least, most = (end(told, key=lambda g: g.worth / g.n) for end in (min, max))
    said = f"{plural(cheap, 'row')} have a cheap label only. "
    if most.worth <= most.n:
        return [said + "Cheap labels add nothing here to the true ones."]
    return [
        f"{said}With the cheap labels, true ones are worth from {least.worth / least.n:.1f} times "
        f"({least.group}) to {most.worth / most.n:.1f} times ({most.group}) as many."
    ]
