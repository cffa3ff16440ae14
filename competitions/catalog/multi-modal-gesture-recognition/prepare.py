import gzip
import io
import random
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
from scipy.io import loadmat, savemat

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

LABELLED = "training4.tar.gz"
GESTURES = range(1, 21)
UNCHANGED = [
    *(f"{part}{number}.tar.gz" for part in ("training", "validation") for number in (1, 2, 3)),
    *("devel01-40.7z", "valid_all_files_combined.7z", "sample_code_mmrgc.zip"),
]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    samples = raw.archive(LABELLED).glob("*.zip")
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
    if edition == "v1":  # the samples contain the answers (v2 fixes labels-in-test-samples)
        out.public.copy("test.tar.gz", raw.file(LABELLED))
    else:
        out.public.derived("test.tar.gz", unlabelled)
    out.public.copies((name, raw.file(name)) for name in UNCHANGED)
    return out


def unlabelled(raw: Download) -> Iterator[bytes]:
    """The samples of the test part without the labels in their Matlab files, in pieces of a sample."""
    pieces = io.BytesIO()
    with (
        raw.open_file(LABELLED) as file,
        tarfile.open(fileobj=file, mode="r|gz") as labelled,
        gzip.GzipFile(fileobj=pieces, mode="wb", compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as out,
    ):
        for entry in labelled:
            sample = labelled.extractfile(entry) if entry.name.endswith(".zip") else None
            if sample is None:
                continue
            content = without_labels(sample.read())
            info = tarfile.TarInfo(PurePosixPath(entry.name).name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
            yield pieces.getvalue()
            pieces.seek(0)
            pieces.truncate()
    yield pieces.getvalue()


def without_labels(sample: bytes) -> bytes:
    """The zip of a sample with the field `Labels` of the structures in its Matlab file emptied."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sample)) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".mat"):
                if not (emptied := emptied_matlab(content)):
                    continue
                content = emptied
            kept = zipfile.ZipInfo(entry.filename)
            kept.compress_type = entry.compress_type
            new.writestr(kept, content)
    return out.getvalue()


def emptied_matlab(content: bytes) -> bytes | None:
    """A Matlab file with empty fields `Labels`; None if it cannot be read, because it would be published unseen."""
    try:
        variables = loadmat(io.BytesIO(content))
    except Exception:  # scipy has no error of its own for damaged files
        return None
    variables = {name: value for name, value in variables.items() if not name.startswith("__")}
    for value in variables.values():
        if value.dtype.names and "Labels" in value.dtype.names:
            value["Labels"].fill(np.zeros((0, 0)))
    out = io.BytesIO()
    savemat(out, variables, do_compression=True)
    # The header is 116 bytes of text with the time of day.
    return b"MATLAB 5.0 MAT-file".ljust(116) + out.getvalue()[116:]
