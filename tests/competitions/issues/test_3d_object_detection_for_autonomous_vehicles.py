"""Probes of Lyft 3D Object Detection for Autonomous Vehicles."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.competitions.issues._probe import (
    World,
    cell,
)

ASKED = 3  # samples that the attacker asks about
LINKS = {
    "scene": {"log_token": "log", "first_sample_token": "sample", "last_sample_token": "sample"},
    "sample": {"scene_token": "scene"},
    "sample_data": {
        "sample_token": "sample",
        "ego_pose_token": "ego_pose",
        "calibrated_sensor_token": "calibrated_sensor",
    },
    "calibrated_sensor": {"sensor_token": "sensor"},
}
TRACES = ("token", "filename", "timestamp", "vehicle", "date_captured", "logfile", "name")
"""Fields that name a drive, a moment or a file."""
BROKEN = "0.5 1 1 1 0 0 0 0 {}"  # a box without a size


def test_map_lists_test_logs(v1: World, v2: World) -> None:
    """The devkit finds the map of a scene by its log: the maps of v1's training data name none of their logs."""

    def logs_without_map(world: World) -> set[str]:
        folder = world.public / "train_data"
        logs = {log["token"] for log in json.loads((folder / "log.json").read_text())}
        return logs - {
            token for found in json.loads((folder / "map.json").read_text()) for token in found["log_tokens"]
        }

    assert logs_without_map(v1)
    assert not logs_without_map(v2)


def test_repeated_poses(v1: World, v2: World) -> None:
    """Joining files with their poses by token multiplies rows in v1."""

    def most_copies(world: World) -> int:
        poses = json.loads((world.public / "test_data/ego_pose.json").read_text())
        return max(Counter(pose["token"] for pose in poses).values())

    assert most_copies(v1) > 1
    assert most_copies(v2) == 1


def test_broken_boxes_by_class(v1: World, v2: World) -> None:
    """Asking the validation service about broken boxes tells which classes are in each test sample."""
    classes = sorted({label for boxes in v1.table("train.csv")["PredictionString"] for label in boxes.split()[7::8]})

    def refused(world: World) -> set[tuple[int, str]]:
        rows = range(ASKED)
        return {
            (row, label)
            for row in rows
            for label in classes
            if not world.accepts(cell(world.sample, "PredictionString", BROKEN.format(label), row))
        }

    true = {
        (row, label)
        for row, boxes in enumerate(v1.perfect["PredictionString"][:ASKED])
        for label in boxes.split(" ")[8::9]
    }
    everything = {(row, label) for row in range(ASKED) for label in classes}
    assert true != everything
    assert refused(v1) == true & everything
    assert refused(v2) == everything  # which tells nothing


def test_original_tokens(v1: World, v2: World) -> None:
    """Kaggle's files have the boxes of v1's test samples by their tokens, names and times, and none of v2's."""
    known = v1.kaggle.read_csv("train.csv").set_index("Id")["PredictionString"]

    def looked_up(world: World) -> float:
        return world.grade(world.sample.assign(PredictionString=world.sample["Id"].map(known).map(certain)))

    def told(world: World) -> set[str]:
        found = set()
        for table in (*LINKS, "log", "ego_pose"):
            kaggle, own = (records_of(world, part, table) for part in ("kaggle", "test"))
            public = {(field, str(each[field])) for each in kaggle for field in TRACES if each.get(field)}
            found |= {field for each in own for field in TRACES if (field, str(each.get(field))) in public}
        return found

    assert looked_up(v1) == 1.0
    assert looked_up(v2) == 0.0
    assert told(v1) >= {"token", "filename", "timestamp", "vehicle", "date_captured"}
    assert told(v2) == set()
    for table, links in LINKS.items():  # under its new tokens, everything is linked as before
        for field, target in links.items():
            tokens = {each["token"] for each in records_of(v2, "test", target)}
            links_of = [each[field] for each in records_of(v2, "test", table) if each.get(field)]
            assert links_of, (table, field)
            assert set(links_of) <= tokens, (table, field)
    files = {each["filename"].rpartition("/")[2] for each in records_of(v2, "test", "sample_data")}
    assert files == {path.name for folder in ("images", "lidar") for path in (v2.public / f"test_{folder}").iterdir()}
    times = [sorted(each["timestamp"] for each in records_of(world, "test", "sample")) for world in (v1, v2)]
    assert times[1][0] == 0.0
    assert len(times[0]) == len(times[1])


def records_of(world: World, part: str, table: str) -> list[dict[str, Any]]:
    """A table of Kaggle's training data, or of a part of the public files."""
    if part == "kaggle" or table == "sensor":
        return list(world.kaggle.read_json(f"train_data/{table}.json"))
    return list(json.loads((world.public / f"{part}_data/{table}.json").read_text()))


def certain(boxes: object) -> str:
    """Boxes as a submission has them, with a confidence."""
    tokens = boxes.split(" ") if isinstance(boxes, str) else []
    return " ".join(" ".join(["1.0", *tokens[start : start + 8]]) for start in range(0, len(tokens), 8))
