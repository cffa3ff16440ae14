from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation, table
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.archive("train_labels.csv.zip").read_csv("train_labels.csv"), 0.2)
    sample = test.assign(invasive=0.5)
    out = Preparation()
    out.private.table("answers.csv", test)
    out.private.table("sample_submission.csv", sample)
    out.public.archive("train_labels.csv.zip", {"train_labels.csv": table(train)})
    out.public.archive("sample_submission.csv.zip", {"sample_submission.csv": table(sample)})
    for part, rows in (("train", train), ("test", test)):
        pictures = dict(raw.archive("train.7z").each("train/{}.jpg", rows["name"], to=part + "/{}.jpg"))
        # Each of the published archives contains only an empty folder.
        out.public.archive(f"{part}.7z", pictures if edition == "v2" else {}, folders=[part])  # v2 fixes empty-archives
    return out
