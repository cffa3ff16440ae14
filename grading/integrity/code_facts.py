"""Extract imports, calls, strings and literals with their lines from Python source, even if it does not parse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from common.syntax import parse

_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+([\w, ]+)|import\s+([\w., ]+))")
_TEXT = re.compile(r"""(['"])((?:(?!\1).){1,4000})\1""")
_MAX_CHARACTERS = 2_000_000  # characters; larger files are data rather than code


@dataclass
class CodeFacts:
    """Facts about one source, each with its line number, from 1."""

    imports: list[tuple[str, int]] = field(default_factory=list)
    """Full names: `from a.b import c` gives `a.b.c`."""
    calls: list[tuple[str, int]] = field(default_factory=list)
    """Last part of each called name: `model.fit(x)` gives `fit`."""
    texts: list[tuple[str, int]] = field(default_factory=list)
    """String literals without docstrings."""
    groups: list[tuple[list[object], int]] = field(default_factory=list)
    """Constants that are keys of dictionary literals or elements of list literals."""


def read_code(text: str) -> CodeFacts:
    """The facts about Python source. Source that does not parse is searched line by line with patterns."""
    facts = CodeFacts()
    try:
        tree = parse(text[:_MAX_CHARACTERS])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _by_pattern(text, facts)
        return facts
    docstring_ids = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            facts.imports += [(alias.name, line) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            facts.imports += [(f"{node.module or ''}.{alias.name}", line) for alias in node.names]
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            facts.calls.append((name, line))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstring_ids:
            facts.texts.append((node.value, line))
        elif isinstance(node, ast.Dict):
            facts.groups.append(([key.value for key in node.keys if isinstance(key, ast.Constant)], line))
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            facts.groups.append((list(_constants(node.elts)), line))
    return facts


def _constants(nodes: list[ast.expr]) -> Iterator[object]:
    """Elements that are constants, and the first items of elements that are tuples or lists."""
    for node in nodes:
        first = node.elts[0] if isinstance(node, ast.List | ast.Tuple) and node.elts else node
        if isinstance(first, ast.Constant):
            yield first.value


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """String literals that are statements: docstrings, and strings used as comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _by_pattern(text: str, facts: CodeFacts) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        code = line.split("#", 1)[0]
        if match := _IMPORT.match(code):
            module, names, plain = match.groups()
            full = [f"{module}.{name.strip()}" for name in names.split(",")] if module else plain.split(",")
            facts.imports += [(name.split(" as ")[0].strip(), number) for name in full]
        facts.calls += [(name, number) for name in re.findall(r"\b(\w{1,100})[ \t]{0,8}\(", code)]
        facts.texts += [(match[1], number) for match in _TEXT.findall(code)]
