import re

import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    archive = raw.archive("train2.zip")
    clips = [name.removeprefix("train2/") for name in archive.names("train2")]
    days = sorted({clip.split("_")[0] for clip in clips})
    if len(days) != 4:
        raise DownloadError(f"train2.zip contains clips of {len(days)} days instead of 4; download it again")
    train = [clip for clip in clips if clip.split("_")[0] in days[:2]]
    test = [clip for clip in clips if clip.split("_")[0] in days[2:]]
    train_names = [re.sub(r"TRAIN\d+", f"TRAIN{i}", clip) for i, clip in enumerate(train)]
    test_names = [f"{clip.split('TRAIN')[0]}Test{i}.aif" for i, clip in enumerate(test)]
    calls = [int(clip.rpartition(".")[0].endswith("_1")) for clip in test]
    answers = pd.DataFrame({"clip": test_names, "probability": calls})
    out = Preparation()
    for folder, new, old in (("train2", train_names, train), ("test2", test_names, test)):
        members = {f"{folder}/{a}": archive.file(f"train2/{b}") for a, b in zip(new, old, strict=True)}
        out.public.archive(f"{folder}.zip", members, folders=[folder])
    out.private.table("test.csv", answers)
    out.public.table("sampleSubmission.csv", answers.assign(probability=0))
    return out
