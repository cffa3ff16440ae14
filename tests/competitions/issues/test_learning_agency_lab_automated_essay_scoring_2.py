"""Probes of Learning Agency Lab - Automated Essay Scoring 2.0."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_weights_by_position(v1: World, v2: World) -> None:
    """A score that does not exist counts as one step above the highest, whatever the number."""
    attempts = [cell(v1.perfect, "score", score) for score in (7, 9, 1_000)]
    assert len({v1.grade(attempt) for attempt in attempts}) == 1
    assert all("outside [1, 6]" in v2.refusal(attempt[["essay_id", "score"]]) for attempt in attempts)


def test_texts_in_answers(v1: World, v2: World) -> None:
    """Graders need ids and scores; v1 gives them the essays as well."""
    assert "full_text" in v1.private_columns
    assert v2.private_columns == ["essay_id", "score"]
