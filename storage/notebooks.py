"""Convert notebooks to plain code for the plagiarism check."""

from __future__ import annotations

import json
from typing import Any

_MAGIC = ("%", "!", "?")


def plain_code(source: str) -> str:
    r"""The code of a kernel: the code cells of a notebook (.ipynb JSON), or an unchanged script.

    Magics, shell lines and cells of another language (``%%bash``) become comments. Text and outputs are dropped.
    Notebooks of format 3, which still exist, have their cells in worksheets.

    >>> print(plain_code('{"cells": [{"cell_type": "code", "source": ["%matplotlib inline\\n", "x = 1"]}]}'))
    # %matplotlib inline
    x = 1
    """
    try:
        notebook = json.loads(source)
    except (ValueError, RecursionError):
        return source
    if not isinstance(notebook, dict):
        return source
    cells = notebook.get("cells")
    if cells is None:
        sheets = notebook.get("worksheets")
        cells = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
        cells = [cell for listed in cells if isinstance(listed, list) for cell in listed]
    if not isinstance(cells, list) or not cells:  # it is not a notebook
        return source
    code = (_cell(cell) for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code")
    return "\n\n".join(text for text in code if text)


def _cell(cell: dict[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    lines = ("".join(map(str, source)) if isinstance(source, list) else str(source)).strip("\n").split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not first.startswith(("%%time", "%%capture", "%%prun")):
        return "\n".join(f"# {line}".rstrip() for line in lines)
    return "\n".join(_line(line) for line in lines)


def _line(line: str) -> str:
    code = line.lstrip()
    if not code.startswith(_MAGIC):
        return line
    # A continued expression may begin with %, but a magic begins with % and a name.
    if code.startswith("%") and not (code[1:2].isalpha() or code.startswith("%%")):
        return line
    return f"{line[: len(line) - len(code)]}# {code}"
