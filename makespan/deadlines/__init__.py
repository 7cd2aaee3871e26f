"""From cycles to deadlines: whether tasks with GPU kernels meet theirs, by analyses with proofs."""
