"""The pivot of metrics with two or three values, such as the difference of two 0/1 metrics.

As with 0/1 metrics, a disparity of δ fixes a contrast of the parts' means. The most likely
probabilities of the values under it give the distribution of the contrast, which lies on a lattice,
and its two tails beyond what was seen are the p-values of δ. Two things stay open: the level of the
means and how many rows differ from the middle value. The tails are the largest over the fitted
probabilities and half a standard error along both; enumerated over all tables of up to twelve rows,
and of two parts of up to 40, that keeps the error rate to within half a point. About a known number
there is a sharper way for few rows that differ from the middle value, in `paired`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import log_ndtr, ndtr, rel_entr

from equipoise.methods.hypotheses import Tails
from equipoise.methods.inference.counts import (
    OPEN_STEPS,
    PLENTY,
    SHAKY,
    SHARE_MOVES,
    SHARE_STEPS,
    far_tail,
)
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, over
from equipoise.methods.targets import Comparison, OfComparison

LEVEL_STEPS = ((0.5, 25.0), (1.0, 5.0))
"""Standard errors by which the level of the means is moved either way, and up to which variance of
a part's sum, if there are three values; above that it hardly matters beside the spread."""
SPREAD_STEP = 0.5
"""Standard errors by which the spread is raised; less of it never made a tail larger."""
PULL = 0.5
"""Rows of each value that are added where a value that nobody has must not look impossible."""
FAINT = 1e-3
"""Noise that adds less than this to the variance is not felt."""
FILLED = 0.4
"""Noise whose variance, in squared steps of a lattice, fills its gaps."""
LARGE = 100.0
"""A part whose sum has this variance is close enough to a normal with skewness."""
REACH = 6.0
"""Standard deviations, and half a dozen outcomes more, to which small parts are written out."""
WIDEST = 1 << 12
"""Outcomes of one part that are written out at most."""
MOST_PAIRS = 1 << 13
"""Outcomes of two parts that are written out together at most, if a normal part is left."""
_BLOCK = 1 << 16
_STEPS = np.array([-1.0, 0.0, 1.0])[:, None, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewValuedPivot(OfComparison):
    """p-values of disparities of an unweighted metric with two or three equally spaced values.

    Of 10 rows one got worse and six got better; were things unchanged, so many would be rare:

    >>> from equipoise.methods.targets import compare, plain_moments
    >>> from equipoise.methods.targets import Constant
    >>> sums = plain_moments(*(np.array([x]) for x in (10.0, 5.0, 7.0, 5.0)))
    >>> found = compare(sums, Constant(value=0.0), lambda x: x)
    >>> up, down = FewValuedPivot(comparison=found).tails(np.zeros(1), np.array([0]))
    >>> up.round(3).tolist(), down.round(3).tolist()
    ([0.052], [0.983])
    """

    comparison: Comparison
    """Groups beside their target."""
    values: tuple[float, ...] = (-1.0, 0.0, 1.0)
    """The values that the metric can take, in rising order."""

    def __post_init__(self) -> None:
        gaps = np.diff(self.values)
        if len(gaps) not in (1, 2) or not gaps[0] > 0 or abs(gaps[-1] / gaps[0] - 1) > 1e-9:
            raise ValueError(f"expected two or three rising, equally spaced values: {self.values}")

    @property
    def error(self) -> FloatArray:
        """About the standard error of the disparity, never zero: where a search starts."""
        found = self.comparison
        case = self._case(np.where(np.isfinite(self.estimate), self.estimate, 1.0), found)
        chance = case.pulled(case.counts)
        variance = case.own_variance(chance) + case.noise(chance)
        unit = found.target.scale * found.theta if found.relative else 1.0
        return np.asarray(np.sqrt(np.maximum(variance, 1e-30)) / np.maximum(np.abs(unit), 1e-12))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        up, down = np.zeros(disparity.shape), np.zeros(disparity.shape)
        case = self._case(disparity, self.comparison.some(chosen))
        for place, here, drawn in _with_shares(case):
            for at, chance, seen, noise in _with_open_chances(here, drawn):
                rows, a = here.found.parts.rows[:, at], here.effects[:, at]
                high, low = lattice_tails(rows, chance, a, seen, noise)
                up[place[at]] = np.maximum(up[place[at]], high)
                down[place[at]] = np.maximum(down[place[at]], low)
        return _sharpened(case, up, down) if case.known else (up, down)

    def _case(self, disparity: FloatArray, found: Comparison) -> "_Case":
        return _Case(
            found=found,
            counts=_counts(found, self.values),
            factor=found.factor(disparity),
            aim=found.aim(disparity),
            values=self.values,
        )


def _counts(found: Comparison, values: tuple[float, ...]) -> FloatArray:
    """Rows with each value, ``(3, parts, G)``, from sums of the metric and its square."""
    m, middle, step = found.parts, (values[0] + values[-1]) / 2, (values[-1] - values[0]) / 2
    first = (m.total - middle * m.rows) / step
    second = (m.square2 - 2 * middle * m.total + middle**2 * m.rows) / step**2
    high = np.clip(np.round((second + first) / 2), 0.0, m.rows)
    low = np.clip(np.round((second - first) / 2), 0.0, m.rows - high)
    return np.stack([low, m.rows - low - high, high])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What a disparity asks of each group; values are counted −1, 0, 1, two of them as the ends."""

    found: Comparison
    """Groups beside their target; weights are the shares that parts are thought to have."""
    counts: FloatArray
    factor: FloatArray
    aim: FloatArray
    values: tuple[float, ...]

    def some(self, where: IntArray) -> "_Case":
        return replace(
            self,
            found=self.found.some(where),
            counts=self.counts[..., where],
            factor=self.factor[where],
            aim=self.aim[where],
        )

    def reweighed(self, times: FloatArray) -> "_Case":
        return replace(self, found=self.found.reweighed(times))

    @property
    def known(self) -> bool:
        """Whether three values are compared with a number, so that one part is all there is."""
        return not self.found.target.estimated and len(self.values) > 2

    @property
    def middle(self) -> float:
        return (self.values[0] + self.values[-1]) / 2

    @property
    def step(self) -> float:
        return (self.values[-1] - self.values[0]) / 2

    @property
    def contrast(self) -> FloatArray:
        """Coefficients of the parts' means; what cancels leaves dust."""
        a = self.found.slopes(self.factor) * self.found.parts.weight
        return np.where((np.abs(a) > 1e-12) & (self.found.parts.rows > 0), a, 0.0)

    @property
    def effects(self) -> FloatArray:
        """Coefficients of the means that were seen, in lattice steps, with the observed shares."""
        a = self.found.slopes(self.factor) * self.found.parts.rows
        return np.where(self.contrast != 0, a * self.step, 0.0)

    def means(self, chance: FloatArray) -> FloatArray:
        """Means of the metric."""
        return np.asarray(self.middle + self.step * _mean(chance))

    def mixture(self, chance: FloatArray) -> FloatArray:
        """Effect of one more row of a part, beyond what its values do, ``(parts, G)``."""
        means = self.means(chance)
        slopes, intercepts = (
            self.found.slopes(self.factor),
            self.found.intercepts(self.factor, means),
        )
        effect = slopes * means - intercepts
        # shares cannot matter where group and target are one part each
        dust = 1e-7 * (np.abs(slopes * means) + np.abs(intercepts)).max(axis=0)
        return np.where(np.abs(effect) > dust, effect, 0.0)

    def own_variance(self, chance: FloatArray) -> FloatArray:
        """Variance of the contrast at given shares."""
        rows = np.maximum(self.found.parts.rows, 0.5)
        return np.asarray((self.effects**2 * _variance(chance) / rows).sum(axis=0))

    def noise(self, chance: FloatArray) -> FloatArray:
        """Variance from parts' shares of the population, and from a custom target."""
        mixed = (self.found.parts.rows * self.mixture(chance) ** 2).sum(axis=0)
        return np.asarray(np.maximum(mixed + self.found.custom_variance(self.factor), 0.0))

    def seen(self, fitted: FloatArray) -> FloatArray:
        """The contrast that was seen; how unlikely the observed shares are is part of it."""
        rows = self.found.parts.rows
        own = self.effects * _mean(self.counts) / np.maximum(rows, 1.0)
        return np.asarray((own + self.mixture(fitted) * rows).sum(axis=0))

    def fitted(self, counts: FloatArray) -> FloatArray:
        """Most likely probabilities under the disparity."""
        a = self.contrast
        return constrained_chances(counts, a, (self.aim - self.middle * a.sum(axis=0)) / self.step)

    def missed(self, chance: FloatArray) -> BoolArray:
        """Where no probabilities can have the disparity."""
        a, means = self.contrast, self.means(chance)
        size = (np.abs(a) * np.maximum(np.abs(means), self.step)).sum(axis=0) + np.abs(self.aim)
        return np.asarray(np.abs((a * means).sum(axis=0) - self.aim) > 1e-9 * size)

    def pulled(self, counts: FloatArray) -> FloatArray:
        """Probabilities away from zero, of the values that there are."""
        extra = np.array([PULL, PULL * (len(self.values) > 2), PULL])[:, None, None]
        return np.asarray((counts + extra) / (counts.sum(axis=0) + extra.sum()))


def _sharpened(case: _Case, up: FloatArray, down: FloatArray) -> Tails:
    """The tails about a known number that matter, where few rows differ from the middle value."""
    a, n = case.contrast[0], case.found.parts.rows[0]
    mean = (over(case.aim, a) - case.middle) / case.step
    inside = np.abs(np.nan_to_num(mean, nan=2.0)) < 1
    few = inside & (n * _variance(case.fitted(case.counts))[0] < LARGE)
    here = np.flatnonzero(few & (np.minimum(up, down) < 0.5))
    if here.size:
        low, _, high = case.counts[:, 0, here]
        # the sums say on which side what was seen lies, and that side alone is asked about
        above = up[here] <= down[here]
        plus, minus = np.where(above, high, low), np.where(above, low, high)
        tail = far_tail(n[here], plus, minus, np.where(above, 1, -1) * mean[here])
        up[here], down[here] = np.where(above, tail, up[here]), np.where(above, down[here], tail)
    return up, down


# --- what a disparity leaves open ----------------------------------------------------------------


def _with_shares(case: _Case) -> Iterator[tuple[IntArray, _Case, bool]]:
    """The observed shares of the parts, and where they matter likely ones and some around them."""
    yield np.arange(case.aim.size), case, False
    shaky = np.flatnonzero(_shares_matter(case))
    if shaky.size == 0:
        return
    common = np.asarray(case.found.in_group * case.found.in_target > 0)
    centre, error = _likely_odds(case.some(shaky), common)
    size = case.found.parts.rows[:, shaky].sum(axis=0)
    for by, most in SHARE_MOVES:
        here = np.flatnonzero(size <= most)
        if here.size:
            times = np.where(common, np.exp(centre[here] + by * error[here]), 1.0)
            yield shaky[here], case.some(shaky[here]).reweighed(times), True


def _shares_matter(case: _Case) -> BoolArray:
    """Where the shares of the parts add something to the variance, or forbid the disparity."""
    if not case.found.target.mixed:
        return np.zeros(case.aim.shape, dtype=np.bool_)
    fitted = case.fitted(case.counts)
    mixed = (case.found.parts.rows * case.mixture(fitted) ** 2).sum(axis=0)
    excluded = ((fitted <= 0) & (case.counts > 0)).any(axis=(0, 1))
    shaky = mixed > SHAKY * case.own_variance(fitted)
    return np.asarray(shaky | excluded | case.missed(fitted))


def _likely_odds(case: _Case, common: BoolArray) -> tuple[FloatArray, FloatArray]:
    """How far to move the log-odds of the part that group and target share, and its error.

    Under a disparity the most likely share of that part is not the one observed; it is sought on
    either side of it.
    """
    n = case.found.parts.rows
    inside, outside = (np.maximum((x * n).sum(axis=0), 0.25) for x in (common, ~common))
    error = np.sqrt(1 / inside + 1 / outside)
    centre, width = np.zeros(error.size), 4.5
    for steps in SHARE_STEPS:
        grid = np.linspace(-width, width, steps)
        tried = [np.where(common, np.exp(centre + g * error), 1.0) for g in grid]
        best = np.argmin(np.stack([_lost(case, times) for times in tried]), axis=0)
        centre, width = centre + grid[best] * error, 2 * width / (steps - 1)
    return centre, error


def _lost(case: _Case, times: FloatArray) -> FloatArray:
    """Log-likelihood lost when shares are moved and the probabilities obey the disparity."""
    n, here = case.found.parts.rows, case.reweighed(times)
    fitted = here.fitted(case.counts)
    share = n * times / np.maximum((n * times).sum(axis=0), 1e-300)
    with np.errstate(divide="ignore"):
        lost = rel_entr(case.counts, n * fitted).sum(axis=0) + rel_entr(n, share * n.sum(axis=0))
    return np.where(here.missed(fitted), np.inf, lost.sum(axis=0))


def _with_open_chances(
    case: _Case, drawn: bool
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
    """Groups, probabilities, what was seen, and noise: all that the tails are the largest of."""
    fitted = case.fitted(case.counts)
    seen = case.seen(fitted)
    used = case.contrast != 0
    least = np.where(used, case.found.parts.rows * _variance(fitted), np.inf).min(axis=0)
    for place, chance in _open_chances(case, fitted, least):
        here = case.some(place)
        noise = here.noise(chance)
        noisy = noise > FAINT * here.own_variance(chance)
        # with and without: the noise of shares would halve the chance of the outcome itself
        plain = ~noisy | ((least[place] < PLENTY) & (not drawn))
        for some, extra in ((plain, 0.0), (noisy, 1.0)):
            if bool(some.any()):
                yield place[some], chance[..., some], seen[place[some]], extra * noise[some]


def _open_chances(
    case: _Case, fitted: FloatArray, least: FloatArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """The fitted probabilities, and those moved along what the disparity leaves open."""
    yield np.arange(case.aim.size), fitted
    if case.known:
        # enumerated: the sum alone, at the fitted spread, errs on the safe side
        return
    rows, a = case.found.parts.rows, case.contrast
    pulled = case.pulled(rows * fitted)
    for wish, steps in _wishes(rows, pulled, a, three=len(case.values) > 2):
        along = _open_direction(rows, pulled, a, wish)
        moves = np.abs(along).max(axis=(0, 1)) > 0
        for by, most in steps:
            # in parts with many outcomes what is left open hardly matters
            place = np.flatnonzero(moves & (least < most))
            if place.size:
                moved = np.maximum(fitted[..., place] + by * along[..., place], 0.0)
                moved = rows[:, place] * moved / moved.sum(axis=0)
                # what was cut off at zero has to be made up for
                yield place, case.some(place).fitted(moved)


def _wishes(
    n: FloatArray, chance: FloatArray, a: FloatArray, *, three: bool
) -> Iterator[tuple[FloatArray, tuple[tuple[float, float], ...]]]:
    """Gradients of what is left open, how far to go, and up to which variance of a part."""
    used = a != 0
    variance = np.where(used, _variance(chance), 1.0)
    all_means_alike = np.where(used, n / variance, 0.0) * _STEPS
    steps = LEVEL_STEPS if three else OPEN_STEPS
    yield all_means_alike, tuple((x, most) for by, most in steps for x in (-by, by))
    if three:
        spread = np.where(used, a**2 / np.maximum(n, 1.0), 0.0)
        yield spread * (_STEPS - _mean(chance)) ** 2, ((SPREAD_STEP, PLENTY),)


def _open_direction(
    n: FloatArray, chance: FloatArray, a: FloatArray, wish: FloatArray
) -> FloatArray:
    """One standard error towards a gradient, as far as the contrast lets it; ``(3, parts, G)``."""
    rows = np.maximum(n, 1.0)

    def spread(gradient: FloatArray) -> FloatArray:
        return np.asarray(chance * (gradient - (chance * gradient).sum(axis=0)) / rows)

    fixed = a * _STEPS
    held = (fixed * spread(fixed)).sum(axis=(0, 1))
    towards = spread(wish)
    share = np.divide(
        (fixed * towards).sum(axis=(0, 1)), held, out=np.zeros_like(held), where=held > 0
    )
    along = towards - share * spread(fixed)
    # what a single part with two values leaves is rounding
    along = np.where(np.abs(along) > 1e-9 * np.abs(towards).max(axis=(0, 1)), along, 0.0)
    information = rows * np.nan_to_num(over(along**2, chance))
    size = np.sqrt(np.asarray(information.sum(axis=(0, 1))))
    return np.asarray(np.divide(along, size, out=np.zeros_like(along), where=size > 0))


# --- probabilities under a constraint ------------------------------------------------------------


def constrained_chances(counts: FloatArray, a: FloatArray, aim: FloatArray) -> FloatArray:
    """Most likely probabilities of −1, 0, 1 under Σ a·mean = aim, shape ``(3, parts, G)``.

    With a multiplier λ they solve c/p = κ + λ a v for every value v that was seen; where κ reaches
    the end of its range, a value that was not seen takes what the others leave. An aim out of reach
    is moved to the nearest one within.

    Ten zeros, whose mean should be 0.25, ask for ones that nobody saw:

    >>> zeros = np.array([0.0, 10.0, 0.0])[:, None, None]
    >>> constrained_chances(zeros, np.ones((1, 1)), np.array([0.25]))[:, 0, 0].round(9).tolist()
    [0.0, 0.75, 0.25]
    """
    n = counts.sum(axis=0)
    share = np.where(n > 0, counts / np.maximum(n, 1e-9), _STEPS == 0)
    most = np.abs(a).sum(axis=0)
    # at the ends of the reachable range every part sits in a corner and no multiplier is finite
    end = np.abs(aim) >= (1 - 1e-12) * most
    inner, unit = np.where(end, 0.0, aim), np.where(most > 0, most, 1.0)
    slope = a / np.maximum(n, 1e-9)

    def miss(multiplier: FloatArray, at: IntArray) -> tuple[FloatArray, FloatArray]:
        chance, fall = _tilted(share[..., at], multiplier * slope[:, at])
        gap = (a[:, at] * _mean(chance)).sum(axis=0) - inner[at]
        return gap / unit[at], (a[:, at] * slope[:, at] * fall).sum(axis=0) / unit[at]

    gap, fall = miss(np.zeros_like(aim), np.arange(aim.size))
    # twice a Newton step from the maximum: multipliers grow with the rows
    step = np.divide(2 * np.abs(gap), fall, out=np.zeros_like(gap), where=fall > 1e-300)
    low, high = _bracket(miss, np.clip(step, 1.0, 1e18))
    chance, _ = _tilted(share, _falling_root(miss, low, high, 1e-12) * slope)
    side = np.sign(a) * np.sign(aim)
    return np.where(end & (a != 0), (side == _STEPS).astype(np.float64), chance)


def _tilted(share: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities that maximise Σ share·log p − s·mean, and by how much the mean falls with s.

    Counted from the end that gains, p = share/(t + s·distance), and t makes them add up to one.
    """
    downward, s = s >= 0, np.abs(s)
    near, far = (np.where(downward, share[i], share[-1 - i]) for i in (0, 2))
    middle = share[1]
    # at t = 0 nothing is left to hold back an end that nobody was seen at
    edge = (near <= 0) & (middle + far / 2 <= s)
    t = np.where(edge, 1.0, _from_below(near, middle, far, s))
    for _ in range(60):
        p = [near / t, middle / (t + s), far / (t + 2 * s)]
        fall = p[0] / t + p[1] / (t + s) + p[2] / (t + 2 * s)
        # a sum of poles is convex: from below, Newton never oversteps
        step = np.where(edge, 0.0, (sum(p) - 1) / fall)
        t = t + np.maximum(step, 0.0)
        if bool((np.abs(step) <= 1e-13 * t).all()):
            break
    t = np.where(edge, 0.0, t)
    one, two = middle / (t + s), far / (t + 2 * s)
    zero = np.where(edge, np.maximum(1 - one - two, 0.0), near / np.where(edge, 1.0, t))
    w0 = np.where(edge, np.inf, zero / np.where(edge, 1.0, t))
    w1, w2 = one / (t + s), two / (t + 2 * s)
    fall = w1 + 4 * w2 - (w1 + 2 * w2) ** 2 / (w0 + w1 + w2)
    p = [np.where(downward, zero, two), one, np.where(downward, two, zero)]
    return np.stack(p) / (zero + one + two), fall


def _from_below(near: FloatArray, middle: FloatArray, far: FloatArray, s: FloatArray) -> FloatArray:
    """A lower bound of t: the root with the far pole as small as it can be."""
    rest = 1 - far / (1 + 2 * s)
    b = near + middle - rest * s
    root = np.sqrt(b * b + 4 * rest * near * s)
    # two forms of the same root, each used where it does not cancel
    rising = np.divide(b + root, 2 * rest, out=np.zeros_like(s), where=rest > 0)
    falling = np.divide(2 * near * s, root - b, out=np.zeros_like(s), where=root > b)
    bound = np.maximum(np.where(b > 0, rising, falling), near)
    return np.maximum(np.maximum(bound * (1 - 1e-12), 1 - 2 * s), 1e-150)


Falling = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""A function that falls, and the size of its slope, for some of the groups."""


def _bracket(miss: Falling, wide: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Arguments on either side of the root of each function."""
    low, high = -wide, wide
    todo = np.arange(wide.size)
    for _ in range(64):
        above, below = miss(high[todo], todo)[0] > 0, miss(low[todo], todo)[0] < 0
        up, down = todo[above], todo[below]
        todo = todo[above | below]
        if todo.size == 0:
            break
        low[up], high[up] = high[up], 8 * high[up]
        low[down], high[down] = 8 * low[down], low[down]
    return low, high


def _falling_root(miss: Falling, low: FloatArray, high: FloatArray, close: float) -> FloatArray:
    """Where each function is zero, or close to it."""
    at = np.where((low < 0) & (high > 0), 0.0, (low + high) / 2)
    low, high, before = low.copy(), high.copy(), np.full(at.shape, np.inf)
    todo = np.arange(at.size)
    for _ in range(200):
        here = at[todo]
        value, fall = miss(here, todo)
        size = np.abs(value)
        low[todo] = np.where(value > 0, here, low[todo])
        high[todo] = np.where(value > 0, high[todo], here)
        left = (size > close) & (high[todo] - low[todo] > 4e-16 * np.abs(here))
        todo = todo[left]
        if todo.size == 0:
            break
        here, value, fall, size = (x[left] for x in (here, value, fall, size))
        step = here + np.divide(value, fall, out=np.full_like(value, np.inf), where=fall > 0)
        # on a curve with a bend Newton may go round in circles: halve when it gains too little
        good = (step > low[todo]) & (step < high[todo]) & (size <= before[todo] / 2)
        before[todo] = np.where(good, size, np.inf)
        at[todo] = np.where(good, step, (low[todo] + high[todo]) / 2)
    return at


# --- tails of sums on a lattice ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Σ weight·K + noise, K the sum of draws from −1, 0, 1; no weight is below zero."""

    rows: FloatArray
    chance: FloatArray
    weight: FloatArray
    seen: FloatArray
    noise: FloatArray
    tilt: FloatArray
    """Exponent per unit of the sum under which its mean is about what was seen."""

    def some(self, where: IntArray | BoolArray) -> "_Sums":
        return _Sums(**{f.name: getattr(self, f.name)[..., where] for f in fields(self)})

    def after(self, part: int) -> "_Sums":
        """Without the first parts."""
        rows, weight = self.rows[part:], self.weight[part:]
        return replace(self, rows=rows, weight=weight, chance=self.chance[:, part:])

    def ordered(self, order: IntArray) -> "_Sums":
        """With the parts of each group in another order."""
        rows, weight = (np.take_along_axis(x, order, axis=0) for x in (self.rows, self.weight))
        chance = np.take_along_axis(self.chance, order[None], axis=1)
        return replace(self, rows=rows, chance=chance, weight=weight)

    @property
    def steps(self) -> FloatArray:
        """Variance of each K."""
        return self.rows * _variance(self.chance)

    @property
    def mean(self) -> FloatArray:
        return np.asarray((self.rows * self.weight * _mean(self.chance)).sum(axis=0))

    @property
    def variance(self) -> FloatArray:
        return np.asarray((self.weight**2 * self.steps).sum(axis=0) + self.noise)

    @property
    def skewness(self) -> FloatArray:
        m, r = _mean(self.chance), self.chance[0] + self.chance[2]
        third = (self.weight**3 * self.rows * (m - 3 * m * r + 2 * m**3)).sum(axis=0)
        return np.asarray(third / np.where(self.variance > 0, self.variance, 1.0) ** 1.5)

    @property
    def hair(self) -> FloatArray:
        """By how much sums of the same counts in another order may differ."""
        return np.asarray(1e-11 * ((self.rows * self.weight).sum(axis=0) + np.abs(self.seen)))

    @property
    def half_step(self) -> FloatArray:
        """Half the step of the lattice on which the sum lies, so that the outcome is counted."""
        # without rows in the middle only every other sum can happen
        other = np.abs(1 - 2 * (self.chance[0] + self.chance[2])) ** self.rows
        step = np.where(self.steps > 0, self.weight * (1 + other), np.nan)
        if step.shape[0] == 0:
            return np.zeros_like(self.noise)
        coarse, fine = np.fmax.reduce(step, axis=0), np.fmin.reduce(step, axis=0)
        # the part with the fine lattice fills the gaps of the coarse one if it spreads far enough
        spread = np.where(step <= fine, self.weight * np.sqrt(self.steps), 0.0).max(axis=0)
        filled = np.where(spread >= coarse / 2, fine, coarse)
        return np.where(self.noise > 0, 0.0, np.nan_to_num(filled) / 2)


def lattice_tails(
    rows: FloatArray, chance: FloatArray, a: FloatArray, seen: FloatArray, noise: FloatArray
) -> Tails:
    """P(T ≥ seen) and P(T ≤ seen) for T = Σ a·K/n + noise, K the sum of n draws from −1, 0, 1.

    Arrays ``(parts, G)``, chances of the values ``(3, parts, G)``, ``seen`` and variance ``noise``
    ``(G,)``. Two draws, each value as likely as the others:

    >>> n, third, one = np.full((1, 1), 2.0), np.full((3, 1, 1), 1 / 3), np.ones((1, 1))
    >>> up, down = lattice_tails(n, third, one, np.array([0.5]), np.zeros(1))
    >>> up.round(9).tolist(), down.round(9).tolist()
    ([0.333333333], [0.888888889])
    """
    n = np.maximum(rows, 1.0)
    turned = seen < (a * _mean(chance)).sum(axis=0)
    sign = np.where(turned, -1.0, 1.0)
    falling = a * sign < 0
    sums = _Sums(
        rows=n,
        chance=np.where(falling, chance[::-1], chance),
        weight=np.abs(a) / n,
        seen=sign * seen,
        noise=noise,
        tilt=np.zeros_like(seen),
    )
    least, beyond = (np.clip(x, 0.0, 1.0) for x in _upper(sums))
    return np.where(turned, 1 - beyond, least), np.where(turned, least, 1 - beyond)


def _upper(sums: _Sums) -> Tails:
    """P(T ≥ seen) and P(T > seen), where neither is far above a half."""
    gap = sums.mean - sums.seen
    least, beyond = (gap >= -sums.hair).astype(np.float64), (gap > sums.hair).astype(np.float64)
    moves = sums.weight**2 * sums.steps > 0
    small = moves & (sums.steps < LARGE)
    # noise that fills the gaps of every lattice leaves nothing to write out
    gaps = np.where(small, sums.weight**2, 0.0).max(axis=0)
    small = small & ~(sums.noise >= FILLED * gaps)
    number = small.sum(axis=0)
    large = np.flatnonzero((number == 0) & (sums.variance > 0))
    if large.size:
        least[large], beyond[large] = _large(sums.some(large))
    rest = np.flatnonzero(number > 0)
    if rest.size:
        least[rest], beyond[rest] = _with_small(sums.some(rest), small[:, rest])
    return least, beyond


def _large(sums: _Sums) -> Tails:
    half = sums.half_step
    return _saddlepoint(sums, sums.seen - half), _saddlepoint(sums, sums.seen + half)


def _saddlepoint(sums: _Sums, y: FloatArray) -> FloatArray:
    """P(T ≥ y) by Lugannani and Rice."""
    s = _tilt(sums, y, 1e-9)
    chance, grown = _grown(sums.chance, s * sums.weight)
    bend = (sums.weight**2 * sums.rows * _variance(chance)).sum(axis=0) + sums.noise
    k = (sums.rows * grown).sum(axis=0) + sums.noise * s * s / 2
    w = np.copysign(np.sqrt(2 * np.maximum(s * y - k, 0.0)), s)
    u = s * np.sqrt(bend)
    near = (np.abs(w) < 0.02) | (np.abs(u) < 1e-8)
    w, u = np.where(near, 1.0, w), np.where(near, 1.0, u)
    # Φ̄(w) (1 + (1/u − 1/w) φ/Φ̄), so that small chances keep their digits
    log_tail = log_ndtr(-w)
    density = np.exp(-w * w / 2 - log_tail) / np.sqrt(2 * np.pi)
    out = np.exp(log_tail) * np.maximum(1 + (1 / u - 1 / w) * density, 0.0)
    score = (y - sums.mean) / np.sqrt(sums.variance)
    return np.where(near, _skewed_tail(score, sums.skewness), out)


def _tilt(sums: _Sums, y: FloatArray, close: float) -> FloatArray:
    """The exponent under which the mean of the sum is y, to some of its standard deviations."""
    moves = sums.weight**2 * sums.steps > 0
    limit = 40 / np.where(moves, sums.weight, np.inf).min(axis=0)
    unit = np.sqrt(sums.variance)

    def miss(s: FloatArray, at: IntArray) -> tuple[FloatArray, FloatArray]:
        n, c, noise = sums.rows[:, at], sums.weight[:, at], sums.noise[at]
        chance, _ = _grown(sums.chance[..., at], s * c)
        mean = (n * c * _mean(chance)).sum(axis=0) + noise * s
        bend = (n * c**2 * _variance(chance)).sum(axis=0) + noise
        return (y[at] - mean) / unit[at], bend / unit[at]

    return _falling_root(miss, -limit, limit, close)


def _grown(chance: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities multiplied by exp(s·value), and the logarithm of what they add up to."""
    with np.errstate(divide="ignore"):
        logs = np.log(chance) + _STEPS.reshape(-1, *[1] * s.ndim) * s
    top = logs.max(axis=0)
    grown = np.exp(logs - top)
    total = grown.sum(axis=0)
    return grown / total, top + np.log(total)


def _with_small(sums: _Sums, small: BoolArray) -> Tails:
    """Write out the small parts; groups with the same task go together."""
    number = small.sum(axis=0)
    rest = (sums.weight**2 * sums.steps * ~small).sum(axis=0) + sums.noise
    alone = rest <= 1e-12 * sums.variance
    # smallest first, parts that are not small last
    order = np.argsort(np.where(small, sums.steps, np.inf), axis=0, kind="stable")
    sums = sums.ordered(order)
    sums = replace(sums, tilt=_tilt(sums, sums.seen, 0.01))
    first, length = _windows(sums)
    # all small parts, or all but the last, whose tail is known, if nothing else moves
    written = np.minimum(number - alone, 2)
    crowded = (written == 2) & ~alone & (length[:2].prod(axis=0) > MOST_PAIRS)
    written = np.where(crowded, 1, written)
    close = alone & (number == written + 1)
    part = np.arange(length.shape[0])[:, None]
    task = np.vstack([np.where(part < written + close, length, 1), written, close])
    kinds, kind = np.unique(task, axis=1, return_inverse=True)
    least, beyond = np.empty(alone.shape), np.empty(alone.shape)
    for i in range(kinds.shape[1]):
        sizes, w, last = kinds[:-2, i], int(kinds[-2, i]), bool(kinds[-1, i])
        chosen = np.flatnonzero(kind.ravel() == i)
        size = max(int(sizes[:w].prod()), int(sizes.max()))
        for here in np.array_split(chosen, -(-chosen.size * size // _BLOCK)):
            found = _written_out(sums.some(here), first[:, here], sizes, w, last)
            least[here], beyond[here] = found
    return least, beyond


def _windows(sums: _Sums) -> tuple[FloatArray, IntArray]:
    """First outcome of each part that is written out, and how many, a length that suits the FFT."""
    chance, _ = _grown(sums.chance, sums.tilt * sums.weight)
    centre, n = sums.rows * _mean(chance), sums.rows
    reach = np.minimum(REACH * np.sqrt(n * _variance(chance)) + REACH, WIDEST / 2)
    first, last = np.maximum(np.floor(centre - reach), -n), np.minimum(np.ceil(centre + reach), n)
    power = 2 ** np.ceil(np.log2(last - first + 1))
    fits = np.where(last - first + 1 <= 0.75 * power, 0.75 * power, power)
    return first, np.maximum(fits, 32).astype(np.int64)


def _outcomes(
    sums: _Sums, part: int, first: FloatArray, length: int
) -> tuple[FloatArray, FloatArray]:
    """Outcomes of one part and their chances, ``(G, length)``, by the discrete Fourier transform.

    The transform is exact to rounding of the largest chance. Tilted to where the tail begins, that
    is where it matters, so that small tails keep their digits.
    """
    s = (sums.tilt * sums.weight[part])[:, None]
    n = sums.rows[part][:, None]
    chance, grown = _grown(sums.chance[:, part, :, None], s)
    angle = 2 * np.pi * np.arange(length // 2 + 1) / length
    real = chance[1] + (chance[0] + chance[2]) * np.cos(angle)
    imaginary = (chance[2] - chance[0]) * np.sin(angle)
    size = n * np.log(np.maximum(real**2 + imaginary**2, 1e-300)) / 2
    # high frequencies are mostly nothing
    felt = np.flatnonzero((size > -40).any(axis=0))
    turn = n * np.arctan2(imaginary[:, felt], real[:, felt]) - angle[felt] * first[:, None]
    wave = np.zeros(size.shape, dtype=np.complex128)
    wave[:, felt] = np.exp(size[:, felt] - 1j * turn)
    found = np.fft.irfft(wave, length, axis=1)
    found = np.where(found > 1e-14 * found.max(axis=1, keepdims=True), found, 0.0)
    at = first[:, None] + np.arange(length)
    back = np.exp(np.minimum(n * grown - s * at, 700.0))
    return at, np.minimum(found * back, 1.0)


def _written_out(
    sums: _Sums, first: FloatArray, sizes: IntArray, written: int, close: bool
) -> Tails:
    """Sum over the outcomes of some parts; the others end in their own or in a normal tail."""
    groups = sums.seen.size
    value, chance = np.zeros((groups, 1)), np.ones((groups, 1))
    for part in range(written):
        at, p = _outcomes(sums, part, first[part], int(sizes[part]))
        step = (sums.weight[part][:, None] * at)[:, None, :]
        value = (value[:, :, None] + step).reshape(groups, -1)
        chance = (chance[:, :, None] * p[:, None, :]).reshape(groups, -1)
        # lengths that suit the transform reach beyond what can happen
        felt = np.flatnonzero((chance > 0).any(axis=0))
        value, chance = value[:, felt], chance[:, felt]
    left = sums.seen[:, None] - value
    if close:
        at, p = _outcomes(sums, written, first[written], int(sizes[written]))
        ends = _lattice_close(sums, written, left, at[:, 0], p)
    else:
        ends = _normal_close(sums.after(written), left, sums.hair)
    return (chance * ends[0]).sum(axis=1), (chance * ends[1]).sum(axis=1)


def _lattice_close(
    sums: _Sums, part: int, left: FloatArray, first: FloatArray, chance: FloatArray
) -> Tails:
    """P(weight·K ≥ left) and P(weight·K > left) of the last part that moves."""
    tail = np.cumsum(chance[:, ::-1], axis=1)[:, ::-1]
    tail = np.minimum(np.pad(tail, ((0, 0), (0, 1))), 1.0)
    left = left - sums.after(part + 1).mean[:, None]
    hair, weight = sums.hair[:, None], sums.weight[part][:, None]
    least, beyond = np.ceil((left - hair) / weight), np.floor((left + hair) / weight) + 1
    most = chance.shape[1]
    where = (np.clip(x - first[:, None], 0, most).astype(np.int64) for x in (least, beyond))
    up, over_it = (np.take_along_axis(tail, i, axis=1) for i in where)
    return up, over_it


def _normal_close(rest: _Sums, left: FloatArray, hair: FloatArray) -> Tails:
    """The same of all that is left, by a normal with its skewness."""
    mean, variance, skewness = rest.mean[:, None], rest.variance[:, None], rest.skewness[:, None]
    half, sd = rest.half_step[:, None], np.sqrt(np.where(variance > 0, variance, 1.0))
    up = over_it = _skewed_tail((left - half - mean) / sd, skewness)
    if bool((half > 0).any()):
        over_it = _skewed_tail((left + half - mean) / sd, skewness)
    still, line = variance <= 0, hair[:, None]
    up = np.where(still, (mean >= left - line).astype(np.float64), up)
    return up, np.where(still, (mean > left + line).astype(np.float64), over_it)


def _skewed_tail(x: FloatArray, skewness: FloatArray) -> FloatArray:
    """P(X ≥ x) of a standardised variable close to a normal: Cornish and Fisher, inverted."""
    g = np.clip(skewness, -0.4, 0.4)
    # held to where it still falls
    furthest = 2 / np.maximum(np.abs(g), 0.2)
    x = np.clip(x, -furthest, furthest)
    square = x * x
    return np.asarray(ndtr(g * (square - 1) / 6 - x - g * g * x * (4 * square - 7) / 36))


def _mean(chance: FloatArray) -> FloatArray:
    return np.asarray(chance[2] - chance[0])


def _variance(chance: FloatArray) -> FloatArray:
    """Variance of one draw; what cancels leaves no less than nothing."""
    return np.asarray(chance[1] * (chance[0] + chance[2]) + 4 * chance[0] * chance[2])
