"""Errors a user can cause. Each message is one line that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can mend; shown as one line, never as a traceback."""


class UnknownCompetition(UserError, LookupError):
    """No competition of that id is in the catalog."""


class UnknownSplit(UserError, LookupError):
    """No split of that name exists."""


class BadCompetition(UserError):
    """A competition folder is incomplete or its facts do not validate."""


class DownloadError(UserError):
    """A download is damaged, or lacks a file that preparation needs."""


def close_matches(wanted: str, known: Iterable[str]) -> str:
    """`` Did you mean a, b?`` for the names most like `wanted`, or an empty string.

    >>> close_matches("leaf-clasification", ["leaf-classification", "dogs"])
    ' Did you mean leaf-classification?'
    """
    names = sorted(set(known))
    found = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    found += [name for name in names if len(wanted) > 2 and wanted in name and name not in found][:3]
    return f" Did you mean {', '.join(found)}?" if found else ""
