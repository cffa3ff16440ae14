"""Durations and sizes: in words for messages, and read from what people write, with a unit or without one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_SIZE_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgtp", 1)
    for ending, base in (("b", 1000), ("ib", 1024), ("i", 1024), ("", 1024))
}
_TIME_UNITS = {
    name: seconds
    for names, seconds in (
        ("s sec secs second seconds", 1.0),
        ("m min mins minute minutes", 60.0),
        ("h hr hrs hour hours", 3600.0),
        ("d day days", 86400.0),
    )
    for name in names.split()
}
_LEAST_WITHOUT_UNIT = 1024**2
"""Fewer bytes are not taken for bytes if they have no unit: people who write 64 mean gigabytes."""
LEAST = {"time_limit_seconds": 1, "memory_bytes": 64 * 1024**2, "disk_bytes": 16 * 1024**2, "cpus": 1}
"""What any agent needs, by the name of the limit: a shell, a Python interpreter and a small submission."""


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(24 * 3600), duration(6600), duration(1.5)
    ('24 hours', '1.83 hours', '1.5 seconds')
    """
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds >= length * 1.5 or seconds == length:
            return f"{round(seconds / length, 2):g} {unit if seconds != length else unit[:-1]}"
    return f"{seconds:g} second{'s' * (seconds != 1)}"


def elapsed(seconds: float) -> str:
    """A measured time, in at most two units.

    >>> elapsed(0.42), elapsed(48), elapsed(754), elapsed(86400)
    ('0.4 s', '48 s', '12 min 34 s', '24 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return " ".join(f"{count} {unit}" for count, unit in ((minutes, "min"), (rest, "s")) if count)
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h" + (f" {minutes} min" if minutes else "")


def data_size(count: float) -> str:
    """An amount of data on disks and in networks, in decimal units as disks and downloads are sold.

    >>> data_size(1234567), data_size(5)
    ('1.2 MB', '5 B')
    """
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:,.1f} {unit}"
    return f"{count:.0f} B"


def size(count: int) -> str:
    """A limit in bytes, in the binary units in which limits of memory are given.

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


def unnamed(name: str, text: str) -> str:
    """A text without the name that it begins with, for a line that names it already.

    >>> unnamed("digits", "digits: no disk"), unnamed("digits seed 0", "digits: no disk"), unnamed("digits", "no disk")
    ('no disk', 'no disk', 'no disk')
    """
    return text.removeprefix(f"{name}: ").removeprefix(f"{name.split(' ')[0]}: ")


def listed(names: Sequence[object], most: int = 3) -> str:
    """The first names, and how many more there are.

    >>> listed("abc"), listed("abcde")
    ('a, b, c', 'a, b, c and 2 more')
    """
    shown = ", ".join(map(str, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def parse_size(value: object) -> int:
    """The bytes in a text such as 64GB, 16g, 512 MiB or 1.5TB, or in a plausible number of bytes.

    GB is a thousand million bytes; GiB, Gi and g are 1024 MiB, as for Docker and Kubernetes.

    >>> parse_size("64GB"), parse_size("16g"), parse_size(" 1.5 GiB"), parse_size(2_000_000)
    (64000000000, 17179869184, 1610612736, 2000000)

    Raises:
        ValueError: it is no size, or so few bytes without a unit that another unit must be meant.
    """
    count, unit = _bytes(value)
    if not unit and 0 < count < _LEAST_WITHOUT_UNIT:
        raise ValueError(f"{value} is {counted(count, 'byte')}: give a unit, such as {value}GB")
    return count


def parse_duration(value: object) -> float:
    """The seconds in a text such as 90m, 24h, 1h30m, 2 days or 24:00:00, or in a number of seconds.

    >>> parse_duration("1h30m"), parse_duration("24:00:00"), parse_duration("1.5 hours"), parse_duration(90)
    (5400.0, 86400.0, 5400.0, 90.0)

    Raises:
        ValueError: it is none of these.
    """
    number, unit = _split(value)
    if number is not None and not unit:
        return number
    text = str(value).strip().lower()
    if isinstance(value, str) and (clock := re.fullmatch(r"(\d+):([0-5]\d):([0-5]\d)", text)):
        hours, minutes, seconds = map(int, clock.groups())
        return 3600.0 * hours + 60.0 * minutes + seconds
    parts = re.findall(r"(\d+\.?\d*)\s*([a-z]+)", text) if isinstance(value, str) else []
    rest = re.sub(r"(\d+\.?\d*)\s*([a-z]+)", "", text)
    if not parts or rest.strip(" ,") or any(unit not in _TIME_UNITS for _, unit in parts):
        raise ValueError(f"{value!r} is not a time such as 90m, 24h, 1h30m or a number of seconds")
    return sum(float(amount) * _TIME_UNITS[unit] for amount, unit in parts)


def parse_limit(name: str, value: object) -> float | int:
    """A limit of a run in any form that people give it; used wherever limits are read.

    >>> parse_limit("memory_bytes", "64GB"), parse_limit("time_limit_seconds", "24h"), parse_limit("cpus", "8")
    (64000000000, 86400.0, 8)

    Args:
        name: the field of `sandbox.limits.Limits`.
        value: a number, or a text with a unit.

    Raises:
        ValueError: it is not a positive value of its kind, or less than what any agent needs.
    """
    least = LEAST.get(name, 0)
    if name.endswith("_seconds"):
        parsed: float | int = parse_duration(value)
        text, least_text, hint = duration(parsed), duration(least), ""
    elif name.endswith("_bytes"):
        parsed, unit = _bytes(value)
        text, least_text, hint = (
            size(parsed),
            size(least),
            "" if unit or not parsed else f": give a unit, such as {value}GB",
        )
    else:
        number, unit = _split(value)
        if number is None or unit or number != int(number):
            raise ValueError(f"{value!r} is not a whole number")
        parsed, text, least_text, hint = int(number), str(value), str(least), ""
    if parsed < least:
        raise ValueError(f"{text} is less than any agent needs, which is {least_text}{hint}")
    if parsed <= 0 and name != "grace_seconds":
        raise ValueError(f"{value} is not more than zero")
    return parsed


def _bytes(value: object) -> tuple[int, str]:
    number, unit = _split(value)
    if number is None or unit not in _SIZE_UNITS:
        raise ValueError(f"{value!r} is not a size such as 64GB or 512MiB")
    return int(number * _SIZE_UNITS[unit]), unit


def _split(value: object) -> tuple[float | None, str]:
    """Number and unit of a value; None if it is not a number of zero or more with at most one word behind it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None, ""
    match = re.fullmatch(r"\+?(\d+\.?\d*(?:e\+?\d+)?|\.\d+)\s*([a-z]*)", str(value).strip().lower())
    number = float(match[1]) if match else math.inf
    return (number, match[2]) if match and math.isfinite(number) else (None, "")
