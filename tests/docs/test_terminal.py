"""The pictures of `mlebench run` show what a terminal shows; `python -m tests.docs.terminal` makes them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from rich.console import Console

from common.progress import Event
from flows.watching.board import Board
from tests.docs.terminal import COMMAND, DOCS, Screen, pictures, svg


def test_the_picture_is_taken_when_most_agents_run() -> None:
    pieces = ["a running\r\n", "b running\r\n", "\x1b[1A\x1b[2K", "b \x1b[32mgraded\x1b[0m\r\n", "bye\r\n"]
    live, end = pictures(pieces)
    assert live == ["a running", "b running", ""]
    assert end == ["a running", "b \x1b[32mgraded\x1b[0m", "bye", ""]
    drawn = ElementTree.fromstring(svg(end, "title"))
    text = " ".join("".join(each.itertext()).replace("\xa0", " ") for each in drawn.iter() if each.tag.endswith("text"))
    assert "graded" in text
    assert f"mlebench {' '.join(COMMAND)}" in text


def test_a_line_is_written_again_from_its_beginning() -> None:
    screen = Screen()
    screen.feed("50 %\r100 %\r\n")
    assert screen.lines == ["100 %", ""]


@pytest.mark.parametrize("name", ["run-live", "run-end"])
def test_the_pictures_need_nothing_from_elsewhere(name: str) -> None:
    text = (DOCS / f"{name}.svg").read_text("utf-8")
    ElementTree.fromstring(text)
    assert "url(http" not in text
    assert "/tmp" not in text


def test_the_board_has_no_empty_header() -> None:
    board = Board("mine")
    board.take(Event("digits", "done"))
    board.take(Event("digits seed 0", "running", "hello"))
    lines = Console(width=60, color_system=None).render_lines(board, pad=False)
    shown = ["".join(segment.text for segment in line).rstrip() for line in lines]
    assert shown[0] == "mine: 1 of 2 done"
    assert shown[1].startswith("digits seed 0")
