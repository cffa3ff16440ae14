"""Probes of TensorFlow Speech Recognition Challenge."""

from __future__ import annotations

import io
from pathlib import PurePosixPath

import numpy as np
import py7zr

from tests.competitions.issues._probe import (
    World,
    drawn_places,
    known_by_place,
    shuffled_anew,
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


def test_order_from_a_constant_seed(v1: World, v2: World) -> None:
    """Places among the clips sorted by label tell the label: in v2 commands first, then unknown words and silence."""
    clips = original_names(v1)
    assert known_by_place(v1, drawn_places(len(clips), test_size=0.1)) == 1.0
    places = list(range(len(v2.sample)))
    order = [*sorted(set(v2.truth["label"]) - {"unknown", "silence"}), "unknown", "silence"]
    assert known_by_place(v2, places, order) < 0.5
    assert known_by_place(v2, shuffled_anew(places), order) < 0.5
