"""Types of sizes, times and limits for pydantic models, see `common.units`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, ByteSize, WithJsonSchema

from common.units import LEAST, parse_duration, parse_limit, parse_size

_SIZE_TEXT = r"^\s*[0-9.]+\s*[A-Za-z]+\s*$"
_TIME_TEXT = r"^\s*([0-9.]+\s*[A-Za-z]+[\s,]*)+$|^\s*[0-9]+:[0-9]{2}:[0-9]{2}\s*$"


def _either(number: str, least: float, pattern: str, example: str) -> WithJsonSchema:
    """The schema for forms, which refuse most that is wrong: a text with a unit, or a number of bytes or seconds."""
    unit = {"integer": "Bytes", "number": "Seconds"}[number]
    text: dict[str, Any] = {"title": "With a unit", "type": "string", "pattern": pattern, "examples": [example]}
    return WithJsonSchema({"anyOf": [text, {"title": unit, "type": number, "minimum": least}]})


def _limit(name: str, example: str) -> tuple[BeforeValidator, WithJsonSchema]:
    number, pattern = ("number", _TIME_TEXT) if name.endswith("_seconds") else ("integer", _SIZE_TEXT)
    return BeforeValidator(partial(parse_limit, name)), _either(number, LEAST[name], pattern, example)


Size = Annotated[ByteSize, BeforeValidator(parse_size), _either("integer", 0, _SIZE_TEXT, "64GB")]
Seconds = Annotated[float, BeforeValidator(parse_duration), _either("number", 0, _TIME_TEXT, "90m")]
TimeLimit = Annotated[float, *_limit("time_limit_seconds", "24h")]
Memory = Annotated[ByteSize, *_limit("memory_bytes", "64GB")]
Disk = Annotated[ByteSize, *_limit("disk_bytes", "200GB")]
