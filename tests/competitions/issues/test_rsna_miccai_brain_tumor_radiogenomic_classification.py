"""Probes of RSNA-MICCAI Brain Tumor Radiogenomic Classification."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_faulty_patients(v1: World, v2: World) -> None:
    """The organisers said that the images of three patients are faulty."""

    def faulty(world: World) -> set[str]:
        patients = {path.name for part in ("train", "test") for path in (world.public / part).iterdir()}
        return patients & {"00109", "00123", "00709"}

    assert faulty(v1)
    assert not faulty(v2)
