from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .columns import TARGETS

GUESSES = dict(zip(TARGETS, (0.1779, 1.8892), strict=True))


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    parts = hold_out(raw.archive("train.csv.zip").read_csv("train.csv"), 0.1)
    train, test = (part.assign(id=range(1, len(part) + 1)) for part in parts)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=TARGETS))
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["id"]].assign(**GUESSES))
    geometry = raw.archive("train.zip")
    for name, old, new in (("train", parts[0], train), ("test", parts[1], test)):
        to = name + "/{1}/geometry.xyz"
        out.public.copies(geometry.each("train/{}/geometry.xyz", old["id"], new["id"], to=to))
    return out
