"""Every row of docs/guarantees.md names tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

_NAMED = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")


def named() -> list[tuple[str, str]]:
    return _NAMED.findall((ROOT / "docs" / "guarantees.md").read_text("utf-8"))


def test_the_page_names_tests() -> None:
    assert len(named()) > 30


@pytest.mark.parametrize(("path", "name"), sorted(set(named())))
def test_a_named_test_exists(path: str, name: str) -> None:
    source = (ROOT / path).read_text("utf-8")
    assert not name or re.search(rf"^\s*(?:def|class) {name}\b", source, re.MULTILINE)
