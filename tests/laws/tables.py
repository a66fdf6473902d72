"""Small random tables, with everything that can be missing missing now and then."""

import os
from typing import Any

import polars as pl
from hypothesis import settings
from hypothesis import strategies as st

import equipoise as eq
from tests.laws.oracle import Row

# The same examples on every run: a law that fails today fails tomorrow.
settings.register_profile("laws", derandomize=True, deadline=None, max_examples=25, database=None)
law = settings(settings.get_profile("laws"), max_examples=int(os.environ.get("LAWS", "25")))

SCHEMA = {
    "g": pl.String,
    "h": pl.String,
    "k": pl.Int64,
    "x": pl.Float64,
    "z": pl.Float64,
    "y": pl.Int64,
    "p": pl.Int64,
    "s": pl.Float64,
    "times": pl.Int64,
    "w": pl.Float64,
}

_row = st.fixed_dictionaries(
    {
        "g": st.sampled_from(["a", "b", "c", None]),
        "h": st.sampled_from(["u", "v"]),
        "k": st.sampled_from([1, 2, 3, None]),
        "x": st.sampled_from([0.5, 1.0, 2.5, 4.0, 9.0, float("nan"), None]),
        "z": st.sampled_from([-1.0, 0.0, 3.0, None]),
        "y": st.sampled_from([0, 1, 1, None]),
        "p": st.sampled_from([0, 1]),
        "s": st.sampled_from([0.0, 0.125, 0.5, 0.8, 1.0, float("nan"), None]),
        "times": st.sampled_from([0, 1, 2, 3]),
        "w": st.sampled_from([1.0, 2.0, 3.0]),
    }
)
# One complete row of each label, so that every metric counts on somebody.
_anchor: list[Row] = [
    {"g": "a", "h": "u", "k": 1, "x": x, "z": z, "y": y, "p": 0, "s": 0.25, "times": 1, "w": 1.0}
    for x, z, y in ((1.0, 0.0, 0), (2.5, 3.0, 1))
]
rows = st.lists(_row, min_size=1, max_size=30).map(lambda some: _anchor + some)


def trail_of(table: list[Row], **roles: Any) -> eq.Trail:
    """The rows as a trail with the usual roles."""
    frame = pl.DataFrame(table, schema=SCHEMA)
    return eq.read(frame, label="y", prediction="p", score="s", **roles)
