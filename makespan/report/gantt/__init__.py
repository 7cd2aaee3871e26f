"""Gantt charts: one model of rows, bars and marks, and a renderer for files and one for pages."""
