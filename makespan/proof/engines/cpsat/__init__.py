"""A constraint programme of the worst case, for CP-SAT."""

NAME = "cpsat"
