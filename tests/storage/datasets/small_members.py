"""Notes which small members of zip archives are read for an archive that is built of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from competitions.preparing.archives.zips import ZipContainer


def note_small_members(monkeypatch: pytest.MonkeyPatch, note: Callable[[Any, str], None]) -> None:
    """Call `note(container, name)` for each of them."""
    original = ZipContainer.checked_small

    def checked_small(self: ZipContainer, names: Iterable[str]) -> Iterator[Any]:
        for name in (names := list(names)):
            note(self, name)
        return original(self, names)

    monkeypatch.setattr(ZipContainer, "checked_small", checked_small)
