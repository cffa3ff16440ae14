"""The baseline of cases a to d: unpack everything, copy file by file, zip again, MD5 in small blocks, sequentially."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a zip."""
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    return folder


def md5(path: Path) -> str:
    """MD5 of a file in blocks of 4 KB."""
    digest = hashlib.md5()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(4096), b""):
            digest.update(block)
    return digest.hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """MD5 of every file below `folder`."""
    return {str(path.relative_to(folder)): md5(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def pictures(download: Path, out: Path, zipped: bool) -> dict[str, str]:
    """Case a, or b if `zipped`."""
    md5(download)
    raw = unpack(download, out / "raw")
    images = unpack(raw / "images.zip", raw) / "images"
    train, test = train_test_split(pd.read_csv(raw / "labels.csv", dtype={"id": str}), test_size=0.2, random_state=0)
    public = out / "public"
    tables(out, train, test)
    for name, rows in (("train", train), ("test", test)):
        (public / name).mkdir(parents=True)
        for picture_id in rows["id"]:
            shutil.copyfile(images / f"{picture_id}.png", public / name / f"{picture_id}.png")
        if zipped:
            shutil.make_archive(str(public / name), "zip", public / name)
    for name in ("train", "test") if zipped else ():  # at the end: see `benchmarks.folders`
        shutil.rmtree(public / name)
    return {**checksums(public), **checksums(out / "private")}


def folders(download: Path, out: Path) -> dict[str, str]:
    """Case d."""
    labels = pd.read_csv(download / "labels.csv", dtype={"id": str})
    train, test = train_test_split(labels, test_size=0.2, random_state=0)
    tables(out, train, test)
    for name, rows in (("train", train), ("test", test)):
        for scan_id in rows["id"]:
            shutil.copytree(download / "scans" / scan_id, out / "public" / name / scan_id)
    return {**checksums(out / "public"), **checksums(out / "private")}


def table(download: Path, out: Path) -> dict[str, str]:
    """Case c."""
    md5(download)
    raw = unpack(download, out / "raw")
    train, test = train_test_split(
        pd.read_csv(raw / "train.csv", float_precision="round_trip"), test_size=0.1, random_state=0
    )
    for part in ("public", "private"):
        (out / part).mkdir(parents=True)
    train.to_csv(out / "public" / "train.csv", index=False)
    test.drop(columns="fare").to_csv(out / "public" / "test.csv", index=False)
    test.to_csv(out / "private" / "test.csv", index=False)
    test[["key"]].assign(fare=0).to_csv(out / "public" / "sample_submission.csv", index=False)
    return {**checksums(out / "public"), **checksums(out / "private")}


def tables(out: Path, train: pd.DataFrame, test: pd.DataFrame) -> None:
    """The tables of the cases with pictures and with folders."""
    for part in ("public", "private"):
        (out / part).mkdir(parents=True)
    train.to_csv(out / "public" / "train.csv", index=False)
    test.to_csv(out / "private" / "test.csv", index=False)
    test.assign(label=0).to_csv(out / "public" / "sample_submission.csv", index=False)
