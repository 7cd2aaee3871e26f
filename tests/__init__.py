"""Tests of makespan; `oracle` and `strategies` are shared by them."""
