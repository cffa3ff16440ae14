"""Hold out whole batches of events.

The table of events (131 million rows) is read in frames of a million rows: once for the numbers of the batches, and
once for each derived table, with only the columns that it needs. This takes a few hundred MB of memory.
"""

from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .columns import ANGLES

PULSES = ["batch_id", "event_id", "first_pulse_index", "last_pulse_index"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    batch_ids = [rows["batch_id"].unique() for rows in raw.read_parquet("train_meta.parquet", ["batch_id"])]
    train, test = hold_out(pd.unique(np.concatenate(batch_ids)), 0.1)
    out = Preparation()
    out.public.table("train_meta.parquet", _events(raw, train, PULSES + ANGLES))
    out.public.table("test_meta.parquet", _events(raw, test, PULSES))
    out.private.table("test.csv", (rows[["event_id", *ANGLES]] for rows in _events(raw, test, PULSES[:2] + ANGLES)))
    sample = (rows[["event_id"]].assign(azimuth=1, zenith=1) for rows in _events(raw, test, PULSES[:2]))
    out.public.table("sample_submission.csv", sample)
    out.public.copy("sensor_geometry.csv", raw.file("sensor_geometry.csv"))
    files = {int(PurePosixPath(name).stem.rpartition("_")[2]): name for name in raw.glob("train/*.parquet")}
    missing = {*train, *test} - set(files)
    if missing:
        raise DownloadError(f"the download has no train/batch_{min(missing)}.parquet; is it complete?")
    for part, batches in (("train", train), ("test", test)):
        names = [PurePosixPath(files[number]).name for number in batches]
        out.public.copies((f"{part}/{name}", raw.file(f"train/{name}")) for name in names)
    return out


def _events(raw: Download, batches: Collection[int], columns: list[str]) -> Iterator[pd.DataFrame]:
    for rows in raw.read_parquet("train_meta.parquet", columns):
        yield rows[rows["batch_id"].isin(batches)]
