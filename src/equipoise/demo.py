"""The demonstration behind ``make demo``: the bundled COMPAS counts, audited."""

import os
import sys

import equipoise as eq


def main() -> None:
    """Describe, flag and certify the false positive rate in the bundled COMPAS counts."""
    trail = eq.datasets.compas()
    gap = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))
    _tell("What is in the data", eq.describe(trail, gap))
    _tell("Which groups are harmed", eq.flag(trail, gap, above=0.05, fdr=0.10))
    bounds = eq.certify(trail, gap, level=0.90, tolerance=0.10, rng=7)
    _tell("What holds for every group at once", bounds)
    print(f"Asked later: {bounds.ask(race='African-American', sex='Female')}")


def _tell(title: str, finding: eq.Finding) -> None:
    print(title)
    for sentence in finding.sentences():
        print(f"  {sentence}")
    print()


if __name__ == "__main__":
    main()
    # At a normal exit DuckDB's bindings complain about objects of their own on standard error.
    sys.stdout.flush()
    os._exit(0)
