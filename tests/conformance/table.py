"""One table with every awkward thing in it: nulls, NaN, booleans, decimals, dates, categories."""

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

ROWS = 600


def awkward_table() -> pa.Table:
    rng = np.random.default_rng(20240501)

    def some(choices: list[Any]) -> list[Any]:
        return [choices[i] for i in rng.integers(0, len(choices), ROWS)]

    days = [datetime.date(2020, month, 1) for month in (1, 2, 3)]
    paris = pa.timestamp("us", "Europe/Paris")
    moments = [datetime.datetime(2020, 1, d, 5, 30, tzinfo=datetime.UTC) for d in (1, 2)]
    clocks = [datetime.datetime(2021, 5, 4), datetime.datetime(2021, 5, 4, 12, 15)]
    hours = [decimal.Decimal("37.50"), decimal.Decimal("40.00"), None]
    score = rng.uniform(0, 1, ROWS).round(6)
    low, high = score - rng.uniform(0, 1, ROWS), score + rng.uniform(0, 1, ROWS)
    return pa.table(
        {
            "sex": pa.array(some(["Female", "Male", None]), pa.string()),
            "race": pa.array(
                some(["Asian", "Black", "White", None]), pa.string()
            ).dictionary_encode(),
            "age": pa.array(some([*range(18, 40), None]), pa.int64()),
            "income": pa.array(some([0.5, 1.25, 2.0, 3.75, float("nan"), None]), pa.float64()),
            "hours": pa.array(some(hours), pa.decimal128(6, 2)),
            "member": pa.array(some([True, False, None]), pa.bool_()),
            "born": pa.array(some([*days, None]), pa.date32()),
            "seen": pa.array(some([*moments, None]), paris),
            "noted": pa.array(some([*clocks, None]), pa.timestamp("us")),
            "outcome": pa.array(some([0, 1, 1, None]), pa.int64()),
            "decision": pa.array(some([True, False]), pa.bool_()),
            "verdict": pa.array(some(["yes", "no", None]), pa.string()),
            "score": pa.array([None if i % 17 == 0 else v for i, v in enumerate(score.tolist())]),
            "lower": pa.array(low.round(6).tolist()),
            "higher": pa.array(high.round(6).tolist()),
            "amount": pa.array([float("nan") if i % 23 == 0 else i / 7 - 40 for i in range(ROWS)]),
            "weight": pa.array(some([0.5, 1.0, 2.25, None]), pa.float64()),
            "times": pa.array(some([0, 1, 2, 5, None]), pa.int64()),
            "days late": pa.array(some([0, 2, 5]), pa.int64()),
            "tiny": pa.array([10.0 ** (-30 * (i % 3)) for i in range(ROWS)], pa.float64()),
        }
    )
