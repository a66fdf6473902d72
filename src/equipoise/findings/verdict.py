"""The three answers to a claim with a tolerance."""

from enum import StrEnum


class Verdict(StrEnum):
    """What the data show about a claim. Absence of evidence has a name of its own.

    >>> str(Verdict.SHOWN_NOT)
    'shown not'
    """

    SHOWN = "shown"
    """The claim holds, at the stated level."""
    SHOWN_NOT = "shown not"
    """The claim fails, at the stated level."""
    UNDETERMINED = "undetermined"
    """The data show neither."""
