"""Editions share their prepared files if the competition's prepare.py does not depend on the edition.

A `prepare` that never reads its parameter `edition` returns the same declaration for every edition, whatever the
download. Edition v2 of such a competition differs in grading or in the description only, and has the files of v1.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from common.syntax import parse

FUNCTION, PARAMETER = "prepare", "edition"


def depends_on_edition(path: Path) -> bool:
    """Whether the function `prepare` of the module at `path` may return different declarations for different editions.

    The result is also True if this is unknown: if the module does not parse, or does not define the function itself.
    """
    stat = path.stat()
    return _depends(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=512)  # global, because the same competitions are looked up repeatedly
def _depends(path: Path, _modified: int, _size: int) -> bool:
    try:
        functions = [node for node in parse(path.read_bytes()).body if getattr(node, "name", None) == FUNCTION]
    except (SyntaxError, ValueError):  # importing the module reports the error
        return True
    match functions:
        case [ast.FunctionDef(decorator_list=[], args=arguments, body=body)]:
            parameters = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            used_names = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
            return PARAMETER not in parameters or bool(used_names & {PARAMETER, "locals", "vars", "eval", "exec"})
    return True
