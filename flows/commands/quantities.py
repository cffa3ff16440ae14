"""Types of options: percentages, and sizes, times and limits of runs, with or without a unit; see `common.units`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from common.units import parse_duration, parse_limit, parse_size


class Quantity(click.ParamType):
    """A size, time or number that a function of `common.units` reads, zero only if that is allowed."""

    def __init__(self, name: str, read: Callable[[object], float], *, zero: bool = True) -> None:
        self.name, self._read, self._zero = name, read, zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The bytes, seconds or number that is meant."""
        try:
            number = self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not number and not self._zero:
            self.fail(f"{value} is not more than zero", param, ctx)
        return number


def _gibibytes(value: object) -> int:
    """A size; a number without a unit is one of GiB."""
    text = str(value).strip()
    return parse_size(f"{text}GiB" if text[-1:].isdigit() else text)


def _percentage(value: object) -> float:
    """A number above 0 and below 100."""
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < 100:
        raise ValueError(f"{value!r} is not a number above 0 and below 100")
    return number


PERCENTAGE = Quantity("number", _percentage)
DURATION = Quantity("time", parse_duration)
POSITIVE_DURATION = Quantity("time", parse_duration, zero=False)
GIBIBYTES = Quantity("size", _gibibytes, zero=False)
TIME_LIMIT = Quantity("time", partial(parse_limit, "time_limit_seconds"))
MEMORY = Quantity("size", partial(parse_limit, "memory_bytes"))
DISK = Quantity("size", partial(parse_limit, "disk_bytes"))
CPUS = Quantity("number", partial(parse_limit, "cpus"))
