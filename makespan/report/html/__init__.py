"""A result as one HTML file that explains itself, works without a network, and runs no script but its own."""

from makespan.report.html.data import Command, Context, Input, page_data
from makespan.report.html.gpu import gpu_page
from makespan.report.html.page import render

__all__ = ["Command", "Context", "Input", "gpu_page", "page_data", "render"]
