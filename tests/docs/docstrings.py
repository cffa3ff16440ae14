"""Docstrings as the site's API reference shows them: examples as code, and descriptions of pydantic's fields.

The site's builder loads this as an extension of griffe, by its path and in an environment of its own. `griffe-pydantic`
would show the fields, too, but mkdocstrings fails at what it makes of ours.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring whose examples, each up to the next empty line, are code blocks: `>>>` is a quotation in Markdown."""
    return _EXAMPLE.sub(r"```pycon\n\g<0>\n```", text)


def described(node: object) -> str | None:
    """The description of the field that a statement of a model's class defines; None if it has none."""
    call = node.value if isinstance(node, ast.AnnAssign) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "Field":
        for keyword in call.keywords:
            if keyword.arg == "description" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return None


class Docstrings(griffe.Extension):
    """Changes every docstring that griffe has read, and gives fields one."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class and function."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_attribute_instance(self, *, node: ast.AST | griffe.ObjectNode, attr: griffe.Attribute, **_: Any) -> None:
        """Called for each attribute."""
        text = described(node)
        if text and not attr.docstring:
            attr.docstring = griffe.Docstring(text, parent=attr)
            attr.value = None  # the call of `Field`
