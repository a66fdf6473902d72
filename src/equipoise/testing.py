"""For test suites: assert what an audit shows.

A model's tests can hold its fairness to the same standard as its accuracy:

>>> import equipoise as eq
>>> from equipoise.testing import assert_shown
>>> claim = eq.gap(eq.accuracy, across="sex")
>>> assert_shown(eq.certify(eq.datasets.compas(), claim, tolerance=0.10, rng=7))
"""

from typing import Literal

from equipoise._validate import known_name
from equipoise.errors import OptionError
from equipoise.findings import Evidence, Finding, Verdict

__all__ = ["assert_shown"]


def assert_shown(
    *results: Finding | Evidence, undetermined: Literal["fail", "pass"] = "fail"
) -> None:
    """Fail unless the results show that the limits are kept.

    Absence of evidence fails too, unless ``undetermined="pass"``: then only a violation that is
    shown fails. The message is the finding's own words.
    """
    known_name("undetermined", undetermined, ("fail", "pass"))
    if not results:
        raise OptionError("assert_shown needs at least one finding.")
    for result in results:
        made = result if isinstance(result, Evidence) else Evidence.of(result)
        allowed = {Verdict.KEPT} | ({Verdict.UNDETERMINED} if undetermined == "pass" else set())
        if made.verdict not in allowed:
            raise AssertionError(_message(made))


def _message(made: Evidence) -> str:
    said = [made.sentences()[0]]
    for entry in made.entries:
        conclusion = entry.finding.conclusion
        if conclusion is not Verdict.KEPT:
            said += [f"{entry.name}: {conclusion or 'no limit'}"]
            said += [f"  {sentence}" for sentence in entry.finding.sentences()[:4]]
    return "\n".join(said)
