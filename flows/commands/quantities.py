"""Types of options: sizes, times and limits, with or without a unit, see `common.units`; and the numbers of `plan`."""

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


def _difference(value: object) -> float:
    """Points from 0.01, because nobody has the runs that detect less."""
    number = _number(value)
    if not 0.01 <= number < 100:
        raise ValueError(f"{value} is not at least 0.01 and below 100 points")
    return number


def _power(value: object) -> float:
    """Percent from 50. Less is hardly meant: a fraction was written instead."""
    number = _number(value)
    if not 50 <= number < 100:
        hint = f"; did you mean {100 * number if 0.5 <= number < 1 else 80:g}?" if number < 50 else ""
        raise ValueError(f"{value} is not at least 50 and below 100 percent{hint}")
    return number


def _share(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise ValueError(f"{value!r} is not a share between 0 and 1, such as 0.3")
    return number


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is no number; groups come first: mlebench plan GROUP --power 80") from None


DIFFERENCE = Quantity("number", _difference)
SHARE = Quantity("share", _share)
POWER = Quantity("number", _power)
DURATION = Quantity("time", parse_duration)
POSITIVE_DURATION = Quantity("time", parse_duration, zero=False)
GIBIBYTES = Quantity("size", _gibibytes, zero=False)
TIME_LIMIT = Quantity("time", partial(parse_limit, "time_limit_seconds"))
MEMORY = Quantity("size", partial(parse_limit, "memory_bytes"))
DISK = Quantity("size", partial(parse_limit, "disk_bytes"))
CPUS = Quantity("number", partial(parse_limit, "cpus"))
