from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_by
from competitions.preparing.tfrecord import shards, texts

TEST_RECORDS = ("tfrecords/train00-2071.tfrec", "tfrecords/train06-2071.tfrec")


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # v2 fixes fast-float-parser
    table = raw.read_csv("train.csv", float_precision=None if edition == "v1" else "round_trip")
    if edition == "v1":  # v2 fixes patients-on-both-sides
        is_test = table["image_name"].isin({name for file in TEST_RECORDS for name in texts(raw, file, "image_name")})
        train, test = table[~is_test], table[is_test]
    else:
        train, test = hold_out_by(table, "patient_id", 0.1)
    answers = test[["image_name", "target"]]
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=["diagnosis", "benign_malignant", "target"]))
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(target=0))
    for images in ("train/{}.dcm", "jpeg/train/{}.jpg"):
        out.public.copies(raw.each(images, train["image_name"]))
        out.public.copies(raw.each(images, test["image_name"], to=images.replace("train", "test")))
    # v2 fixes labels-in-test-records
    if edition == "v1":  # records of all images contain the labels, and those of a file are of many patients
        train_records = [file for file in raw.glob("tfrecords/train*.tfrec") if file not in TEST_RECORDS]
        out.public.copies(shards(raw, train_records, to="tfrecords/train{:02}-{}.tfrec"))
        out.public.copies(shards(raw, TEST_RECORDS, to="tfrecords/test{:02}-{}.tfrec"))
    return out
