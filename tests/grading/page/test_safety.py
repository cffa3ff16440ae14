"""The page asks nothing of the network, and what agents write stays text in it."""

import base64
import hashlib
import re
from importlib import resources

import pandas as pd
import pytest

from common.cleaning import clean
from grading.page import medal_table
from tests.grading.page.pages import (
    EVIL,
    LOWER,
    SNAPSHOTS,
    USAGE,
    Document,
    calls,
    graded,
    markdown,
    page,
    ran,
    snapshots,
)

SCRIPT = resources.files("grading.page").joinpath("page.js").read_text("utf-8")


def test_the_page_asks_the_network_for_nothing() -> None:
    document = Document(page())
    for target in document.attributes("src", "href", "xlink:href", "action", "srcset", "poster"):
        assert target.startswith(("#", "data:"))
    assert not re.search(r"url\(|@import|https?://", page().replace("http://www.w3.org/2000/svg", ""))
    assert not [tag for tag, _ in document.elements if tag in ("iframe", "object", "embed", "img", "form")]


def test_the_browser_is_told_to_run_our_script_only() -> None:
    html = page()
    policy = next(v for v in Document(html).attributes("content") if "script-src" in v)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert f"<script>{SCRIPT}</script>" in html


@pytest.mark.parametrize("evil", EVIL)
def test_whatever_agents_write_stays_text(evil: str) -> None:
    grades = pd.DataFrame(
        [
            graded(evil, 1, 0.95, agent=evil, group=evil, complexity=evil, category=evil),
            graded(
                evil, 2, None, outcome="invalid", message=evil, agent=evil, group=evil, complexity=evil, category=evil
            ),
            graded(
                evil,
                3,
                None,
                outcome="failed",
                message=evil * 100,
                agent=evil,
                group=evil,
                complexity=evil,
                category=evil,
            ),
            graded("plain", 1, 0.1, agent="plain", group=evil),
        ]
    )
    times = snapshots((evil, 1, 0.2, 0.9), (evil, 1, 2, 0.95), group=evil, agent=evil)
    usage = calls((evil, 1, 0.5), group=evil, agent=evil, model=evil)
    runs = pd.DataFrame(
        [
            ran(evil, s, agent=evil, group=evil, status=evil, backend=evil, code_fingerprint=evil, message=evil)
            for s in (1, 2)
        ]
    )
    options = {
        "thresholds": {evil: LOWER},
        "titles": {evil: "Title " + evil},
        "conditions": {evil: {evil: evil}},
        "title": evil,
        "split_sizes": {evil: 3},
        "snapshots": times,
        "usage": usage,
    }
    html = page(grades, runs, **options)
    document = Document(html)
    assert [tag for tag, _ in document.elements].count("script") == 1
    harmless = Document(page(snapshots=SNAPSHOTS, usage=USAGE))
    assert {tag for tag, _ in document.elements} <= {tag for tag, _ in harmless.elements} | {
        "details",
        "summary",
        "pre",
        "tspan",
    }
    assert not [name for _, attrs in document.elements for name in attrs if name.startswith("on")]
    assert all(target.startswith(("#", "data:")) for target in document.attributes("href", "src"))
    assert evil in document.text  # shown as it was written


def test_control_characters_and_terminal_colours_are_not_passed_on() -> None:
    assert clean("\x1b[31mred\x1b[0m\x00\u202egnp.exe\nnext") == "red\ufffd\ufffdgnp.exe\nnext"
    grades = pd.DataFrame([graded("cactus", 1, None, outcome="invalid", message="\x1b]0;title\x07", agent="a\x1b[2Jb")])
    for text in (page(grades, None), markdown(grades), str(medal_table(grades))):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)


def test_a_message_of_megabytes_does_not_bloat_the_page() -> None:
    grades = pd.DataFrame([graded("cactus", 1, None, outcome="invalid", message="x" * 5_000_000)])
    assert len(page(grades, None)) < 100_000
