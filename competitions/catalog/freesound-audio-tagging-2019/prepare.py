"""The whole download is public. The answers are in a second archive, which was published later on Zenodo."""

import json
from pathlib import Path

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

CLASSES = json.loads((Path(__file__).parent / "classes.json").read_text())["classes"]
LABELS = "FSDKaggle2019.meta"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    archive = params["test_labels_archive"].removeprefix("raw/")
    if archive not in raw:
        raise DownloadError(
            f"the labels of the test clips are missing: fetch https://zenodo.org/records/3612637/files/{LABELS}.zip"
            f" and add it to the download as {archive} (for a zip, with `zip -0`)"
        )
    clips = raw.archive(archive).read_csv(f"{LABELS}/test_post_competition.csv")
    clips = clips[clips["usage"] == "Private"]
    answers = clips[["fname"]].join(clips["labels"].str.get_dummies(",").reindex(columns=CLASSES, fill_value=0))
    sample = raw.read_csv("sample_submission.csv")
    if list(sample.columns) != ["fname", *CLASSES] or sorted(sample["fname"]) != sorted(answers["fname"]):
        raise DownloadError(f"{archive} and sample_submission.csv list different clips or classes; fetch both again")
    out = Preparation()
    out.public.copies((name, raw.file(name)) for name in raw.names() if LABELS not in name.partition("/")[0])
    out.private.table("test.csv", answers)
    return out
