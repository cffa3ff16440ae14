"""Probes of Denoising Dirty Documents."""

from __future__ import annotations

import io
import zipfile

import numpy as np
from PIL import Image

from competitions.preparing.download import Download
from tests.competitions.issues._probe import World, remade


def test_texts_shared(v1: World, v2: World) -> None:
    """The clean page of a test page is among the clean training pages: ten pages, each with six kinds of stains."""
    random = np.random.default_rng(0)
    clean = random.integers(0, 255, (10, 8, 12), dtype=np.uint8)
    dirty = {f"train/{n}.png": png(clean[n % 10] // 2 + n) for n in range(60)}
    answers = {f"train_cleaned/{n}.png": png(clean[n % 10]) for n in range(60)}
    worlds = remade(v1, {"train.zip": archive(dirty), "train_cleaned.zip": archive(answers)})
    known = {edition: share_known(world) for edition, world in worlds.items()}
    assert known["v1"] > 0.9
    assert known["v2"] == 0


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's clean page of the same name has the pixels of v1's test page, and seldom those of v2's."""
    clean = v1.kaggle.archive("train_cleaned.zip")

    def looked_up(world: World) -> float:
        pages = world.truth.assign(page=world.truth["id"].str.partition("_")[0]).groupby("page")["value"]
        named = {f"{page}.png": values.to_numpy() for page, values in pages}
        return float(np.mean([same(clean, name, values) for name, values in named.items()]))

    assert looked_up(v1) == 1
    assert looked_up(v2) < 0.5


def same(clean: Download, name: str, values: np.ndarray) -> bool:
    if f"train_cleaned/{name}" not in clean.container.sizes:
        return False
    with clean.open_file(f"train_cleaned/{name}") as file:
        return np.array_equal(np.asarray(Image.open(file).convert("L")).ravel(), (values * 255).round())


def share_known(world: World) -> float:
    """The share of test pages whose right pixels are those of a clean training page."""
    pages = (world.public / "train_cleaned").iterdir()
    seen = {np.asarray(Image.open(page).convert("L")).tobytes() for page in pages}
    truth = world.truth.assign(page=world.truth["id"].str.partition("_")[0])
    asked = truth.groupby("page")["value"].apply(lambda values: (values * 255).round().astype(np.uint8).to_numpy())
    return float(np.mean([page.tobytes() in seen for page in asked]))


def png(values: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(values.astype(np.uint8)).save(content, "PNG")
    return content.getvalue()


def archive(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as target:
        for name, data in files.items():
            target.writestr(name, data)
    return content.getvalue()
