"""Probes of ALASKA2 Image Steganalysis."""

from __future__ import annotations

from random import Random

from tests.competitions.issues._probe import (
    World,
)


def test_answers_from_a_constant_seed(v1: World, v2: World) -> None:
    """The answers follow from the number of test images alone."""
    random = Random(0)
    random.shuffle(list(range(len(v1.sample))))
    answers = []
    for _ in v1.sample["Id"]:
        covered = random.choice([True, False])
        answers.append(int(not covered))
        if not covered:
            random.choice(["JMiPOD", "JUNIWARD", "UERD"])
    assert v1.grade(v1.sample.assign(Label=answers)) == v1.grade(v1.perfect)
    assert v2.grade(v2.sample.assign(Label=answers)) < 0.75 * v2.grade(v2.perfect)
