"""Probes of Cassava Leaf Disease Classification."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from tests.competitions.issues._probe import (
    World,
    a_word_makes_everything_wrong,
    names_are_known,
)

RECORD = re.compile(rb"image_name\x12.\n.\n.(?P<image>[^\n]*?\.jpg)|target\x12.\x1a.\n.(?P<label>.)", re.DOTALL)


def test_labels_in_test_records(v1: World, v2: World) -> None:
    """The records of the test images carry a field `target`."""

    def accuracy(world: World) -> float:
        found: dict[str, int] = {}
        for path in sorted(world.public.glob("test_tfrecords/*")):
            for payload in records(path.read_bytes()):
                fields = [match.groupdict() for match in RECORD.finditer(payload)]
                image = next(field["image"] for field in fields if field["image"])
                found[image.decode()] = next(field["label"][0] for field in fields if field["label"])
        return world.grade(world.sample.assign(label=world.sample["image_id"].map(found).fillna(4).astype(int)))

    assert accuracy(v1) == 1.0
    assert accuracy(v2) == v2.grade(v2.sample)


def records(content: bytes) -> Iterator[bytes]:
    """The payloads of a TFRecord file."""
    while content:
        (length,) = struct.unpack_from("<Q", content)
        yield content[12 : 12 + length]
        content = content[16 + length :]


def test_text_scores_zero(v1: World, v2: World) -> None:
    a_word_makes_everything_wrong(v1, v2, "label")


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "image_id", v1.kaggle.read_csv("train.csv")["image_id"])
