"""Probes of Billion Word Imputation."""

from __future__ import annotations

import io
import zipfile

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
    cell,
    remade,
)


def test_white_space(v1: World, v2: World) -> None:
    """Whoever finds every missing word of a question still pays for blanks that the question does not show."""
    lines = ["one two three four", *(f"the  number   is {number} of  many" for number in range(400))]
    worlds = remade(v1, {"train_v2.txt.zip": corpus(lines)}, total_lines=len(lines))

    def found_every_word(world: World) -> pd.DataFrame:
        return world.perfect.assign(sentence=[" ".join(text.split()) for text in world.perfect["sentence"]])

    assert worlds["v1"].grade(found_every_word(worlds["v1"])) > 0
    assert worlds["v2"].grade(found_every_word(worlds["v2"])) == 0


def test_empty_sentences(v1: World, v2: World) -> None:
    """One sentence left open costs v1's agent the whole submission, v2's the length of the sentence."""
    assert v1.refusal(cell(v1.perfect, "sentence", ""))
    sentences = v2.perfect["sentence"]
    assert v2.grade(cell(v2.perfect, "sentence", "")) == pytest.approx(len(sentences[0]) / len(sentences))


def test_copies_on_both_sides(v1: World, v2: World) -> None:
    """A question whose words occur in the training text in the same order, with one between them, is answered."""
    lines = [f"this is the sentence {number % 300} of many" for number in range(900)]
    worlds = remade(v1, {"train_v2.txt.zip": corpus(lines)}, total_lines=len(lines))

    def train(world: World) -> list[str]:
        with zipfile.ZipFile(world.public / "train_v2.txt.zip") as archive:
            return archive.read("train_v2.txt").decode().splitlines()

    def answered(world: World) -> float:
        return float(world.perfect["sentence"].isin(train(world)).mean())

    assert answered(worlds["v1"]) > 0.9
    assert answered(worlds["v2"]) == 0
    (counted,) = worlds["v2"].left_out
    assert [counted.count, counted.of] == [
        len(train(worlds["v1"])) - len(train(worlds["v2"])),
        len(train(worlds["v1"])),
    ]


def corpus(lines: list[str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("train_v2.txt", "\n".join(lines) + "\n")
    return content.getvalue()
