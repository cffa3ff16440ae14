"""docs/security.md lists every attack on the machine, with its verdicts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "security.md"
ELSEWHERE = {"test_listed.py", "test_judges.py"}
"""Attacks on judges are listed by subject, without the names of their tests."""


def attacks() -> set[str]:
    paths = [path for path in HERE.glob("test_*.py") if path.name not in ELSEWHERE]
    return {
        node.name
        for path in paths
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_attack_is_listed_and_every_listed_attack_exists() -> None:
    listed = re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8"))
    assert sorted(listed) == sorted(attacks())
