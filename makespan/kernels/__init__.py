"""Kernels and launches: CUDA, PTX and machine code become the programs of the model."""
