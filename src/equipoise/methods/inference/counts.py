"""The pivot of 0/1 metrics: counts of disjoint parts, exact where they are small.

A disparity of δ fixes a contrast of the parts' rates. Their most likely values under it give the
distribution of the contrast, and its two tails beyond what was seen are the p-values of δ. The rates
that δ leaves open are estimated, so the tails are the largest over these and half a standard error
either side: enumerated over all tables of up to 40 rows a part, that keeps the error rate.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, rel_entr, stdtr

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.inference.comparison import Comparison, over
from equipoise.methods.inference.constrained import constrained_rates
from equipoise.methods.inference.tails import Tails, linear_tails

PLENTY = 1000.0
"""A part whose count has this variance is as good as normal."""
SHAKY = 0.03
"""Where shares add more than this to the variance, their likely values are sought."""
SHARE_STEPS = (19, 9, 9)
"""Values that are tried, in ever narrower ranges."""
OPEN_RATES = 0.5
"""Standard errors by which the rates that a disparity leaves open are moved either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPivot:
    """p-values of disparities of a 0/1 metric."""

    comparison: Comparison
    """Groups beside their target."""
    rows: FloatArray
    """Rows, or effective rows of weighted and clustered data, of each part."""
    degrees: FloatArray
    """Degrees of freedom behind the effective rows; infinite for plain counts."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        return self.comparison.estimate

    @property
    def rates(self) -> FloatArray:
        """The parts' rates; zero for a part without rows."""
        return np.nan_to_num(over(self.comparison.parts.total, self.comparison.parts.weight))

    @property
    def error(self) -> FloatArray:
        """About the standard error of the disparity, never zero: where a search starts."""
        found = self.comparison
        factor = found.factor(np.where(np.isfinite(self.estimate), self.estimate, 1.0))
        a = found.slopes(factor) * found.parts.weight
        # half a row of either kind keeps rates away from the ends
        pulled = (self.rates * self.rows + 0.5) / (self.rows + 1)
        own = (a**2 * pulled * (1 - pulled) / np.maximum(self.rows, 0.5)).sum(axis=0)
        variance = own + self._noise(found, factor, self.rates)
        unit = found.target.scale * found.theta if found.relative else 1.0
        return np.asarray(np.sqrt(np.maximum(variance, 1e-30)) / np.maximum(np.abs(unit), 1e-12))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        found, n = self.comparison.some(chosen), self.rows[:, chosen]
        factor, aim = found.factor(disparity), found.aim(disparity)
        rates = np.nan_to_num(over(found.parts.total, found.parts.weight))
        likely = found.reweighed(_likely_shares(found, n, rates, factor, aim))
        a = _contrast(likely, n, factor)
        fitted, _ = constrained_rates(n, rates, a, aim)
        # the statistic keeps the observed shares; how unlikely they are is part of it
        effect = likely.slopes(factor) * fitted - likely.intercepts(factor, fitted)
        a = np.where(a != 0, likely.slopes(factor) * found.parts.weight, 0.0)
        seen = (a * rates).sum(axis=0) + (effect * found.parts.weight).sum(axis=0)
        everywhere = np.arange(seen.size)
        # in parts with many outcomes the rates left open hardly matter, nor does one outcome
        many = np.where(a != 0, n * fitted * (1 - fitted), np.inf).min(axis=0) >= PLENTY
        few = np.flatnonzero(~many)
        step = _open_rates(n[:, few], fitted[:, few], a[:, few])
        some = np.abs(step).max(axis=0) > 0
        moving, step = few[some], step[:, some]
        cases = [(everywhere, fitted)] + [
            (moving, _moved(fitted[:, moving], sign * step)) for sign in (-1.0, 1.0)
        ]
        up, down = np.zeros(seen.shape), np.zeros(seen.shape)
        for place, mu in cases:
            noise = self._noise(likely.some(place), factor[place], mu)
            # with and without: the noise of shares would halve the chance of the outcome itself
            noisy, plain = noise > 0, (noise == 0) | ~many[place]
            for extra, here in ((0.0, np.flatnonzero(plain)), (1.0, np.flatnonzero(noisy))):
                if here.size == 0:
                    continue
                at = place[here]
                high, low = linear_tails(
                    n[:, at], mu[:, here], a[:, at], seen[at], extra * noise[here]
                )
                up[at], down[at] = np.maximum(up[at], high), np.maximum(down[at], low)
        return self._student(up, chosen), self._student(down, chosen)

    @staticmethod
    def _noise(found: Comparison, factor: FloatArray, rates: FloatArray) -> FloatArray:
        """Variance from parts' shares of the population, and from a custom target."""
        effect = found.slopes(factor) * rates - found.intercepts(factor, rates)
        mixed = (found.parts.weight2 * effect**2).sum(axis=0)
        # shares cannot matter where group and target are one part each
        size = np.sum(found.slopes(factor) ** 2 * found.parts.weight2, axis=0)
        mixed = np.where(mixed > 1e-13 * size, mixed, 0.0)
        return np.asarray(np.maximum(mixed + found.custom_variance(factor), 0.0))

    def _student(self, p: FloatArray, chosen: IntArray) -> FloatArray:
        """The same tail of Student's distribution, where the effective rows are estimated."""
        degrees = self.degrees[chosen]
        known = np.isinf(degrees)
        if bool(known.all()):
            return p
        z = ndtri(np.clip(p, 1e-300, 1 - 1e-16))
        return np.where(known, p, stdtr(np.where(known, 1.0, degrees), z))


