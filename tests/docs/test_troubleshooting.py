"""The error lines that docs/troubleshooting.md explains are those that the code has."""

from __future__ import annotations

import ast
import re
from difflib import get_close_matches
from functools import cache

import pytest

from tests.docs.blocks import ROOT

DOCUMENT = ROOT / "docs" / "troubleshooting.md"
PACKAGES = ("common", "competitions", "grading", "storage", "sandbox", "tasks", "flows", "training")
GAP = "..."


def lines() -> list[str]:
    """What stands in code type in the first column, as far as it is a message of several words."""
    cells = [line.split("|")[1] for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell) if " " in code]


@cache
def messages() -> list[str]:
    """Every text of the code, with `...` for what is put in when it runs."""
    found = []
    paths = [*ROOT.glob("*.py"), *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))]
    for path in paths:
        if "catalog" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    found.append("".join(_part(value) for value in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return found


def _part(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else GAP


def in_code(line: str) -> bool:
    """Whether the line's own words stand in one text of the code, in their order."""
    words = re.compile(".*".join(map(re.escape, line.split(GAP))), re.DOTALL)
    return any(words.search(message) for message in messages())


@pytest.mark.parametrize("line", lines())
def test_an_explained_line_is_one_of_the_code(line: str) -> None:
    similar = "" if in_code(line) else "\n".join(get_close_matches(line, messages(), n=3, cutoff=0.3))
    assert in_code(line), f"docs/troubleshooting.md: the code has no such message. Similar ones:\n{similar}"


def test_a_line_that_the_code_has_not_is_noticed() -> None:
    assert not in_code("... is prepared in ...; do nothing")
    assert len(lines()) > 30
