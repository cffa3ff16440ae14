"""`--json`: the result of a command as JSON for programs, instead of lines for people.

A command with `@takes_json` prints its lines with `say`, and passes the result to `answer`. With `--json`, the answer
is all that it writes to standard output: a list as one JSON object on each line, anything else as one object.
Exit codes and messages on standard error are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from common import plain_json

_JSON_KEY = "mlebench.json"


def _choose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON_KEY] = value


def json_option(text: str) -> Callable[[Any], Any]:
    """Gives a command the option `--json`, with this help."""
    return click.option("--json", is_flag=True, expose_value=False, callback=_choose, help=text)


takes_json = json_option("Print the result as JSON: an object per line.")
"""Gives a command the option `--json`."""


def wanted() -> bool:
    """Whether the command that is running was given `--json`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_JSON_KEY))


def say(text: str) -> None:
    """Print a line for people on standard output, but not with `--json`."""
    if not wanted():
        click.echo(text)


def answer(found: Any) -> bool:
    """Print the result if `--json` is given; returns whether it is."""
    if not wanted():
        return False
    found = plain(found)
    for record in found if isinstance(found, list) else [found]:
        click.echo(plain_json.dumps(record))
    return True


def plain(value: Any) -> Any:
    """The value as JSON has it: records as objects, times and paths as text, infinities as in `common.plain_json`.

    NaN is null, because data frames have it where a value is missing.

    >>> plain({"score": float("nan"), "best": float("inf"), "path": Path("a/b"), "seeds": (0, 1)})
    {'score': None, 'best': 'Infinity', 'path': 'a/b', 'seeds': [0, 1]}
    """
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else plain_json.plain(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "to_dict"):  # a data frame
        return plain(value.to_dict("records"))
    if hasattr(value, "item"):  # a number of numpy
        return plain(value.item())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)
