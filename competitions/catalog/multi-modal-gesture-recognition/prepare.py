import random

import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

GESTURES = range(1, 21)
UNCHANGED = [
    *(f"{part}{number}.tar.gz" for part in ("training", "validation") for number in (1, 2, 3)),
    *("devel01-40.7z", "valid_all_files_combined.7z", "sample_code_mmrgc.zip"),
]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    samples = raw.archive("training4.tar.gz").glob("*.zip")
    test_ids = sorted(name.removesuffix(".zip")[-4:] for name in samples)
    sequences = raw.read_csv("training.csv", dtype={"Id": str, "Sequence": str})
    is_test = sequences["Id"].isin(test_ids)
    if is_test.sum() != len(test_ids):
        raise DownloadError(f"training.csv has {is_test.sum()} of the {len(test_ids)} samples in training4.tar.gz")
    rng = random.Random(0)
    guesses = [" ".join(map(str, rng.sample(GESTURES, 20))) for _ in test_ids]
    out = Preparation()
    out.public.table("training.csv", sequences[~is_test])
    out.private.table("test.csv", sequences[is_test])
    out.public.table("test.csv", pd.DataFrame({"Id": test_ids}))
    out.public.table("randomPredictions.csv", pd.DataFrame({"Id": test_ids, "Sequence": guesses}))
    out.public.copy("test.tar.gz", raw.file("training4.tar.gz"))
    out.public.copies((name, raw.file(name)) for name in UNCHANGED)
    return out
