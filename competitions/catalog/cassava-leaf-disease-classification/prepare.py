from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out
from competitions.preparing.tfrecord import shards, texts


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train_records, test_records = hold_out(raw.glob("train_tfrecords/*.tfrec"), 0.1)
    labels = raw.read_csv("train.csv")
    is_test = labels["image_id"].isin({name for file in test_records for name in texts(raw, file, "image_name")})
    train, test = labels[~is_test], labels[is_test]
    original = test["image_id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "image_id", "test_{:05}.jpg")
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(label=4))
    out.public.copy("label_num_to_disease_map.json", raw.file("label_num_to_disease_map.json"))
    out.public.copies(shards(raw, train_records, to="train_tfrecords/ld_train{:02}-{}.tfrec"))
    if edition == "v1":  # the records contain the labels (v2 fixes labels-in-test-records)
        out.public.copies(shards(raw, test_records, to="test_tfrecords/ld_test{:02}-{}.tfrec"))
    out.public.copies(raw.each("train_images/{}", train["image_id"]))
    out.public.copies(raw.each("train_images/{}", original[test.index], test["image_id"], to="test_images/{1}"))
    return out
