"""What is global in a process, set from the settings."""

from __future__ import annotations

import os

from competitions import registry


def apply_settings() -> None:
    """Set what is global in this process. May be called any number of times."""
    # An id alone must mean the same competition in every module of a process.
    registry.extend(filter(None, os.environ.get("MLEBENCH_COMPETITIONS", "").split(os.pathsep)))
