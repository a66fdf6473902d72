"""Method notes: what each kind of finding answers, how, and when not to use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from equipoise._validate import known_name
from equipoise.errors import EquipoiseError

AUDITING = (
    "John J. Cherian and Emmanuel J. Candès, “Statistical Inference for Fairness Auditing”, "
    "Journal of Machine Learning Research, 2024"
)
CALIBRATION = (
    "Jean Feng, Alexej Gossmann, Romain Pirracchio, Nicholas Petrick, Gene Pennello and Berkman "
    "Sahiner, “Is this Model Reliable for Everyone? Testing for Strong Calibration”, 2024"
)
INDIVIDUAL = (
    "Songkai Xue, Mikhail Yurochkin and Yuekai Sun, “Auditing ML Models for Individual Bias and "
    "Unfairness”, 2020"
)
LIKELIHOOD = "Empirical likelihood for fairness auditing: certification and flagging"
SPREAD = (
    "Kristian Lum, Yunfeng Zhang and Amanda Bower, “De-biasing ‘bias’ measurement”, "
    "ACM Conference on Fairness, Accountability, and Transparency, 2022"
)
TEXTBOOK = "C. J. Clopper and E. S. Pearson, 1934, and E. B. Wilson, 1927, for single intervals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a reader needs to know of one kind of finding."""

    kind: str
    """The kind of finding."""
    title: str
    """Its name in plain words."""
    question: str
    """The question it answers."""
    computed: str
    """What is computed, in a few sentences."""
    reading: str
    """How to read it."""
    avoid: str
    """When not to use it."""
    paper: str
    """Where the method comes from."""


