from pathlib import PurePosixPath

import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .columns import EPOCH, POSITION

TRUTH = "ground_truth.csv"
SAMPLE = dict(zip(POSITION, (37.904611315634504, -86.48107806249548), strict=True))


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    drives = raw.folders("train")
    _, test_dates = hold_out(sorted({date(drive) for drive in drives}), 0.1)
    tests = [drive for drive in drives if date(drive) in test_dates]
    truths = [name for drive in tests for name in raw.names(f"train/{drive}") if name.endswith(f"/{TRUTH}")]
    if {name.split("/")[1] for name in truths} != set(tests):
        raise DownloadError(f"some drives have no {TRUTH}; is the download complete?")
    answers = pd.concat(positions(raw, name) for name in sorted(truths, key=lambda name: name.split("/")))
    # The log of the reference receiver contains the true positions. v1 leaves it in the test drives.
    withheld = (TRUTH, "span_log.nmea") if edition == "v2" else (TRUTH,)  # v2 fixes reference-receiver-log
    out = Preparation()
    for drive in drives:
        for name, member in raw.tree(f"train/{drive}"):
            if drive not in tests:
                out.public.copy(f"train/{drive}/{name}", member)
            elif PurePosixPath(name).name not in withheld:
                out.public.copy(f"test/{drive}/{name}", member)
    out.public.copy_tree("metadata", raw, "metadata")
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(**SAMPLE))
    return out


def positions(raw: Download, name: str) -> pd.DataFrame:
    drive, phone = PurePosixPath(name).parts[-3:-1]
    rows = raw.read_csv(name, float_precision=None).assign(tripId=f"{drive}-{phone}")
    return rows[[*EPOCH, *POSITION]]


def date(drive: str) -> str:
    """Return the date of a drive such as 2020-05-15-US-MTV-1, with two digits for month and day."""
    parts = drive.split("-")[:3]
    if len(parts) < 3 or not all(part.isdigit() for part in parts):
        raise DownloadError(f"the folder train/{drive} does not begin with a date; download it again")
    return "{}-{:0>2}-{:0>2}".format(*parts)
