"""Months as they are written in definitions: YYYY-MM."""

from __future__ import annotations

PATTERN = r"^[12][0-9]{3}-(0[1-9]|1[0-2])$"


def end_of(month: str) -> float:
    """The end of a month in years.

    >>> end_of("2023-06"), end_of("2023-12")
    (2023.5, 2024.0)
    """
    year, number = month.split("-")
    return int(year) + int(number) / 12
