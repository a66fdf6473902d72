"""Pure mathematics on arrays: numbers in, numbers out, nothing named and nothing read."""
