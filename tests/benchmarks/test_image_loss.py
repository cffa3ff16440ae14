"""What docs/known_issues.md says about the loss of `test_image_quality` is what its command measures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.image_loss import loss, measured, ssim

DOCUMENT = Path(__file__).parents[2] / "docs" / "known_issues.md"
ROW = re.compile(r"^\| (\w+\.(?:jpg|png)) \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


def test_the_table_is_what_is_measured() -> None:
    stated = {(name, int(quality)): list(map(float, numbers)) for name, quality, *numbers in ROW.findall(text())}
    found = {(name, quality): list(each) for name, quality, each in measured()}
    assert found.keys() == stated.keys()
    for key, values in stated.items():  # other versions of libjpeg round differently
        assert found[key] == pytest.approx(values, rel=0.03), key


def text() -> str:
    return DOCUMENT.read_text("utf-8")


def test_the_measures_are_those_of_their_definitions() -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    same = Image.fromarray(grey)
    assert loss(same, same) == (0.0, np.inf, pytest.approx(1.0))
    found = loss(same, Image.fromarray(grey + 5))
    assert found.mean == 5.0
    assert found.psnr == pytest.approx(10 * np.log10(255**2 / 25))
    flat = np.full((8, 8), 100.0)
    assert ssim(flat, flat + 50) == pytest.approx((2 * 100 * 150 + 6.5025) / (100**2 + 150**2 + 6.5025))
