"""A result for a whole GPU in words and as data."""
