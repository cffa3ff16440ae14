"""Sizes and times as people write them."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel, ByteSize, ValidationError

from common.quantities import Memory, Seconds, Size, TimeLimit
from common.units import parse_duration, parse_limit, parse_size

GIB, MINUTE, HOUR, DAY = 1024**3, 60, 3600, 86400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64GB", 64 * 10**9), ("64 gb", 64 * 10**9), ("64g", 64 * GIB), ("64G", 64 * GIB), ("64Gi", 64 * GIB),
        ("64GiB", 64 * GIB), ("0.5TiB", 512 * GIB), ("1.5tb", 15 * 10**11), ("512m", GIB // 2), ("512MiB", GIB // 2),
        ("1000B", 1000), ("1000 bytes", 1000), ("68719476736", 64 * GIB), (64 * GIB, 64 * GIB), (6.4e10, 64 * 10**9),
        (" 2 GiB ", 2 * GIB), ("0", 0),
    ],
)  # fmt: skip
def test_sizes(text: object, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    "text", ["", "GB", "64XB", "-1GB", "1,5GB", "nan", "infGB", "64GB/s", "64 G B", True, None, [1]]
)
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(repr(text))} is not a size such as 64GB or 512MiB$"):
        parse_size(text)


@pytest.mark.parametrize("text", ["64", 64, "500000", 64.0])
def test_a_number_that_cannot_be_bytes_needs_a_unit(text: object) -> None:
    with pytest.raises(ValueError, match=rf"^{text} is [\d,]+ bytes: give a unit, such as {text}GB$"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90), (90, 90), ("0.5", 0.5), ("90s", 90), ("90 sec", 90), ("90m", 90 * MINUTE), ("90 min", 90 * MINUTE),
        ("1h", HOUR), ("1.5 hours", 1.5 * HOUR), ("1h30m", 1.5 * HOUR), ("1h 30m 5s", 5405), ("1 H, 30 M", 1.5 * HOUR),
        ("2 days", 2 * DAY), ("1d", DAY), ("24:00:00", DAY), ("0:01:30", 90), ("100:00:00", 100 * HOUR), ("0", 0),
    ],
)  # fmt: skip
def test_times(text: object, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "h", "1x", "-1h", "1:30", "1:90:00", "nan", "inf", "1h30", "soon", True, None, -1]
)
def test_what_is_no_time(text: object) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(repr(text))} is not a time such as 90m, 24h, 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory_bytes", "64", "64 bytes is less than any agent needs, which is 64 MiB: give a unit, such as 64GB"),
        ("memory_bytes", "64KB", "62.5 KiB is less than any agent needs, which is 64 MiB"),
        ("disk_bytes", "1MB", "976.6 KiB is less than any agent needs, which is 16 MiB"),
        ("time_limit_seconds", "0.1", "0.1 seconds is less than any agent needs, which is 1 second"),
        ("cpus", "0", "0 is less than any agent needs, which is 1"),
        ("cpus", "0.5", "'0.5' is not a whole number"),
        ("submission_bytes", 0, "0 is not more than zero"),
    ],
)
def test_limits_below_what_any_agent_needs(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_limit(name, value)


def test_models_take_units_and_say_so_to_forms() -> None:
    class Form(BaseModel):
        memory: Memory | None = None
        size: Size = ByteSize(1)
        wait: Seconds = 0.0
        limit: TimeLimit = 60.0

    form = Form.model_validate({"memory": "64GB", "size": "2m", "wait": "1m", "limit": "1h"})
    assert (form.memory, form.size, form.wait, form.limit) == (64 * 10**9, 2 * 1024**2, 60.0, 3600.0)
    assert Form.model_validate_json(form.model_dump_json()) == form
    kinds = [each["type"] for each in Form.model_json_schema()["properties"]["limit"]["anyOf"]]
    assert kinds == ["string", "number"]
    with pytest.raises(ValidationError, match="64 bytes is less than any agent needs"):
        Form.model_validate({"memory": 64})
