"""Measurements: JSON lines on stdout, known answers asserted. Not part of the tests."""
