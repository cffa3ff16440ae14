"""Present results as a self-contained HTML page, as a Markdown summary, and as rows for a terminal."""

from grading.page.render import render_page
from grading.page.results import Results
from grading.page.text import MedalTable, TableCell, medal_table, render_markdown

__all__ = ["MedalTable", "Results", "TableCell", "medal_table", "render_markdown", "render_page"]
