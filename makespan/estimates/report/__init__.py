"""Estimates, and how good they are, in words and as documents; each says that it is no bound."""
