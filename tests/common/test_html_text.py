"""Pages of text in HTML that is not well-formed."""

from __future__ import annotations

import pytest

from common.html_text import markdown_of


@pytest.mark.parametrize("part", ["a<b ", "<!-- ", "<p ", "<![CDATA[ ", "<a / ", "</a <", "<script></scr"])
@pytest.mark.timeout(20)
def test_the_time_grows_with_the_length(part: str) -> None:
    markdown_of("<p>x</p>" + part * 40_000)  # took minutes when it grew with the square


def test_what_begins_no_tag_is_text() -> None:
    page = "<p>if x < y and <!-- no --><b>z</b> &lt; 3</p><!DOCTYPE html><pre>a<b\n c</pre>"
    assert markdown_of(page) == "if x < y and **z** < 3\n\n```\na<b\n c\n```"
