"""Copies of test images are found among the training images, and other pictures that look much like them are not."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw, ImageEnhance
from sklearn.datasets import load_sample_images

from competitions.preparing.copies import without_copies
from competitions.preparing.download import Download

Picture = Image.Image
Draw = Callable[[int], Picture]


def grainy(picture: Picture, grain: np.random.Generator) -> Picture:
    pixels = np.asarray(picture.convert("RGB"), float) + grain.normal(0, 3, (picture.height, picture.width, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def leaf(seed: int) -> Picture:
    """A leaf with veins and spots on a plain ground; leaves of other seeds have almost the same outline."""
    random = np.random.default_rng(seed)
    picture = Image.new("RGB", (640, 480), (205, 203, 198))
    draw = ImageDraw.Draw(picture)
    wide, high = 210 + 12 * random.standard_normal(), 90 + 5 * random.standard_normal()
    x, y = 320 + 5 * random.standard_normal(), 240 + 5 * random.standard_normal()
    draw.ellipse((x - wide, y - high, x + wide, y + high), fill=(70, 120, 50))
    draw.line((x - wide, y, x + wide, y), fill=(110, 150, 90), width=4)
    for number in range(-4, 5):
        foot, long = x + 40 * number + 10 * random.standard_normal(), 30 + 6 * random.standard_normal()
        draw.line((foot, y, foot + 25, y - long), fill=(100, 145, 85), width=2)
        draw.line((foot, y, foot + 25, y + long), fill=(100, 145, 85), width=2)
    for _ in range(random.integers(2, 9)):
        a, b, r = x + random.uniform(-0.6, 0.6) * wide, y + random.uniform(-0.5, 0.5) * high, random.uniform(4, 14)
        draw.ellipse((a - r, b - r, a + r, b + r), fill=(120, 85, 40))
    return grainy(picture, random)


def disc(seed: int) -> Picture:
    """A bright disc on a dark ground."""
    random = np.random.default_rng(seed)
    picture = Image.new("L", (512, 512), 8)
    (x, y), r = random.uniform(200, 312, 2), random.uniform(40, 60)
    ImageDraw.Draw(picture).ellipse((x - r, y - r, x + r, y + r), fill=180)
    return grainy(picture, random)


def plain(seed: int) -> Picture:
    """Nothing but a grey."""
    random = np.random.default_rng(seed)
    return grainy(Image.new("L", (400, 300), int(random.integers(20, 235))), random)


def scene(seed: int) -> Picture:
    """A part of a photograph."""
    random = np.random.default_rng(seed)
    photograph = load_sample_images().images[seed % 2]
    x, y = int(random.integers(0, 340)), int(random.integers(0, 207))
    return Image.fromarray(photograph[y : y + 220, x : x + 300]).resize((600, 440))


def scaled(picture: Picture, factor: float) -> Picture:
    return picture.resize((int(picture.width * factor), int(picture.height * factor)), Image.Resampling.LANCZOS)


COPIES: dict[str, Callable[[Picture], Picture]] = {
    "encoded anew": lambda picture: picture,
    "smaller": lambda picture: scaled(picture, 0.3),
    "larger": lambda picture: scaled(picture, 1.7),
    "cropped": lambda picture: picture.crop((2, 2, picture.width - 2, picture.height - 2)),
    "brighter": lambda picture: ImageEnhance.Brightness(picture).enhance(1.15),
    "greyer": lambda picture: ImageEnhance.Contrast(picture).enhance(0.8),
    "without colours": lambda picture: picture.convert("L"),
}
TEST, OTHERS = range(12), range(100, 118)


def encoded(picture: Picture, quality: int = 90) -> bytes:
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=quality)
    return content.getvalue()


def left(folder: Path, files: dict[str, bytes]) -> set[str]:
    """The training images that stay; test images have names that begin with t."""
    with zipfile.ZipFile(folder / "raw.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.jpg", content)
    train, test = (
        pd.DataFrame({"id": [name for name in files if name.startswith("t") == is_test]}) for is_test in (False, True)
    )
    return set(without_copies(train, test, Download.open(str(folder / "raw.zip")), "{}.jpg")["id"])


@pytest.mark.parametrize("draw", [leaf, disc, scene])
def test_copies_are_left_out_and_pictures_that_look_alike_stay(draw: Draw, tmp_path: Path) -> None:
    shown = {seed: draw(seed) for seed in TEST}
    files = {f"t{seed}": encoded(picture) for seed, picture in shown.items()}
    kinds = list(COPIES)
    copies = {f"copy {seed} {kinds[seed % len(kinds)]}": seed for seed in TEST}
    files |= {name: encoded(COPIES[kinds[seed % len(kinds)]](shown[seed]), 60) for name, seed in copies.items()}
    files |= {f"other {seed}": encoded(draw(seed)) for seed in OTHERS}
    stay = left(tmp_path, files)
    assert not stay & copies.keys()
    assert len(stay) >= 0.9 * len(OTHERS), "most of them, however much they look alike"


def test_pictures_that_show_nothing_are_copies_only_if_their_bytes_are_the_same(tmp_path: Path) -> None:
    files = {f"t{seed}": encoded(plain(seed)) for seed in TEST} | {
        f"same {seed}": encoded(plain(seed)) for seed in TEST
    }
    files |= {f"other {seed}": encoded(plain(seed)) for seed in OTHERS}
    files |= {"t none": b"no image", "none": b"no image", "other none": b"no image either"}
    assert left(tmp_path, files) == {f"other {seed}" for seed in OTHERS} | {"other none"}


@pytest.mark.parametrize("sides", [("", "t"), ("t", "")])
def test_one_side_may_be_empty(sides: tuple[str, str], tmp_path: Path) -> None:
    files = {f"{sides[0]}{seed}": encoded(disc(seed)) for seed in range(2)}
    assert left(tmp_path, files) == ({"0", "1"} if sides[0] == "" else set())
