"""Behind the audits of how far groups are apart: `summarize`, `compare`."""
