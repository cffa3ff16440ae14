from pathlib import PurePosixPath

import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by

NOISE = "_background_noise_"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    archive = raw.archive("train.7z")
    names = [name for name in archive.names("train/audio") if name.endswith(".wav")]
    clips = pd.DataFrame([(name, *PurePosixPath(name).parts[-2:]) for name in names], columns=["name", "label", "file"])
    clips = clips.iloc[(clips["label"] + "_" + clips["file"]).argsort(kind="stable")]
    if edition == "v1":
        train, test = hold_out(clips, 0.1)
    else:  # no speaker in both parts, no long recording of noise in the test part
        noise = clips["label"] == NOISE
        words = clips[~noise].assign(speaker=clips["file"].str.split("_").str[0])
        train, test = hold_out_by(words, "speaker", 0.1, ordered=True)
        train = pd.concat([train, clips[noise]])
    answers = test[["label"]].reset_index(drop=True)
    answers.insert(0, "fname", [f"clip_{number:08d}.wav" for number in answers.index])
    out = Preparation()
    out.public.copies(archive.each("{}", train["name"], train["label"], train["file"], to="train/audio/{1}/{2}"))
    out.public.copies(archive.each("{}", test["name"], answers["fname"], to="test/audio/{1}"))
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(label="silence"))
    return out
