"""Exhaustive search: plain, over packed states, or by a table of all count states."""
