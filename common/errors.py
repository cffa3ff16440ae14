"""Errors that a user can fix, and helpers for their messages. Each message is one line that says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class UserError(Exception):
    """An error that the user can fix. The command line shows its message as one line, without a traceback."""


def close_matches(wanted: str, known: Iterable[str]) -> str:
    """`` Did you mean a, b?`` for the names most like `wanted`, or an empty string.

    >>> close_matches("leaf-clasification", ["leaf-classification", "dogs"])
    ' Did you mean leaf-classification?'
    """
    names = sorted(set(known))
    found = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    found += [name for name in names if len(wanted) > 2 and wanted in name and name not in found][:3]
    return f" Did you mean {', '.join(found)}?" if found else ""


def one_line(error: Exception) -> str:
    r"""A validation error's text folded to one line.

    >>> one_line(ValueError("a\n  b"))
    'a b'
    """
    return re.sub(r"\s+", " ", str(error)).strip()
