"""Values instead of trains of parameters: no public function of the upper rooms has more than seven parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 7


@pytest.mark.parametrize("room", ["tasks", "flows", "deployments"])
def test_signatures_are_short(room: str) -> None:
    found = [
        (f"{path.relative_to(ROOT)}: {node.name}", len(arguments))
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        for arguments in [
            [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg])]
        ]
    ]
    assert found
    assert [each for each in found if each[1] > LONGEST] == []
