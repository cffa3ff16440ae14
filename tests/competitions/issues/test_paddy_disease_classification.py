"""Probes of "Paddy Doctor: Paddy Disease Classification"."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_unknown_labels_accepted(v1: World, v2: World) -> None:
    """Diseases that do not exist pass, and so does the sample submission with no label at all."""
    for value in ("cat", "", "blast "):
        assert v1.accepts(cell(v1.perfect, "label", value)), value
        assert "label" in v2.refusal(cell(v2.perfect, "label", value)), value
    assert set(v1.sample["label"]) == {""}
    assert v2.accepts(v2.sample)
