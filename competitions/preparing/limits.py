"""Limits on the functions of competitions that write the files of a dataset themselves; see `written_files`."""

from __future__ import annotations

from pathlib import Path

# Global, because they apply far below the code that reads settings. This module is cheap to import.
time_limit: float = 24 * 3600.0
"""The most seconds that such a function may take."""
scratch: Path | None = None
"""Where its temporary directory is created; None: the usual place."""


def configure(seconds: float, folder: Path) -> None:
    """Set both for this process."""
    global time_limit, scratch
    time_limit, scratch = seconds, folder
