"""Files that are small, and are read as large ones are."""

from __future__ import annotations

import pytest

from competitions.tables import columns, pieces


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is read in columns, in pieces of a few rows."""
    monkeypatch.setattr(columns, "SMALL", 0)
    monkeypatch.setattr(pieces, "PIECE", 256)
    monkeypatch.setattr(columns, "_MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(columns, "_SLACK_BYTES", 16)
    monkeypatch.setattr(pieces, "_MAX_ROW_BYTES", 4096)
