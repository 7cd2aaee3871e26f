"""Schedules that are made by rule: first witnesses."""
