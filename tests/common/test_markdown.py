"""Foreign text in Markdown is shown as it is, and has no effect."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from common.markdown import Markdown, code, escape, link, table

FOREIGN = [
    "![alt](http://foreign.example/a.png)",
    "[text](//foreign.example/a)",
    "![ref][a] [a]: //foreign.example/a.png",
    "<img src=//foreign.example/a.png> <!-- x",
    "&lt;img src=x&gt; &#60;b&#62;",
    "see http://foreign.example/a, HTTPS://foreign.example, ftp://foreign.example",
    "www.foreign.example and <http://foreign.example> and someone@foreign.example",
    "``` mermaid",
    "~~~ python",
    "`` `http://foreign.example/``` `",
    "a | b || c \\| d",
    "# head",
    "- item",
    "12. item",
    "> quote",
    "*a* _b_ **c** ~~d~~ $e$",
    "===",
    "\\![x]\\(http://foreign.example)",
    "x\\",
]


def shown(text: str) -> list[tuple[str, str]]:
    """Types and texts of all tokens of a text, as programs read it that know tables and HTML."""
    reader = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    tokens = [token for block in reader.parse(text) for token in (block.children or [block])]
    return [(token.type, token.content) for token in tokens if token.content or token.type not in ("inline", "text")]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_foreign_text_is_shown_and_has_no_effect(foreign: str) -> None:
    found = shown(escape(foreign))
    assert {kind for kind, _ in found} <= {"paragraph_open", "paragraph_close", "text", "code_inline", "text_special"}
    assert "".join(text for _, text in found) == foreign
    linked = re.compile(r"://|www\.|@", re.IGNORECASE)  # many programs make links of these, but not in code
    assert not [text for kind, text in found if kind != "code_inline" and linked.search(text)]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_cell_of_a_table_stays_one(foreign: str) -> None:
    text = "\n".join(table([foreign, "b"], [[foreign, "x"], ["y", foreign]]))
    found = shown(text)
    assert {kind for kind, _ in found if "html" in kind or "link" in kind or "image" in kind} == set()
    assert sum(kind == "td_open" for kind, _ in found) == 4
    assert (
        "".join(text for kind, text in found if kind.startswith(("text", "code")))
        == foreign + "b" + foreign + "xy" + foreign
    )


def test_control_and_bidirectional_characters_are_replaced_and_lines_folded() -> None:
    assert escape("a\x1b[2J\n\u202eb\u2066\x00") == "a �b��"


def test_our_own_markup_stays_and_what_is_put_into_it_is_escaped() -> None:
    ours = Markdown("**{}**: {}").format("a_b", link("c", "https://host/d(e)"))
    assert ours == r"**a\_b**: [c](https://host/d%28e%29)"
    assert Markdown("\n").join([ours, "*"]) == ours + Markdown("\n\\*")
    assert code("a``b`") == "``` a``b` ```"
    assert link("c", "javascript:x") == "c"
    assert not re.search("http", link("c", "file:///http"))
