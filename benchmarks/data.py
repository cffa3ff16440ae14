"""Generated downloads: content that compresses like pictures, and tables like those of competitions."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from competitions.tables.csv_text import text


def pictures_in_a_nested_zip(path: Path, count: int, seed: int = 0) -> int:
    """A download with labels.csv and images.zip, which holds `count` pictures of 5 to 40 KB; returns their bytes.

    The sizes are like those of dogs-vs-cats-redux (850 MB in 37,500 files). Like PNG and JPEG, the content does not
    compress; the archive deflates it nevertheless, as most do.
    """
    generator = random.Random(seed)
    images_zip = path.with_name("images.zip")
    total = 0
    with zipfile.ZipFile(images_zip, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(count):
            content = generator.randbytes(generator.randint(5_000, 40_000))
            total += len(content)
            archive.writestr(f"images/{number:06d}.png", content)
    labels = pd.DataFrame({"id": [f"{n:06d}" for n in range(count)], "label": np.arange(count) % 7})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as download:
        download.write(images_zip, "images.zip")
        download.writestr("labels.csv", labels.to_csv(index=False), zipfile.ZIP_DEFLATED)
    images_zip.unlink()
    return total


def folders_of_files(path: Path, folders: int, files: int, seed: int = 0) -> int:
    """A download that is a directory: `folders` folders of `files` files of 128 to 512 KB, and labels.csv.

    The sizes are like those of CT and MR slices, which come in one folder per patient.
    """
    generator = random.Random(seed)
    noise = memoryview(generator.randbytes(64 << 20))
    total = 0
    for folder in range(folders):
        scan_folder = path / "scans" / f"{folder:05d}"
        scan_folder.mkdir(parents=True)
        for number in range(files):
            size = generator.randint(128 << 10, 512 << 10)
            start = generator.randrange(len(noise) - size)
            total += size
            (scan_folder / f"{number}.dcm").write_bytes(noise[start : start + size])
    labels = pd.DataFrame({"id": [f"{n:05d}" for n in range(folders)], "label": np.arange(folders) % 7})
    labels.to_csv(path / "labels.csv", index=False)
    return total


def large_table(path: Path, size: int, seed: int = 0) -> int:
    """A download with train.csv of about `size` bytes: integers, floats, dates as text, words, gaps."""
    generator = np.random.default_rng(seed)
    words = np.array(["alpha", "beta, or not", 'say "gamma"', "delta", "", "naïve"], dtype=object)
    rows, written = 200_000, 0
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as download,
        download.open("train.csv", "w", force_zip64=True) as file,
    ):
        while written < size:
            start = generator.integers(0, 10**9)
            frame = pd.DataFrame(
                {
                    "key": np.char.add("k", (start + np.arange(rows)).astype(str)),
                    "count": generator.integers(0, 1000, rows),
                    "fare": generator.normal(11, 4, rows).round(2),
                    "longitude": generator.uniform(-74.3, -72.9, rows),
                    "latitude": generator.uniform(40.5, 41.7, rows).round(6),
                    "reading": np.where(generator.random(rows) < 0.05, np.nan, generator.normal(0, 1e-3, rows)),
                    "word": words[generator.integers(0, len(words), rows)],
                }
            )
            block = text(frame, {"index": False, "header": written == 0})
            file.write(block)
            written += len(block)
    return written
