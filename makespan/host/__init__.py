"""What every program needs of its computer: files, limits, errors, clocks and compiled code."""
