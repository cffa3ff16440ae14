"""JSON of ours is JSON for everybody: Python's strict reader, `node` and `jq`; and its numbers come back."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from typing import Any

import pytest

from common import plain_json

NUMBERS = [math.inf, -math.inf, math.nan, 0.1, -0.0, 5e-324, 1.7976931348623157e308]
VALUE: dict[str, Any] = {"score": math.inf, "all": [*NUMBERS, {"a": (math.nan,)}], "text": "NaN", "none": None}
PLAIN: dict[str, Any] = {
    "score": "Infinity",
    "all": ["Infinity", "-Infinity", "NaN", *NUMBERS[3:], {"a": ["NaN"]}],
    "text": "NaN",
    "none": None,
}


@pytest.mark.parametrize("options", [{}, {"indent": 1}, {"ensure_ascii": False}, {"sort_keys": True}])
def test_is_read_by_a_strict_reader(options: dict[str, Any]) -> None:
    assert json.loads(plain_json.dumps(VALUE, **options), parse_constant=pytest.fail) == PLAIN


@pytest.mark.parametrize("options", [{}, {"indent": 1}, {"separators": (",", ":")}])
def test_of_numbers_is_as_by_python(options: dict[str, Any]) -> None:
    value = {"a": NUMBERS[3:], "é": "\ud800"}
    assert plain_json.dumps(value, **options) == json.dumps(value, **options)


@pytest.mark.parametrize(
    "command", [["node", "-e", "JSON.parse(require('fs').readFileSync(0))"], ["jq", "--exit-status", "."]]
)
def test_is_read_by_programs_of_others(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    done = subprocess.run(command, input=plain_json.dumps(VALUE).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", NUMBERS)
def test_gives_the_numbers_back(number: float) -> None:
    [found] = map(plain_json.number, json.loads(plain_json.dumps([number])))
    assert repr(found) == repr(number)


def test_does_not_change_what_is_no_json() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        plain_json.dumps({"a": {1}})