_ALL = (
    Note(
        kind="description",
        title="What is in the data",
        question="How large is each group, and what is its metric?",
        computed=(
            "Rows are counted and the metric is averaged in every group. Each average gets a "
            "confidence interval of its own, which does not know of the other groups."
        ),
        reading=(
            "Read one interval at a time. Among a hundred intervals of 95 % about five miss the "
            "truth although nothing is wrong, and the most extreme of many groups is extreme "
            "partly by chance."
        ),
        avoid=(
            "Do not pick the worst group from this table and call it harmed: that is what flags "
            "and simultaneous bounds are for."
        ),
        paper=TEXTBOOK,
    ),
    Note(
        kind="flags",
        title="Groups that are flagged",
        question="Which groups differ from the target by more than was allowed?",
        computed=(
            "Every group is tested against the limit, with the spread taken as it would be if the "
            "limit were just kept. The p-values are then adjusted together, so that the stated "
            "rate of false flags is kept over the whole collection."
        ),
        reading=(
            "A flagged group is shown to exceed the limit, up to the stated rate of false flags. "
            "A group without a flag may exceed it as well: the rows did not suffice to show it."
        ),
        avoid=(
            "Do not read a missing flag as fairness, and do not use flags where not one may be "
            "wrong: simultaneous bounds give that."
        ),
        paper=AUDITING,
    ),
    Note(
        kind="bounds",
        title="Bounds that hold for every group at once",
        question="How large could each group's disparity be, if all answers must be right?",
        computed=(
            "One critical value is found for the largest deviation over all groups together, "
            "with the dependence that overlapping groups have. Each group's bounds are the "
            "disparities that deviate from its rows by no more than that: by the likelihood of "
            "its counts for 0/1 metrics, by a scaled standard error otherwise."
        ),
        reading=(
            "With the stated confidence not a single bound is wrong, so any group may be picked "
            "after looking, any number of times. Bounds of small groups are wide because little "
            "is known about them."
        ),
        avoid=(
            "To list as many harmed groups as possible use flags, which tolerate a few mistakes "
            "and find more. The guarantee covers only the collection that was audited."
        ),
        paper=f"{AUDITING}; {LIKELIHOOD}",
    ),
    Note(
        kind="certificates",
        title="Certificates",
        question="For which groups is it shown that the limit is kept?",
        computed=(
            "Groups are certified from the strongest evidence down. After each round the groups "
            "already certified are set aside and the critical value is found again for the rest, "
            "which certifies more groups at the same error rate."
        ),
        reading=(
            "With the stated confidence no certificate is false. A group without one may keep "
            "the limit all the same."
        ),
        avoid="Certificates give no numbers and cannot show a violation; bounds and flags do.",
        paper=AUDITING,
    ),
    Note(
        kind="range certificates",
        title="Certificates for all ranges of a number",
        question="For which ranges of a number is it shown that the limit is kept?",
        computed=(
            "Every range between two values in the data is a group. A range is certified when a "
            "running sum rises by more than a critical value between its ends, and the critical "
            "value is that of the largest rise by chance over all ranges."
        ),
        reading=(
            "With the stated confidence no certified range violates the limit. A part of a "
            "certified range need not be certified: ask for the part."
        ),
        avoid="For a handful of age bands fixed beforehand, bounds on those bands say more.",
        paper=AUDITING,
    ),
    Note(
        kind="joint",
        title="Several claims as one",
        question="What holds for all the claims, and all their groups, together?",
        computed=(
            "Each claim is audited at a stricter level, the allowed error divided among them, so "
            "that everything shown holds at once. The table gives the claim on which each group "
            "does worst."
        ),
        reading=(
            "The guarantee quoted is the joint one. The parts carry all their numbers, at the "
            "stricter level."
        ),
        avoid="If the claims are separate questions for separate readers, audit them separately.",
        paper=AUDITING,
    ),
    Note(
        kind="joint_test",
        title="One test over all groups",
        question="Is there any difference at all?",
        computed=(
            "The likelihood ratio compares the rows with a world in which every group's disparity "
            "is zero. It is referred to a χ² distribution with as many degrees of freedom as "
            "there are disparities that do not follow from each other."
        ),
        reading=(
            "A small p-value shows that at least one group differs, without saying which. A large "
            "one shows nothing."
        ),
        avoid=(
            "With very many groups, or groups of a few rows, the approximation is rough and a "
            "difference in one group drowns; use flags."
        ),
        paper=LIKELIHOOD,
    ),
    Note(
        kind="summary",
        title="How unequal, in one number",
        question="How far apart are the groups, beyond what chance alone would show?",
        computed=(
            "Measures of spread are computed on the group averages and the part that sampling "
            "noise adds is subtracted. Intervals come from a bootstrap that is corrected for the "
            "same bias twice over, so that they may reach down to no difference."
        ),
        reading=(
            "Read the corrected value and its interval. The uncorrected value is shown because it "
            "is what is usually reported; it is too large, most of all with many small groups."
        ),
        avoid="One number hides who is harmed; it does not replace flags or bounds.",
        paper=SPREAD,
    ),
    Note(
        kind="comparison",
        title="Which spread is larger",
        question="Are groups further apart by one attribute, or model, than by another?",
        computed=(
            "The corrected variances between groups are subtracted, and the rows behind both are "
            "resampled jointly, so that what they share cancels."
        ),
        reading=(
            "If the interval leaves out zero, the spread named is shown to be larger. Each "
            "interval holds on its own."
        ),
        avoid="Uncorrected spreads cannot be compared: the attribute with more groups would win.",
        paper=SPREAD,
    ),
    Note(
        kind="individual",
        title="Comparable people",
        question="How much worse could the model do on people who differ only in what is varied?",
        computed=(
            "People may be exchanged for comparable people, within a budget of differences. The "
            "exchange that raises the average loss most is found by optimal transport, and the "
            "sampling error of that rise comes from the dual prices, with care near ties."
        ),
        reading=(
            "The audit value is the rise of the average loss in the worst comparable population. "
            "The table says who would be treated worse, and as whom."
        ),
        avoid=(
            "The answer is only as good as the notion of who is comparable. Without the model, "
            "only people in the table are compared."
        ),
        paper=INDIVIDUAL,
    ),
    Note(
        kind="fair choice",
        title="The best model among the fair ones",
        question="Which model errs least among those that keep the limit?",
        computed=(
            "Each model is audited for comparable people; those whose bound exceeds the tolerance "
            "are set aside, and of the others the one with the smallest loss is chosen."
        ),
        reading=(
            "The bound named in the constraint decides: a lower bound excludes only models shown "
            "to exceed the limit, an upper bound admits only models shown to keep it."
        ),
        avoid="The error of the chosen model is flattered by the choice; judge it on new rows.",
        paper=INDIVIDUAL,
    ),
    Note(
        kind="calibration",
        title="Strong calibration",
        question="Are there people for whom predicted risks are systematically wrong?",
        computed=(
            "Residuals are added up in many ways: along the score, along a line in every input, "
            "over half-lines, levels and corners of the columns, and where models that have learnt "
            "on half of the rows suspect something in the other half. If some group is poorly "
            "calibrated, one of these sums is larger than chance makes any of them."
        ),
        reading=(
            "A small p-value shows that some group is miscalibrated by more than the tolerance. No "
            "finding shows only that none was found with these rows and these learners."
        ),
        avoid="For groups named beforehand, bounds on the mean residual are more direct.",
        paper=CALIBRATION,
    ),
    Note(
        kind="shift",
        title="Other populations",
        question="How would the disparity change in a population with other people in it?",
        computed=(
            "Rows are reweighted smoothly toward other mixtures of people, and the metric is "
            "bounded for all these reweightings at once, as it is for groups."
        ),
        reading=(
            "With the stated confidence the bounds hold for every mixture considered. A mixture "
            "that rests on few rows has wide bounds."
        ),
        avoid="Nothing is said of people who are not in the table, or of changed behaviour.",
        paper=AUDITING,
    ),
    Note(
        kind="monotone shift",
        title="Populations that lean one way",
        question="How would the disparity change where high, or low, values are more common?",
        computed=(
            "Every weight that only rises in a number is a mixture of half-lines, from a cut up. "
            "All half-lines are bounded at once, as groups are, and so is every mixture of them."
        ),
        reading=(
            "With the stated confidence the bounds hold for every weight that only rises or only "
            "falls. A weight that rests on the last few rows has wide bounds."
        ),
        avoid="For weights that rise and fall again, or in several columns, use a kernel.",
        paper=AUDITING,
    ),
)

NOTES: Mapping[str, Note] = MappingProxyType({note.kind: note for note in _ALL})
"""The note of each kind of finding."""


def note_of(kind: str) -> Note:
    """The note of a kind of finding; an error says which kinds there are.

    >>> note_of("flags").title
    'Groups that are flagged'
    """
    spelled = {_plain(name): name for name in NOTES}
    name = spelled.get(_plain(str(kind)), str(kind))
    return NOTES[known_name("Kind of finding", name, NOTES, EquipoiseError)]


def _plain(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").strip().lower()
