"""A result as one HTML file that explains itself, works without a network, and runs no script but its own."""

from makespan.report.html.data import PageCommand, PageContext, PageInput, gpu_page, page_data
from makespan.report.html.page import render_page

__all__ = ["PageCommand", "PageContext", "PageInput", "gpu_page", "page_data", "render_page"]
