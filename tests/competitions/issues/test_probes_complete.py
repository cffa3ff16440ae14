"""Every issue that v2 fixes has a probe, and every probe belongs to such an issue."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from competitions import registry
from competitions.competition import Competition

FOLDER = Path(__file__).parent
COMPETITIONS = [registry.get(name) for name in registry.list()]


def module_of(competition: Competition) -> Path:
    return FOLDER / f"test_{competition.id.replace('-', '_').lower()}.py"


def probes(module: Path) -> set[str]:
    """The names of the tests in a module."""
    if not module.exists():
        return set()
    functions = [node for node in ast.parse(module.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions if function.name.startswith("test_")}


@pytest.mark.parametrize("competition", COMPETITIONS, ids=lambda competition: competition.id)
def test_each_fixed_issue_has_its_probe(competition: Competition) -> None:
    fixed = {f"test_{i.id.replace('-', '_')}" for i in competition.facts.known_issues if i.v2 == "fixed"}
    found = probes(module_of(competition))
    assert not fixed - found, "fixed in v2, but no probe shows it"
    assert not found - fixed, "a probe of an issue that v2 does not fix, or that competition.yaml does not list"


def test_each_module_belongs_to_a_competition() -> None:
    expected = {module_of(competition).name for competition in COMPETITIONS} | {Path(__file__).name}
    assert {path.name for path in FOLDER.glob("test_*.py")} <= expected
