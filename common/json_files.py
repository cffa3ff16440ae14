"""JSON that others wrote: whatever is wrong with it is one kind of error, and in a file that a user named one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from common.errors import UserError, one_line


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` if it is none, also if it is nested deeper than Python reads.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested too deeply
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path, what: str = "") -> Any:
    """The value in a JSON file, with or without a byte order mark. `what` is how the message calls the file.

    Raises `UserError` if it cannot be read or is not JSON.
    """
    named = what or str(path)
    try:
        return parse_json(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"{named} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # also of text that is not UTF-8, and of numbers with thousands of digits
        raise UserError(f"{named} is not JSON: {one_line(error)}") from error
