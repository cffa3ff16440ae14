"""Competitions in the published format as forks write them (`tests/forks`), with small downloads."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

FORKS = Path(__file__).parent / "forks"
IDS = ("cell-types", "hourly-load", "signal-strength")


def copy_forks(directory: Path) -> Path:
    """The folders, as a directory for `MLEBENCH_COMPETITIONS`."""
    shutil.copytree(FORKS, directory, ignore=shutil.ignore_patterns("__pycache__", "__init__.py"))
    return directory


def write_downloads(directory: Path) -> Path:
    """The downloads, as a directory for `--raw-dir`: an archive with an archive, a directory, and a plain archive."""
    directory.mkdir(parents=True)
    _hourly_load(directory / "hourly-load.zip")
    _cell_types(directory / "cell-types.zip")
    _signal_strength(directory / "signal-strength")
    return directory


def _hourly_load(path: Path) -> None:
    random = np.random.default_rng(1)
    hours = pd.date_range("2021-01-01", periods=480, freq="h")
    load = 100 + 30 * np.sin(np.arange(480) / 24 * 2 * np.pi) + random.normal(0, 2, 480)
    tables = {
        "load.csv": pd.DataFrame({"timestamp": hours, "load": load.round(3)}),
        "weather.csv": pd.DataFrame({"timestamp": hours, "temperature": random.normal(10, 5, 480).round(1)}),
        "holidays.csv": pd.DataFrame({"date": ["2021-01-01"], "name": ["New Year"]}),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, table in tables.items():
            archive.writestr(name, table.to_csv(index=False))


def _cell_types(path: Path) -> None:
    random, inner = np.random.default_rng(2), io.BytesIO()
    rows = [(f"cell{number:03d}", sorted(set(random.choice(["alpha", "beta", "delta"], 2)))) for number in range(60)]
    with zipfile.ZipFile(inner, "w") as images:
        for name, _ in rows:
            images.writestr(f"images/{name}.png", random.bytes(200))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.zip", inner.getvalue())
        archive.writestr("labels.json", json.dumps([{"cell": name, "types": types} for name, types in rows]))


def _signal_strength(folder: Path) -> None:
    random = np.random.default_rng(3)
    table = pd.DataFrame({"Id": range(300), "lat": random.uniform(0, 1, 300), "lon": random.uniform(0, 1, 300)})
    table["rssi"] = (-60 - 40 * np.hypot(table["lat"] - 0.5, table["lon"] - 0.5)).round(2)
    (folder / "data").mkdir(parents=True)
    table.to_csv(folder / "data" / "measurements.csv", index=False)
