"""The small table on which the verbs are checked row by row."""

import numpy as np
import polars as pl


def make_table(n: int = 90, seed: int = 4) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    label = (rng.random(n) < np.where(race == "a", 0.4, 0.6)).astype(int)
    score = np.round(np.clip(0.2 + 0.4 * label + 0.25 * rng.standard_normal(n), 0.01, 0.99), 3)
    return pl.DataFrame(
        {
            "race": race,
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(20, 60, n),
            "years": rng.integers(0, 9, n),
            "label": label,
            "prediction": (score > 0.5).astype(int),
            "score": score,
            "weight": np.round(0.5 + rng.random(n), 2),
            "site": rng.integers(0, 25, n),
        }
    )
