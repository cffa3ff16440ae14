"""Presenting results: one self-contained HTML page, a Markdown summary, and rows for a terminal."""

from grading.page.render import render_page
from grading.page.results import Results
from grading.page.text import MedalTable, TableCell, medal_table, render_markdown

__all__ = ["MedalTable", "Results", "TableCell", "medal_table", "render_markdown", "render_page"]
