"""The published integer programme and its tightened form, for CBC and HiGHS."""

NAME = "ilp"
