"""The demonstration behind ``make demo``: the bundled COMPAS counts, described."""

import equipoise as eq


def main() -> None:
    """Print what `describe` finds in the bundled COMPAS counts."""
    trail = eq.datasets.compas()
    groups = eq.intersections("race", "sex", "age")
    print(eq.describe(trail, eq.gap(eq.false_positive_rate, across=groups)))


if __name__ == "__main__":
    main()
