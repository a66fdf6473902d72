"""Estimates of a tilt from stored averages: against plain sums over the rows."""

from typing import Any

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts import (
    Aim,
    Gaussian,
    TiltBasis,
    TiltRows,
    TiltSpan,
    factor_kernel,
    mean_features,
)
from equipoise.methods.tilts.audit import closest_tilts


@pytest.fixture
def people() -> dict[str, FloatArray]:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(80, 1))
    y = 0.3 * x[:, 0] + rng.normal(size=80)
    return {"x": x, "y": y, "weight": rng.uniform(0.5, 1.5, 80)}


def span_of(people: dict[str, FloatArray], rank: int, **more: Any) -> tuple[TiltSpan, FloatArray]:
    """The span, with averages by plain loops, and the features of the rows."""
    x, y, w = people["x"], people["y"], people["weight"]
    w = w / w.mean()
    n, factor = len(x), factor_kernel(Gaussian((0.7,)), x, max_rank=rank)
    f = factor.features
    mean = sum(w[i] * f[i] for i in range(n)) / n
    centre = float(w @ y) / n
    cross = sum(w[i] * f[i] * (y[i] - centre) for i in range(n)) / n
    second = sum(np.outer(w[i] * f[i], w[i] * f[i]) for i in range(n)) / n
    centred = sum(np.outer(w[i] * (f[i] - mean), w[i] * (f[i] - mean)) for i in range(n)) / n
    once = sum(w[i] * np.outer(f[i], f[i]) for i in range(n)) / n
    basis = TiltBasis(
        pivots=x[factor.pivots], corner=factor.corner, mean=np.asarray(mean),
        cross=np.asarray(cross), second=np.asarray(second), centred=np.asarray(centred),
        once=np.asarray(once),
    )  # fmt: skip
    rows = TiltRows(
        kernel=Gaussian((0.7,)), points=x, features=f, left=factor.left, weights=w,
        counts=np.ones(n), values=y - centre, influence=w * (y - centre), paired=w, apart=0.0,
        clusters=None,
    )  # fmt: skip
    span = TiltSpan(
        basis=basis, rows=rows, n=n, mean=centre, target=centre, floor=0.05, averages=None
    )
    return span, f


def test_a_tilt_of_the_span_is_a_weighted_mean(people: dict[str, FloatArray]) -> None:
    span, features = span_of(people, rank=5)
    coordinates = features[3] + features[9]
    tilt = features @ coordinates
    found = span.estimate(coordinates)
    assert found is not None
    w, y = people["weight"] / people["weight"].mean(), people["y"]
    own = float(np.average(y, weights=w * tilt))
    assert found.disparity == pytest.approx(own - float(np.average(y, weights=w)), abs=1e-12)
    assert found.effective == pytest.approx((w * tilt).sum() ** 2 / ((w * tilt) ** 2).sum())
    assert found.beyond == 0
    # twice the tilt is the same tilt
    twice = span.estimate(2 * coordinates)
    assert twice is not None
    assert twice.disparity == pytest.approx(found.disparity, abs=1e-12)
    assert twice.reach == pytest.approx(found.reach)


def test_what_lies_outside_the_span_widens(people: dict[str, FloatArray]) -> None:
    span, features = span_of(people, rank=3)
    kernel = Gaussian((0.7,))
    tilt = kernel.block(people["x"], people["x"][:1])[:, 0]
    found = span.estimate(features[0], values=tilt, norm=1.0)
    assert found is not None
    w, y = people["weight"] / people["weight"].mean(), people["y"]
    own = float(np.average(y, weights=w * tilt))
    assert found.disparity == pytest.approx(own - float(np.average(y, weights=w)), abs=1e-12)
    assert found.beyond > 0


def test_a_tilt_that_is_nowhere_has_no_estimate(people: dict[str, FloatArray]) -> None:
    span, features = span_of(people, rank=3)
    assert span.estimate(np.zeros(features.shape[1])) is None


def test_distance_and_mismatch(people: dict[str, FloatArray]) -> None:
    span, features = span_of(people, rank=6)
    inside = (people["x"][:, 0] > 0).astype(float)
    share = people["weight"] / people["weight"].sum()
    wanted = (share * inside) @ features / (share @ inside)
    aim = Aim(wanted=wanted, on_rows=inside)
    found = closest_tilts(features, span.basis.once, wanted)[-1]
    naive = sum(
        abs(s * max(t, 0) / (share @ np.maximum(found.values, 0)) - s * i / (share @ inside)) / 2
        for s, t, i in zip(share, found.values, inside, strict=True)
    )
    assert span.distance(aim, found) == pytest.approx(naive)
    assert span.mismatch(aim, found) is None
    elsewhere, alike = mean_features(
        Gaussian((0.7,)), span.basis, people["x"][inside > 0], share[inside > 0]
    )
    assert elsewhere == pytest.approx(wanted)
    assert 0.9 < alike <= 1
    left = span.mismatch(Aim(wanted=elsewhere, on_rows=None), found)
    assert left is not None
    assert left < 0.5
    best = span.nearest(aim, None, features[:0], critical=0.0, spread=1.0)
    assert best is not None
    # with bounds of no width only the distance counts
    tried = closest_tilts(features, span.basis.once, wanted)
    least = min(span.distance(aim, each) or 0.0 for each in tried if each.lowest > -1e-3)
    assert span.distance(aim, best) == pytest.approx(least)
