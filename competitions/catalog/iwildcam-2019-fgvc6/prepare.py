from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_by
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    images = raw.archive("train_images.zip")
    if (image_count := len(images.glob("*.jpg"))) != (id_count := table["id"].nunique()):
        raise DownloadError(
            f"train_images.zip contains {image_count} images, train.csv lists {id_count}; download it again"
        )
    train, test = hold_out_by(table, "location", 0.1, seed=8)
    answers = test[["id", "category_id"]].rename(columns={"id": "Id", "category_id": "Category"})
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="category_id"))
    out.private.table("test.csv", test)
    out.private.table("answers.csv", answers)
    # The index is the position in the original train.csv. (v2 fixes index-in-sample)
    out.public.table("sample_submission.csv", answers.assign(Category=0), index=edition == "v1")
    for name, rows in (("train_images.zip", train), ("test_images.zip", test)):
        out.public.archive(name, {f"{image}.jpg": images.file(f"{image}.jpg") for image in rows["id"]})
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test_images.zip", encoded, raw, params[PARAMETER])
    return out
