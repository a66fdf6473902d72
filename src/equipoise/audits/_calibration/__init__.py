"""Behind `calibration`: rows, residual models, the tests by name, and the subgroup in words."""
