"""Behind the audits of comparable people: `individual`, `select_fair`."""
