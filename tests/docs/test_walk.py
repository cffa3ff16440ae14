"""The walk in docs/concepts.md names functions that exist, in an order in which each is reached from an earlier one."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache

import pytest

from tests.docs.blocks import ROOT


@dataclass(frozen=True)
class Step:
    """A row of the table."""

    number: int
    caller: int | None
    path: str
    function: str

    def __str__(self) -> str:
        return f"{self.number} {self.path} {self.function}"


_ROW = re.compile(r"^\| (\d+) \| (\d*) ?\| `([\w/.]+)` \| `([\w.]+)` \|", re.MULTILINE)


def walk() -> list[Step]:
    text = (ROOT / "docs" / "concepts.md").read_text("utf-8")
    return [Step(int(n), int(c) if c else None, path, function) for n, c, path, function in _ROW.findall(text)]


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text("utf-8"))


def defines(path: str, name: str) -> bool:
    """Whether a module has a function, a class, a method (`Class.method`) or a variable of that name."""
    body: list[ast.stmt] = tree(path).body
    for part in name.split("."):
        found = [each for each in body if part in _names(each)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _names(statement: ast.stmt) -> list[str]:
    """What a statement defines: a function, a class, or, as a task made of a plain function, a variable."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def refers(path: str, step: Step) -> bool:
    """Whether a module uses the function's name, or starts the function's module as a process."""
    name, module = step.function.split(".")[0], step.path.removesuffix(".py").replace("/", ".")
    # A method is called on an object, which the calling module may have got from elsewhere.
    names = {name, step.function.split(".")[-1]}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Attribute) and node.attr in names:
            return True
        if isinstance(node, ast.Constant) and node.value == module:
            return True
    return False


def elsewhere(name: str) -> list[str]:
    """Modules that define the function, for whoever has moved it."""
    packages = ("flows", "tasks", "storage", "sandbox", "grading", "competitions", "common")
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py") if "catalog" not in path.parts)
    modules = (path.relative_to(ROOT).as_posix() for path in paths)
    return [module for module in modules if defines(module, name)]


def test_the_walk_is_numbered_and_starts_at_the_command_line() -> None:
    steps = walk()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) > 30
    assert (steps[0].path, steps[0].caller) == ("flows/cli.py", None)


@pytest.mark.parametrize("step", walk(), ids=str)
def test_a_step_exists_and_is_reached_from_an_earlier_one(step: Step) -> None:
    exists = (ROOT / step.path).is_file() and defines(step.path, step.function)
    assert exists, f"docs/concepts.md: {step.function} is in {elsewhere(step.function) or 'no module'}"
    if step.number > 1:
        assert step.caller is not None
        assert step.caller < step.number
        caller = walk()[step.caller - 1].path
        assert (ROOT / caller).is_file()
        assert refers(caller, step), f"docs/concepts.md: {caller} does not refer to {step.function}"


def test_a_function_that_is_not_there_is_noticed() -> None:
    assert not defines("flows/cli.py", "no_such_function")
    assert elsewhere("full_benchmark") == ["flows/full_benchmark.py"]
    assert not refers("flows/cli.py", Step(2, 1, "flows/commands/report.py", "write_report"))
