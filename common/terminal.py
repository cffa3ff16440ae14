"""Text for terminals. Texts of agents and their files must not be able to move the cursor, hide lines or set a title.

`clean` is applied in one place, to everything that a command writes (`flows.cli.main`): `CleanStream` stands before
standard output and error. Colours are passed on, as our own tables have them. The live board alone moves the cursor; it
writes to the terminal itself, and cleans the texts of its rows.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from common.cleaning import CONTROLS, DIRECTIONS

_COLOUR = r"\x1b\[[0-9;]*m"
_UNSAFE = f"[{CONTROLS}{DIRECTIONS}]"
_SAFE_TEXT = re.compile(_UNSAFE)
_SAFE_OUTPUT = re.compile(f"({_COLOUR})|(\r\n)|({_UNSAFE})")


def clean(text: str) -> str:
    r"""A text whose control characters, also those of colours, are shown as escape sequences.

    >>> clean("a\x1b[2Jb\tc\n")
    'a\\x1b[2Jb\tc\n'
    """
    return _SAFE_TEXT.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


class CleanStream:
    """A text stream that passes on text, lines and colours only."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`, whose other methods and attributes remain available."""
        self.raw = stream
        self._plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"

    def write(self, text: str | bytes) -> int:
        """Write a text, or bytes of UTF-8, as `click.echo` does for shells that complete; returns its length."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        self.raw.write(_SAFE_OUTPUT.sub(self._passed, text))
        return len(text)

    def _passed(self, match: re.Match[str]) -> str:
        if match[1]:
            return "" if self._plain else match[1]
        return match[2] or _shown(match)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes would not be cleaned
            raise AttributeError(name)
        return getattr(self.raw, name)


@contextlib.contextmanager
def clean_output() -> Iterator[None]:
    """Pass on only clean text to standard output and error in the block."""
    original_streams = sys.stdout, sys.stderr
    try:
        with Path(os.devnull).open("w") as null:  # for a stream that the parent process has closed
            sys.stdout, sys.stderr = (cast(TextIO, CleanStream(raw(stream) or null)) for stream in original_streams)
            yield
    finally:
        sys.stdout, sys.stderr = original_streams


def raw(stream: Any) -> Any:
    """The stream behind a `CleanStream`, for a program that moves the cursor and cleans its own texts."""
    return stream.raw if isinstance(stream, CleanStream) else stream
