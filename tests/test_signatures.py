"""No public function has more than seven parameters: what belongs together is passed as one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.test_architecture import ROOMS, ROOT, modules

MOST = 7


def signatures(source: str) -> Iterator[tuple[str, int]]:
    """(name, number of parameters) of every public function and method; *args and **kwargs count one each."""

    def walk(node: ast.AST, prefix: str, of_class: bool) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from walk(child, f"{prefix}{child.name}.", of_class=True)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                given = child.args
                count = len(given.posonlyargs + given.args + given.kwonlyargs) + bool(given.vararg) + bool(given.kwarg)
                static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in child.decorator_list)
                if not child.name.startswith("_") or child.name == "__init__":
                    yield prefix + child.name, count - (of_class and not static)
            elif isinstance(child, ast.If | ast.Try | ast.With):
                yield from walk(child, prefix, of_class)

    yield from walk(ast.parse(source), "", of_class=False)


def long_signatures() -> dict[str, int]:
    return {
        f"{path.relative_to(ROOT).as_posix()}: {name}": count
        for room in ROOMS
        for path in modules(room)
        for name, count in signatures(path.read_text("utf-8"))
        if count > MOST
    }


def test_no_public_signature_is_long() -> None:
    assert long_signatures() == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, /, b, *args, c=1, **more): ...", [("f", 5)]),
        (
            "class C:\n    def __init__(self, a): ...\n    @staticmethod\n    def g(a, b): ...",
            [("C.__init__", 1), ("C.g", 2)],
        ),
        ("def _f(a): ...\nasync def f(): ...", [("f", 0)]),
    ],
)
def test_parameters_are_counted(source: str, expected: list[tuple[str, int]]) -> None:
    assert list(signatures(source)) == expected
