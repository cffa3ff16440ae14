"""Durations and sizes in words, for messages."""

from __future__ import annotations

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(24 * 3600), duration(5400), duration(1.5)
    ('24 hours', '1.5 hours', '1.5 seconds')
    """
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds >= length * 1.5 or seconds == length:
            return f"{seconds / length:g} {unit if seconds != length else unit[:-1]}"
    return f"{seconds:g} second{'s' * (seconds != 1)}"


def size(count: int) -> str:
    """A number of bytes.

    >>> size(2 * 1024**3), size(100_000)
    ('2 GiB', '97.66 KiB')
    """
    value, unit = float(count), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.4g} {unit}"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "run"), counted(0, "run"), counted(2700, "score")
    ('1 run', '0 runs', '2,700 scores')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def listed(names: Sequence[object], most: int = 3) -> str:
    """The first names, and how many more there are.

    >>> listed("abc"), listed("abcde")
    ('a, b, c', 'a, b, c and 2 more')
    """
    shown = ", ".join(map(str, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
