"""Bounds where the problem itself is known only between two others.

Dearer moves, or fewer of them, can only lower the value of a distribution. So where the true
problem lies between one that is too hard for the auditor and one that is too easy, a lower bound
for the first and an upper bound for the second hold for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from equipoise.methods.transport.inference import Inference
from equipoise.methods.transport.limits import Limit

_HALVINGS = 20

End = Callable[[float], Limit | None]
"""What is known of the value in one of the two problems, given how often it may be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenLimit:
    """Lower bounds from the hard problem, upper bounds from the easy one.

    Attributes
    ----------
    hard, easy
        The two limits, given the error rate of the problems themselves.
    learnt
        Whether the problems are random. Half of every error rate then pays for it (Bonferroni).
    """

    hard: End
    easy: End
    learnt: bool

    def lower(self, alpha: float) -> float:
        """Lower bound in the hard problem."""
        limit = self.hard(self._part(alpha))
        return -inf if limit is None else limit.lower(self._part(alpha))

    def upper(self, alpha: float) -> float:
        """Upper bound in the easy problem."""
        limit = self.easy(self._part(alpha))
        return inf if limit is None else limit.upper(self._part(alpha))

    def p_above(self, delta: float) -> float:
        """The smallest error rate at which the lower bound exceeds ``delta``."""
        return _smallest(lambda alpha: self.lower(alpha) > delta)

    def p_below(self, delta: float) -> float:
        """The smallest error rate at which the upper bound is below ``delta``."""
        return _smallest(lambda alpha: self.upper(alpha) < delta)

    def _part(self, alpha: float) -> float:
        return alpha / 2 if self.learnt else alpha


def _smallest(shown: Callable[[float], bool]) -> float:
    """The smallest error rate at which something is shown, rounded up."""
    if not shown(1 - 1e-9):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        # low rates matter more, so the first steps are tenfold
        middle = high / 10 if low == 0 else (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def between(found: Inference, hard: End, easy: End, *, ceiling: float, learnt: bool) -> Inference:
    """The same inference where the problem is known only between two others.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.transport import infer, prepare, within_classes
    >>> from equipoise.methods.transport import NormalLimit
    >>> p = prepare(within_classes([0, 0]), [0, 1])
    >>> found = infer(p, [60, 940], rng=np.random.default_rng(1))
    >>> hard, easy = NormalLimit(value=0.05, error=0.007), NormalLimit(value=0.07, error=0.008)
    >>> wider = between(found, lambda a: hard, lambda a: easy, ceiling=1.0, learnt=False)
    >>> [round(x, 4) for x in wider.interval(0.95)]
    [0.0363, 0.0857]
    >>> wider.p_below(0.1) < 0.001
    True
    """
    if found.limit is None:
        return found
    limit = BetweenLimit(hard=hard, easy=easy, learnt=learnt)
    return replace(found, limit=limit, ceiling=max(found.ceiling, ceiling))
