"""Types of sizes, times and limits for pydantic models, see `common.units`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, ByteSize, WithJsonSchema

from common.units import parse_duration, parse_limit, parse_size


def _either(unit: str, number: str, example: str) -> WithJsonSchema:
    """The schema for forms: a text with a unit, or a number."""
    text: dict[str, Any] = {"title": "With a unit", "type": "string", "examples": [example]}
    return WithJsonSchema({"anyOf": [text, {"title": unit, "type": number}]})


Size = Annotated[ByteSize, BeforeValidator(parse_size), _either("Bytes", "integer", "64GB")]
Seconds = Annotated[float, BeforeValidator(parse_duration), _either("Seconds", "number", "90m")]
TimeLimit = Annotated[
    float, BeforeValidator(partial(parse_limit, "time_limit_seconds")), _either("Seconds", "number", "24h")
]
Memory = Annotated[ByteSize, BeforeValidator(partial(parse_limit, "memory_bytes")), _either("Bytes", "integer", "64GB")]
Disk = Annotated[ByteSize, BeforeValidator(partial(parse_limit, "disk_bytes")), _either("Bytes", "integer", "200GB")]
