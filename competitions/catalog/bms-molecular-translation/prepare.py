from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train_labels.csv", float_precision=None), 0.2)
    original = test["image_id"]
    # v2 fixes original-names
    if edition == "v2":  # the numbers are spread over the folders, whose names are the first three digits
        test = anonymous(test, "image_id", "{}")
        test = test.assign(image_id=[f"{number * 2654435761 % 2**32:08x}0000" for number in range(len(test))])
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(InChI="InChI=1S/H2O/h1H2"))
    out.public.copy("extra_approved_InChIs.csv", raw.file("extra_approved_InChIs.csv"))
    for folder, part, names in (("train", train, train["image_id"]), ("test", test, original[test.index])):
        paths = "{0[0]}/{0[1]}/{0[2]}/{0}.png", "{1[0]}/{1[1]}/{1[2]}/{1}.png"
        out.public.copies(raw.each(f"train/{paths[0]}", names, part["image_id"], to=f"{folder}/{paths[1]}"))
    return out
