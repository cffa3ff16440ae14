"""Probes of Lyft 3D Object Detection for Autonomous Vehicles."""

from __future__ import annotations

import json
from collections import Counter

from tests.competitions.issues._probe import (
    World,
    cell,
)

ASKED = 3  # samples that the attacker asks about
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
