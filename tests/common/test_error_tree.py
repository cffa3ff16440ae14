"""The docstring of `common.errors` shows every exception of this project below the one that it is derived from."""

from __future__ import annotations

import ast
import builtins
import re

import common.errors
from tests.test_architecture import ROOMS, ROOT, modules


def bases_of_errors() -> dict[tuple[str, str], list[str]]:
    """All public classes that are exceptions, by name and module, with the names of their bases."""
    classes = {
        (node.name, ".".join(path.relative_to(ROOT).with_suffix("").parts)): [
            ast.unparse(base).split(".")[-1] for base in node.bases
        ]
        for room in ROOMS
        for path in modules(room)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    errors = {
        name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
    }
    while more := {name for (name, _), bases in classes.items() if errors.intersection(bases)} - errors:
        errors |= more
    return {key: bases for key, bases in classes.items() if key[0] in errors and not key[0].startswith("_")}


def shown() -> dict[tuple[str, str], str | None]:
    """The exceptions of the docstring, by name and module, with the name of the one above."""
    found: dict[tuple[str, str], str | None] = {}
    above: list[str] = []
    for indent, name, module in re.findall(r"^    ( *)(\w+) +([a-z][\w.]+)$", str(common.errors.__doc__), re.MULTILINE):
        del above[len(indent) // 4 :]
        found[name, module] = above[-1] if above else None
        above.append(name)
    return found


def test_the_tree_shows_every_exception_below_its_base() -> None:
    errors, tree = bases_of_errors(), shown()
    assert tree.keys() == errors.keys()
    wrong = [name for (name, module), base in tree.items() if base is not None and base not in errors[name, module]]
    assert not wrong
    ours = {name for name, _ in errors}
    roots = [name for (name, module), base in tree.items() if base is None and ours.intersection(errors[name, module])]
    assert not roots, "they are below another exception of this project"


def test_no_two_exceptions_have_the_same_name() -> None:
    names = [name for name, _ in bases_of_errors()]
    assert len(names) == len(set(names))
