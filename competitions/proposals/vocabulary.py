"""Which words the code of a proposal may use. It is compared before prepare.py is run on the download."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_PACKAGES = {"competitions", "numpy", "pandas"}
_BUILTINS = {"dict", "float", "len", "list", "range", "round", "str", "sum"}
_METHODS = frozenset(
    re.findall(
        r"\w+",
        """
    DataFrame all any archive assign astype columns contains convert_dtypes copies copy copy_tree drop
    drop_duplicates dropna duplicated each extract file fillna first format fromkeys get_dummies glob iloc isin isna
    join json loc lower map max mean merge min names nanmean notna nunique partition private public read_answers
    read_csv read_json read_json_lines read_submission reindex removesuffix rename replace reset_index rpartition
    round sort_values split str strip table text to_dict to_json to_pylist unique
    """,
    )
)


def foreign_words(code: str) -> list[str]:
    """The names and attributes in `code` that no proposal has. Raises `SyntaxError` if it is no Python.

    >>> foreign_words("table = 1" + chr(10) + "print(table.isin([exec('1')]), table.__class__)")
    ['__class__', 'exec', 'print']
    """
    tree = ast.parse(code)
    known = {*_BUILTINS, *_bound(tree)}
    words = (word for node in ast.walk(tree) for word in _words(node, known))
    return sorted(set(words))


def _bound(tree: ast.AST) -> Iterator[str]:
    """Names that the code gives a value, or imports from modules for it."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.arg)):
            yield node.name if isinstance(node, ast.FunctionDef) else node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (each.asname or each.name for each in node.names)


def _words(node: ast.AST, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id not in known:
        yield node.id
    elif isinstance(node, ast.Attribute) and node.attr not in _METHODS:
        yield node.attr
    elif isinstance(node, ast.Import):
        yield from (each.name for each in node.names if each.name.partition(".")[0] not in _PACKAGES)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in _PACKAGES:
        yield node.module or "."
