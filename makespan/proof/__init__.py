"""Proven bounds on the worst case: a module for each theorem, and the engines that search."""
