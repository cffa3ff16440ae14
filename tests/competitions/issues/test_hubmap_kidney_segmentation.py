"""Probes of HuBMAP - Hacking the Kidney."""

from __future__ import annotations

import json

from tests.competitions.issues._probe import (
    World,
    endless_run_passes,
    odd_masks_pass,
)


def test_test_outlines_public(v1: World, v2: World) -> None:
    """Every test image has its outlines beside it, from which the masks were made."""
    truth = {name: v1.kaggle.read_json(f"train/{name}.json") for name in v1.sample["id"]}

    def outlines(world: World) -> int:
        files = [world.public / "test" / f"{name}.json" for name in truth]
        return sum(path.exists() and json.loads(path.read_text()) == truth[path.stem] for path in files)

    assert outlines(v1) == len(truth)
    assert outlines(v2) == 0


def test_odd_token_counts(v1: World, v2: World) -> None:
    odd_masks_pass(v1, v2, "predicted")


def test_runs_beyond_the_image(v1: World, v2: World) -> None:
    endless_run_passes(v1, v2, "predicted")
