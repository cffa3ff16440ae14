from pathlib import PurePosixPath

import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Content, Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by, shuffled

from .columns import COMMANDS, SILENCE, UNKNOWN
from .noise import cut

NOISE = "_background_noise_"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    archive = raw.archive("train.7z")
    names = [name for name in archive.names("train/audio") if name.endswith(".wav")]
    clips = pd.DataFrame([(name, *PurePosixPath(name).parts[-2:]) for name in names], columns=["name", "label", "file"])
    clips = clips.iloc[(clips["label"] + "_" + clips["file"]).argsort(kind="stable")]
    out = Preparation()
    # v2 fixes order-from-a-constant-seed, folder-names-as-labels, speakers-on-both-sides, noise-recordings-in-test
    if edition == "v1":
        train, test = hold_out(clips, 0.1)
    else:
        train, test = kaggles_task(archive, clips, out)
    answers = test[["label"]].reset_index(drop=True)
    answers.insert(0, "fname", [f"clip_{number:08d}.wav" for number in answers.index])
    files = dict(zip(answers["fname"], test["name"], strict=True))
    out.public.copies(archive.each("{}", train["name"], train["label"], train["file"], to="train/audio/{1}/{2}"))
    for name, source in files.items():
        if isinstance(source, Content):
            out.public.content(f"test/audio/{name}", source)
        else:
            out.public.copy(f"test/audio/{name}", archive.file(source))
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(label=SILENCE))
    return out


def kaggles_task(archive: Download, clips: pd.DataFrame, out: Preparation) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training clips, and test clips with Kaggle's twelve labels, by speakers that train does not have, shuffled.

    As many clips are unknown words, and as many silence, as there are of a command on average. The test clips of
    silence are cut from recordings of noise, the rest of which is declared as training data.
    """
    noise = clips["label"] == NOISE
    words = clips[~noise].assign(speaker=clips["file"].str.split("_").str[0])
    train, test = hold_out_by(words, "speaker", 0.1, ordered=True)
    commands, other_words = (test[test["label"].isin(COMMANDS) == is_command] for is_command in (True, False))
    count = max(round(len(commands) / len(COMMANDS)), 1)
    other_words = other_words.sample(min(count, len(other_words)), random_state=0).assign(label=UNKNOWN)
    recordings = {name: file.read() for name, file in archive.stream(clips.loc[noise, "name"])}
    train_recordings, silent = cut(dict(sorted(recordings.items())), count)
    for name, data in train_recordings.items():
        out.public.content(name, content_of(data))
    spoken = pd.concat([commands, other_words])[["name", "label"]]
    silence = pd.DataFrame({"name": range(len(silent)), "label": SILENCE})
    held_out = shuffled(pd.concat([spoken, silence]))
    files = [content_of(silent[name]) if isinstance(name, int) else name for name in held_out["name"]]
    return train, held_out.assign(name=pd.Series(files, held_out.index, dtype=object))


def content_of(data: bytes) -> Content:
    return Content(lambda: [data])
