"""A proposed value with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from common.cleaning import visible

T = TypeVar("T")


@dataclass(frozen=True)
class Finding(Generic[T]):
    """What is proposed, why, and whether a person need not look at it."""

    value: T
    reason: str
    sure: bool

    def mark(self) -> str:
        """The comment behind a line of code that depends on it: nothing if it is sure.

        >>> Finding(0.1, "10 %", True).mark(), Finding(None, "no table", False).mark()
        ('', '  # CHECK: no table')
        """
        return "" if self.sure else mark(self.reason)


def mark(reason: str) -> str:
    """The comment behind a line that a person has to look at. Names of columns and files in it cannot end the line.

    >>> mark("no column" + chr(10) + "import os")
    '  # CHECK: no column import os'
    """
    return f"  # CHECK: {' '.join(visible(reason).split())}"