def _contrast(found: Comparison, n: FloatArray, factor: FloatArray) -> FloatArray:
    """Coefficients of the parts' rates; what cancels leaves dust."""
    a = found.slopes(factor) * found.parts.weight
    return np.where((np.abs(a) > 1e-12) & (n > 0), a, 0.0)


def _likely_shares(
    found: Comparison, n: FloatArray, rates: FloatArray, factor: FloatArray, aim: FloatArray
) -> FloatArray:
    """Factors on the parts' shares of the population that make the disparity most likely.

    Where group or target consist of several parts, their shares are estimated too, and under a
    disparity the most likely shares are not those observed. What counts is the share of the part
    that belongs to both; it is sought on either side of the one observed.
    """
    times = np.ones_like(rates)
    if not found.target.mixed:
        return times
    a = _contrast(found, n, factor)
    mu, _ = constrained_rates(n, rates, a, aim)
    effect = found.slopes(factor) * mu - found.intercepts(factor, mu)
    shaky = (found.parts.weight2 * effect**2).sum(axis=0)
    steady = (a**2 * mu * (1 - mu) / np.maximum(n, 1e-9)).sum(axis=0)
    # at the observed shares the disparity may be impossible, or take rates that exclude the data
    excluded = (((mu <= 0) & (rates > 0)) | ((mu >= 1) & (rates < 1))) & (n > 0)
    missed = np.abs((a * mu).sum(axis=0) - aim) > 1e-9 * (np.abs(a).sum(axis=0) + np.abs(aim))
    todo = np.flatnonzero((shaky > SHAKY * steady) | missed | excluded.any(axis=0))
    if todo.size == 0:
        return times
    both = (found.in_group * found.in_target) > 0
    some, size, mean = found.some(todo), n[:, todo], rates[:, todo]
    inside = np.maximum((both * size).sum(axis=0), 0.25)
    outside = np.maximum((~both * size).sum(axis=0), 0.25)
    error = np.sqrt(1 / inside + 1 / outside)
    centre, width = np.zeros(todo.size), 4.5
    for steps in SHARE_STEPS:
        grid = np.linspace(-width, width, steps)
        lost = np.stack(
            [
                _loss(some, size, mean, factor[todo], aim[todo], both, centre + g * error)
                for g in grid
            ]
        )
        best = np.argmin(lost, axis=0)
        centre, width = centre + grid[best] * error, 2 * width / (steps - 1)
    times[:, todo] = np.where(both, np.exp(centre), 1.0)
    return times


def _loss(
    found: Comparison,
    n: FloatArray,
    rates: FloatArray,
    factor: FloatArray,
    aim: FloatArray,
    both: BoolArray,
    log_odds: FloatArray,
) -> FloatArray:
    """Log-likelihood lost when the common part's odds are moved and the rates obey the disparity."""
    times = np.where(both, np.exp(log_odds), 1.0)
    here = found.reweighed(times)
    a = _contrast(here, n, factor)
    mu, _ = constrained_rates(n, rates, a, aim)
    ones = n * rates
    with np.errstate(divide="ignore"):
        lost = rel_entr(ones, n * mu) + rel_entr(n - ones, n * (1 - mu))
    share = n * times / np.maximum((n * times).sum(axis=0), 1e-300)
    lost = (lost + rel_entr(n, share * n.sum(axis=0))).sum(axis=0)
    reached = np.abs((a * mu).sum(axis=0) - aim) <= 1e-9 * (np.abs(a).sum(axis=0) + np.abs(aim))
    return np.where(reached, lost, np.inf)


def _open_rates(n: FloatArray, rates: FloatArray, a: FloatArray) -> FloatArray:
    """Half a standard error along the rates that the contrast leaves open, ``(parts, G)``."""
    used = a != 0
    spread = np.maximum(rates * (1 - rates), 0.25 / np.maximum(n, 1.0)) / np.maximum(n, 1e-9)
    spread = np.where(used, spread, 0.0)
    # all rates up alike, less what that would do to the contrast
    pull = (a**2 * spread).sum(axis=0)
    along = used - spread * a * over((a * used).sum(axis=0), pull)
    along = np.nan_to_num(np.where(used, along, 0.0))
    along = np.where(np.abs(along) > 1e-9, along, 0.0)
    information = np.where(used, along**2 / np.where(used, spread, 1.0), 0.0).sum(axis=0)
    step = OPEN_RATES / np.sqrt(np.where(information > 0, information, np.inf))
    return np.asarray(along * step)


def _moved(rates: FloatArray, move: FloatArray) -> FloatArray:
    """Rates moved, no further than to the end of the first one's range."""
    room = np.where(move > 0, 1 - rates, rates)
    fits = np.divide(room, np.abs(move), out=np.full_like(move, np.inf), where=move != 0)
    return np.asarray(np.clip(rates + move * np.minimum(fits.min(axis=0), 1.0), 0.0, 1.0))
