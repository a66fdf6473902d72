"""What both type checkers must refuse: the lines that end in `# error`, and no other line.

Every call is refused at run time as well, with a message; here it is found before that.
"""

import equipoise as eq


def groups() -> None:
    eq.gap(eq.accuracy, across=3.7)  # error
    eq.gap(eq.accuracy, across=True)  # error
    eq.gap(eq.accuracy, across=[1, 2])  # error
    eq.gap(eq.accuracy, across={"race", "sex"})  # error
    eq.gap(eq.accuracy, across=eq.overall())  # error
    eq.gap(eq.accuracy, across=eq.accuracy)  # error
    eq.gap(eq.accuracy, arcoss="sex")  # error
    eq.ratio(eq.accuracy)  # error
    eq.ratio(eq.accuracy, across=None)  # error
    eq.equalized_odds(across=3.7)  # error
    eq.multicalibration(across=object())  # error
    eq.intersections(3)  # error
    eq.intersections("age", depth="two")  # error
    eq.intervals("age", edges=30)  # error
    eq.binned("age", cuts="30")  # error
    eq.bins(4)  # error
    eq.masks(young=25)  # error
    eq.tilts(older=2.0)  # error


def targets() -> None:
    eq.gap(eq.accuracy, target=object())  # error
    eq.gap(eq.accuracy, target="everybody")  # error
    eq.gap(eq.accuracy, target=[0.5])  # error
    eq.gap(eq.accuracy, target=eq.intersections("sex"))  # error
    eq.ratio(eq.accuracy, across="sex", target=object())  # error
    eq.constant("0.5")  # error
    eq.custom(0.3, 0.1)  # error


def metrics() -> None:
    eq.gap(0.5, across="sex")  # error
    eq.gap(None, across="sex")  # error
    eq.gap(eq.overall(), across="sex")  # error
    eq.metric("late", 3)  # error
    eq.metric("late", "days > 3", harm="hihg")  # error
    eq.accuracy.clip("0", "1")  # error


def trails() -> None:
    eq.read(3.7)  # error
    eq.read("rows.csv", label=1)  # error
    eq.read("rows.csv", labl="y")  # error
    eq.from_arrays([0, 1], [1, 1])  # error
    eq.from_arrays(object(), sensitive_features=["f", "m"])  # error


# Misspelt words, wrong types, swapped arguments; a new verb brings lines of its own.
def verbs() -> None:
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="sex")
    eq.describe(trail, 3.7)  # error
    eq.describe(claim, trail)  # error
    eq.describe(3.7, claim)  # error
    eq.flag(trail, claim, method=12)  # error
    eq.flag(trail, claim, method="boostrap")  # error
    eq.certify(trail, claim, method="boostrap")  # error
    eq.certify(trail, claim, tolerence=0.1)  # error
    eq.certify(trail, claim, tolerance="0.1")  # error
    eq.certify(trail, claim, side="above")  # error
    eq.certify(trail, claim, rng="seven")  # error
    eq.joint_test(trail, claim, method="boostrap")  # error
    eq.shift(trail, claim, over=5)  # error
    eq.summarize(trail, "accuracy", across=3.7)  # error
    eq.discover(trail, "accuracy", features=3)  # error
    eq.compare(trail, "accuracy", across=3.7)  # error
    eq.discover(trail, 0.5, features=["age"])  # error
    eq.discover(trail, "accuracy", features=["age"], target=object())  # error
    eq.calibration(trail, method="hosmer")  # error
    eq.calibration(trail, features=5)  # error
    eq.calibration(trail, models="forest")  # error
    eq.calibration(trail, models=["forest"])  # error
    eq.calibration(trail, classes=["low", "high"])  # error
    eq.individual(trail, vary=3.5)  # error
    eq.individual(trail, vary="sex", features=5)  # error
    eq.individual(trail, vary="sex", model=3.5)  # error
    eq.individual(trail, vary="sex", cost="cheap")  # error
    eq.select_fair(trail, ["priors"], vary="sex", tolerance=0.1)  # error
    eq.select_fair(trail, {"priors": 3}, vary="sex", tolerance=0.1)  # error
    eq.power(trail, 3.7)  # error
    eq.power(trail, claim, power="high")  # error
    eq.power(trail, claim, control="bonferoni")  # error
    eq.monitor(trail, claim, reading="always")  # error
    eq.monitor(trail, claim, period=7)  # error
    eq.monitor(trail, "accuracy", time="day")  # error
    eq.repair(trail, claim)  # error
    eq.repair(trail, claim, tolerance=0.1, rule="treshold")  # error
    eq.repair(trail, claim, tolerance=0.1, loss=3.7)  # error
    eq.alternatives(trail, claim, models=["new"])  # error
    eq.alternatives(trail, claim, models={"new": "p"}, within="little")  # error
    eq.guess(3.7)  # error
    eq.guess({"n": [10]}, rate=0.3)  # error
    eq.pack("four-fifths", 3.7)  # error
    eq.pack(4, trail)  # error
    eq.tally(trail, "accuracy")  # error
    eq.merge(trail, trail)  # error
    eq.report(claim)  # error


def findings() -> None:
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="sex")
    bounds, described = eq.certify(trail, claim, rng=7), eq.describe(trail, claim)
    bounds.plot(bounds[0].flagged)  # error
    bounds["sex"]  # error
    bounds.ask(7)  # error
    [row.p_adjusted for row in bounds]  # error
    described.ask(described.rows[0].verdict)  # error


def kernels() -> None:
    eq.gaussian("age", bandwidth="wide")  # error
    eq.laplace("age", bandwith=5)  # error
    eq.kernel(3, "age")  # error
    eq.monotone(3)  # error
