import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, shuffled
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    images = raw.archive("train.zip")
    train, test = hold_out(pd.Series(images.glob("train/*.jpg")), 0.1)
    # v2 fixes order-from-a-constant-seed
    if edition == "v2":  # names are counted by kind, so only the sizes of files tell which is where
        test = shuffled(test.to_frame("name"), [images.file(name).size for name in test])["name"]
    kind = train.str.contains("cat").map({True: "cat", False: "dog"})
    answers = pd.DataFrame({"id": range(1, len(test) + 1), "label": test.str.contains("dog").astype(int)})
    out = Preparation()
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(label=0.5))
    for folder, pictures in (
        ("train", dict(images.each("{}", train, kind, kind.groupby(kind).cumcount(), to="{1}.{2}.jpg"))),
        ("test", dict(images.each("{}", test, answers["id"], to="{1}.jpg"))),
    ):
        out.public.copies((f"{folder}/{name}", picture) for name, picture in pictures.items())
        if edition == "v1":  # v2 fixes images-twice
            out.public.archive(f"{folder}.zip", pictures)
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/", encoded, raw, params[PARAMETER])
    return out
