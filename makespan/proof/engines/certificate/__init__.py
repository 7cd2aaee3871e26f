"""Potential certificates, refined while time lasts, and the beams that they guide."""
