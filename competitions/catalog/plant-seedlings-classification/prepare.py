import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    images = sorted(path.split("/")[1:] for path in raw.glob("train/*/*.png"))
    train, test = hold_out(pd.DataFrame(images, columns=["species", "file"])[["file", "species"]], 0.14)
    # v2 fixes order-from-a-constant-seed, original-names
    answers = test if edition == "v1" else anonymous(test, "file", "{}.png")
    out = Preparation()
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(species="Sugar beet"))
    out.public.copies(raw.each("train/{}/{}", train["species"], train["file"]))
    old = test.loc[answers.index]
    out.public.copies(raw.each("train/{}/{}", old["species"], old["file"], answers["file"], to="test/{2}"))
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/", encoded, raw, params[PARAMETER])
    return out
