"""Terms are explained once, and links lead to them."""

import re

from grading.page import render_page
from grading.page.terms import Terms
from tests.grading.page.board import board
from tests.grading.page.pages import Document, page, words


def test_every_link_within_the_page_has_its_target() -> None:
    document = Document(render_page(board(3, competitions=12, requests=2)))
    ids = document.attributes("id")
    assert len(ids) == len(set(ids))
    targets = {address[1:] for address in document.attributes("href") if address.startswith("#")}
    assert {f"t-{key}" for key in ("sem", "padded", "letters", "p-value", "iqm", "pass-at-k", "units")} <= targets
    assert targets <= set(ids)


def test_what_a_page_does_not_show_is_not_explained() -> None:
    section = page().split('<section id="method">')[1]
    assert "Human percentile" in words(section)
    assert "Pareto front" not in words(section)
    assert "t-letters" not in section


def test_a_term_has_words_and_a_meaning() -> None:
    terms = Terms()
    assert str(terms("sem", "SEM <1>")) == '<a class="term" href="#t-sem">SEM &lt;1&gt;</a>'
    listed = {key: (name, meaning) for key, name, meaning in terms.listed()}
    assert "Standard error of the mean" in listed["sem"][1]
    assert all(name and re.fullmatch(r"[A-Zp].*\.", meaning) for name, meaning in listed.values())


def test_low_is_said_to_be_lite_once() -> None:
    text = words(render_page(board(2, competitions=30, requests=2)).split('<section id="method">')[0])
    assert text.count("Lite") == 1
