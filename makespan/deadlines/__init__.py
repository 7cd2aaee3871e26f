"""Deadlines of tasks with GPU kernels: analyses with proofs that say whether all of them hold."""
