"""Runs of a kernel on a GPU, held against the bound of the machine code that ran."""
