from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train_labels.csv", float_precision=None), 0.2)
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(InChI="InChI=1S/H2O/h1H2"))
    out.public.copy("extra_approved_InChIs.csv", raw.file("extra_approved_InChIs.csv"))
    for folder, part in (("train", train), ("test", test)):
        paths = (f"{image[0]}/{image[1]}/{image[2]}/{image}.png" for image in part["image_id"])
        out.public.copies((f"{folder}/{path}", raw.file(f"train/{path}")) for path in paths)
    return out
