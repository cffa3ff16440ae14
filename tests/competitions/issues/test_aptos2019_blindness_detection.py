"""Probes of APTOS 2019 Blindness Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
    names_are_known,
)


def test_grades_by_position(v1: World, v2: World) -> None:
    """A grade that does not exist counts as one step above the highest, whatever the number."""
    grades = (5, 9, 1_000)
    assert len({v1.grade(cell(v1.perfect, "diagnosis", grade)) for grade in grades}) == 1
    assert all("outside [0, 4]" in v2.refusal(cell(v2.perfect, "diagnosis", grade)) for grade in grades)


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "id_code", v1.kaggle.read_csv("train.csv")["id_code"])
