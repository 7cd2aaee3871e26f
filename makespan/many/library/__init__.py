"""A library of instances as a benchmark: families in files, what is known of each, and what solvers claim of them."""
