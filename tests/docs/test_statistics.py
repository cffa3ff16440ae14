"""docs/statistics.md has every heading, column and figure of the report's page, and nothing that the page has not."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from grading.page import render_page
from tests.docs.blocks import ROOT
from tests.grading.page.board import board

TEXT = (ROOT / "docs" / "statistics.md").read_text("utf-8")
_COLUMNS = {
    "agent": re.compile(r"(tree-search · group-[01]-of-march|agent-with-a-rather-long-name · feedback)(, seed)?"),
    "split": re.compile(r"(Low|Medium|High|All)†?"),
    "seed": re.compile(r"\d+"),
    "k": re.compile(r"k = \d+"),
    "moment": re.compile(r"\d+ (h|min)( \d+ (min|s))?"),
}


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    part = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


class Headings(HTMLParser):
    """The headings of a page, each with the columns of the tables that follow it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.columns: dict[str, set[str]] = {}
        self._inside, self._text, self._skipped, self._cards = "", "", 0, False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._cards = tag == "article" or (self._cards and tag != "section")
        if tag == "span" and self._inside in ("h2", "h3"):
            self._skipped += 1
        if tag in ("h2", "h3") or (tag == "th" and dict(attrs).get("scope") in ("col", "colgroup")):
            self._inside, self._text = tag, ""

    def handle_data(self, data: str) -> None:
        if self._inside and not self._skipped:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag == "span" and self._skipped > 0
        if tag != self._inside:
            return
        text, self._inside = " ".join(self._text.split()), ""
        if tag == "th":
            self.columns[list(self.columns)[-1]].add(text)
        elif not self._cards:  # the heading of a card is the name of a competition
            self.columns[text] = set()


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """The headings and columns of a page on which nothing is left out."""
    results = board(3, 30, 2, requests=2, feedback=[2])
    # Two of the agents are one, with two time limits, for the figure of resources, and with obfuscated descriptions.
    tables: dict[str, Any] = {
        name: getattr(results, name).replace({"agent": {"plain-loop": "tree-search"}})
        for name in ("grades", "runs", "snapshots", "own", "validations", "noise")
    }
    second, limits = tables["runs"]["run_group"] == "group-1-of-march", tables["runs"]["time_limit_seconds"]
    tables["runs"] = tables["runs"].assign(time_limit_seconds=limits.mask(second, 360_000.0), obfuscated=second)
    columns = Headings(render_page(replace(results, **tables, incomplete="fail", root="../.."))).columns
    return {part: {kind(name) for name in names} for part, names in columns.items()}


def kind(column: str) -> str:
    """What a column stands for, if there is one of each."""
    return next((word for word, pattern in _COLUMNS.items() if pattern.fullmatch(column)), column)


def test_every_part_of_the_page_is_documented(found: dict[str, set[str]]) -> None:
    assert [row[0] for row in table("The page")] == list(found)


def test_every_column_of_the_page_is_documented(found: dict[str, set[str]]) -> None:
    documented = {part: {name for name in columns.split(", ") if name} for part, columns, _ in table("The page")}
    assert {part: columns - {""} for part, columns in found.items()} == documented


def test_every_figure_has_a_formula_a_source_and_a_treatment_of_what_is_missing() -> None:
    rows = table("Figures")
    assert all(len(row) == 4 and all(row) for row in rows)
    figures = {name for row in rows for name in row[0].split(", ")}
    used = {name for _, _, names in table("The page") for name in names.split(", ")}
    elsewhere = {
        "dense reward",
        "p-value",
        "rate of a seed",
        "variance over runs",
        "variance within competitions",
        "variance between competitions",
        "difference that a plan detects",
        "power",
        "performance profile",
    }
    assert used - figures == set()
    assert figures - used - elsewhere == set()
