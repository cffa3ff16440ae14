"""What `test_image_quality` takes from test images: prints the table of docs/known_issues.md. Run as a module.

The images are the two photographs that scikit-learn comes with, as they are (JPEG), and in grey without loss (PNG).
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from competitions.preparing.download import Download
from competitions.preparing.images import encoded

QUALITIES = (75, 85, 90, 95)
PHOTOGRAPHS = ("china.jpg", "flower.jpg")
_SIGMA = 1.5  # pixels, as in the paper on SSIM
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


class Loss(NamedTuple):
    """The difference between an image and its original: 0, infinity and 1 for equal images."""

    mean: float
    """Mean absolute difference of channels, of 255."""
    psnr: float
    """Peak signal-to-noise ratio in dB: 10 log10(255² / mean squared difference)."""
    ssim: float
    """Structural similarity of the brightness (Wang et al., 2004), the mean over Gaussian windows."""


def loss(before: Image.Image, after: Image.Image) -> Loss:
    """The loss of `after`, which has the size of `before`."""
    first, second = (np.asarray(image, dtype=float) for image in (before, after))
    square = np.mean((first - second) ** 2)
    psnr = 10 * np.log10(255**2 / square) if square else np.inf
    brightness = [np.asarray(image.convert("L"), dtype=float) for image in (before, after)]
    return Loss(float(np.abs(first - second).mean()), float(psnr), ssim(*brightness))


def ssim(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Structural similarity of two images of one channel, with values from 0 to 255."""
    from scipy.ndimage import gaussian_filter

    def smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(gaussian_filter(values, _SIGMA))

    mean1, mean2 = smooth(first), smooth(second)
    var1, var2 = smooth(first**2) - mean1**2, smooth(second**2) - mean2**2
    covariance = smooth(first * second) - mean1 * mean2
    similarity = (2 * mean1 * mean2 + _C1) * (2 * covariance + _C2)
    return float(np.mean(similarity / ((mean1**2 + mean2**2 + _C1) * (var1 + var2 + _C2))))


def originals() -> Iterator[tuple[str, bytes]]:
    """The name and the file of each image."""
    import sklearn.datasets

    folder = Path(sklearn.datasets.__file__).parent / "images"
    for name in PHOTOGRAPHS:
        yield name, (folder / name).read_bytes()
        grey = io.BytesIO()
        Image.open(folder / name).convert("L").save(grey, "PNG")
        yield f"{Path(name).stem}.png", grey.getvalue()


def measured() -> Iterator[tuple[str, int, Loss]]:
    """The name of an image, a quality, and the loss."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.zip"
        files = dict(originals())
        with zipfile.ZipFile(raw, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        download = Download.open(str(raw))
        for name, content in files.items():
            for quality in QUALITIES:
                encoded_image = Image.open(io.BytesIO(b"".join(encoded(download, "", name, quality))))
                yield name, quality, loss(Image.open(io.BytesIO(content)), encoded_image)


def main() -> None:
    """Print the table."""
    print("| image | quality | mean difference of 255 | PSNR in dB | SSIM |\n|---|---|---|---|---|")
    for name, quality, image_loss in measured():
        print(f"| {name} | {quality} | {image_loss.mean:.2f} | {image_loss.psnr:.1f} | {image_loss.ssim:.3f} |")


if __name__ == "__main__":
    main()
