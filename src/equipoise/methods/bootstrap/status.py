"""Why a group has no usable answer; a code per group, worded by the layer above."""

from enum import IntEnum


class Status(IntEnum):
    """The state of one group in one audit.

    >>> Status(1).name
    'EMPTY'
    """

    OK = 0
    """The group can be audited."""
    EMPTY = 1
    """No row belongs to the group."""
    SINGLE = 2
    """One row only: a bound exists, but it says nothing about spread and certifies nothing."""
    CONSTANT = 3
    """The metric does not vary, so resampling cannot tell how uncertain it is."""
    NO_TARGET = 4
    """The target has no rows here (empty reference, empty complement, or ratio to zero)."""
    IDENTICAL = 5
    """The group is its own target, so the disparity is zero by definition."""
