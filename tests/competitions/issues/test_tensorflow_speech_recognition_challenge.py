"""Probes of TensorFlow Speech Recognition Challenge."""

from __future__ import annotations

import io
from pathlib import PurePosixPath

import numpy as np
import py7zr

from tests.competitions.issues._probe import (
    World,
)


def original_names(world: World) -> dict[bytes, str]:
    """The name of each of Kaggle's clips by its content: what an ear recognises, a miniature looks up."""
    with py7zr.SevenZipFile(io.BytesIO(world.kaggle.read_bytes("train.7z"))) as archive:
        archive.extractall(world.scratch)
    folder = world.scratch / "train/audio"
    return {path.read_bytes(): path.relative_to(folder).as_posix() for path in folder.rglob("*.wav")}


def test_speakers_on_both_sides(v1: World, v2: World) -> None:
    """The voice of a test clip is known from other words."""
    clips = original_names(v1)

    def known(world: World) -> float:
        train = {path.name.split("_")[0] for path in world.public.glob("train/audio/*/*.wav")}
        found = (clips.get(path.read_bytes()) for path in world.public.glob("test/audio/*.wav"))
        test = [PurePosixPath(name).name for name in found if name]
        return float(np.mean([name.split("_")[0] in train for name in test]))

    assert known(v1) > 0
    assert known(v2) == 0


def test_noise_recordings_in_test(v1: World, v2: World) -> None:
    """A recording of a minute among clips of a second is noise."""
    clips = original_names(v1)

    def noise(world: World) -> int:
        found = (clips.get(path.read_bytes(), "") for path in world.public.glob("test/audio/*.wav"))
        return sum("_background_noise_" in name for name in found)

    assert noise(v1) > 0
    assert noise(v2) == 0


def test_folder_names_as_labels(v1: World, v2: World) -> None:
    """Kaggle's answers, ten commands, unknown and silence, are wrong for two thirds of the words."""
    commands = {"yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"}
    clips = original_names(v1)

    def as_on_kaggle(world: World) -> float:
        paths = [world.public / "test/audio" / name for name in world.sample["fname"]]
        words = [PurePosixPath(clips.get(path.read_bytes(), "silence/")).parts[0] for path in paths]
        labels = [word if word in commands | {"silence"} else "unknown" for word in words]
        return world.grade(world.sample.assign(label=labels))

    assert as_on_kaggle(v1) < 0.7
    assert as_on_kaggle(v2) == 1.0
    assert "classes" in v2.refusal(v2.sample.assign(label="seven"))
    assert v2.truth["label"].tolist() != sorted(v2.truth["label"]), "numbers of clips do not tell their labels"
