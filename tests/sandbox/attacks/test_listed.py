"""docs/security.md lists every attack, with its verdicts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
PAGE = TESTS.parent / "docs" / "security.md"
ELSEWHERE = (
    "grading/integrity/test_hostile_files.py",
    "grading/competition_checks/test_oracles.py",
    "flows/test_integrity_hostile.py",
    "flows/test_temporary_servers.py",
)
OPERATOR = "## What an operator opens"


def attacks() -> list[str]:
    paths = [*HERE.rglob("test_*.py"), *(TESTS / name for name in ELSEWHERE)]
    return [
        node.name
        for path in paths
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and path != Path(__file__)
    ]


def test_every_attack_is_listed_and_every_listed_attack_exists() -> None:
    agents, _, _ = PAGE.read_text("utf-8").partition(OPERATOR)
    listed = re.findall(r"`(test_\w+)`", agents)
    assert sorted(listed) == sorted(attacks())


def test_what_an_operator_opens_is_tested() -> None:
    """These tests stand beside those of the same servers and pages."""
    _, found, operator = PAGE.read_text("utf-8").partition(OPERATOR)
    assert found
    tests = {
        name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }
    assert set(re.findall(r"`(test_\w+)`", operator)) <= tests
