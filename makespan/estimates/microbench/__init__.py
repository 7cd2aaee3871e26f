"""Measuring a GPU: programs that take samples, tables of samples, and the parameters that lines through them give."""
