"""Errors that a user can fix, and helpers for their messages. Each message is one line that says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from common.causes import Kind


class UserError(Exception):
    """An error that the user can fix. The command line shows its message as one line, without a traceback.

    `kind` names its row in the table of causes (`common.causes`). Subclasses override it, and `of_kind` sets it for one
    error. None: the kind of the error that it was raised from, or "user input".
    """

    kind: Kind | None = None

    def of_kind(self, kind: Kind) -> Self:
        """The error itself, with another kind, which it keeps when it is sent between processes."""
        self.kind = kind
        return self


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
