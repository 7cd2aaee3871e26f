"""Estimates, and how good they are, in words, as documents and as pictures; each says that it is no bound."""
