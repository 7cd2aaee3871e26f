"""The published integer programme and its tightened form, for CBC."""

NAME = "ilp"
