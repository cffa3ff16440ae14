"""Probes of Multi-modal Gesture Recognition."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from tests.competitions.issues._probe import World, cell, remade


def test_no_empty_sequence(v1: World, v2: World) -> None:
    """Nothing found in a recording is an answer; it costs as many edits as there are gestures."""
    gestures = v1.perfect["Sequence"].str.split().str.len()
    nothing = cell(v1.perfect, "Sequence", "")
    assert v1.refusal(nothing)
    assert v2.grade(nothing) == pytest.approx(gestures[0] / gestures.sum())


def test_labels_in_test_samples(v1: World, v2: World) -> None:
    """The structure that holds the skeletons of a test sample also names its gestures, in their order."""
    sequences = v1.kaggle.read_csv("training.csv", dtype=str).set_index("Id")["Sequence"]
    samples = {sample: matlab(sequences[sample].split()) for sample in v1.sample["Id"]}
    worlds = remade(v1, {"training4.tar.gz": packed(samples)})

    def right(world: World) -> float:
        """The share of test samples whose gestures are found."""
        found = {sample: gestures for sample, (gestures, _) in read(world).items()}
        return float(np.mean([found[sample] == sequences[sample] for sample in samples]))

    assert right(worlds["v1"]) == 1
    assert right(worlds["v2"]) == 0
    skeletons = [{sample: frames for sample, (_, frames) in read(world).items()} for world in worlds.values()]
    assert skeletons[0] == skeletons[1] != {}


def matlab(gestures: list[str]) -> bytes:
    labels = np.array([[(name, 1, 20)] for name in gestures], dtype=[("Name", "O"), ("Begin", "O"), ("End", "O")])
    out = io.BytesIO()
    savemat(out, {"Video": {"NumFrames": 3, "Frames": np.arange(9.0).reshape(3, 3), "Labels": labels}})
    return out.getvalue()


def packed(samples: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="w") as file, tarfile.open(fileobj=file, mode="w|") as archive:
        for sample, content in samples.items():
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w") as zipped:
                zipped.writestr(f"Sample0{sample}_data.mat", content)
                zipped.writestr(f"Sample0{sample}_audio.wav", b"sound")
            info = tarfile.TarInfo(f"Sample0{sample}.zip")
            info.size = len(inner.getvalue())
            archive.addfile(info, io.BytesIO(inner.getvalue()))
    return out.getvalue()


def read(world: World) -> dict[str, tuple[str, list[list[float]]]]:
    """The gestures and the skeletons of each public test sample."""
    return dict(samples_of(world))


def samples_of(world: World) -> Iterator[tuple[str, tuple[str, list[list[float]]]]]:
    with tarfile.open(world.public / "test.tar.gz") as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            with zipfile.ZipFile(io.BytesIO(content.read())) as sample:
                assert sample.read(next(name for name in sample.namelist() if name.endswith(".wav"))) == b"sound"
                video = loadmat(
                    io.BytesIO(sample.read(next(name for name in sample.namelist() if name.endswith(".mat"))))
                )
            names = [str(label["Name"][0]) for label in video["Video"]["Labels"][0, 0].ravel() if label]
            yield entry.name[-8:-4], (" ".join(names), video["Video"]["Frames"][0, 0].tolist())
