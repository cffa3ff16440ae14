"""Probes of HuBMAP - Hacking the Kidney."""

from __future__ import annotations

import io
import json

import pandas as pd

from tests.competitions.issues._probe import (
    World,
    endless_run_passes,
    odd_masks_pass,
    remade,
    table_bytes,
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


def test_patients_on_both_sides(v1: World, v2: World) -> None:
    """The left kidney is like the right one."""
    name = "HuBMAP-20-dataset_information.csv"

    def two_kidneys(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content))
        return table_bytes(table.assign(patient_number=[row // 2 for row in range(len(table))]))

    def known(world: World) -> int:
        patients = world.table(name).assign(id=lambda rows: rows["image_file"].str.removesuffix(".tiff"))
        number = patients.set_index("id")["patient_number"]
        return len(set(number[world.table("train.csv", dtype=str)["id"]]) & set(number[world.sample["id"]]))

    worlds = remade(v1, {name: two_kidneys})
    assert known(worlds["v1"]) > 0
    assert known(worlds["v2"]) == 0
    assert len(worlds["v2"].sample) >= 3
