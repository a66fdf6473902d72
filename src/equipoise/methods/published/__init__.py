"""Methods as their papers print them: for validation and comparison, never the default."""
