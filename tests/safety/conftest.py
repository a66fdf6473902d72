"""How many cases are tried: a few in `make test`, as many as promised in `make fuzz`."""

import os

#: `make fuzz` sets it; the same code then runs with the large numbers.
MANY = bool(os.environ.get("EQUIPOISE_FUZZ_EXAMPLES"))


def number(few: int, many: int) -> int:
    return many if MANY else few
