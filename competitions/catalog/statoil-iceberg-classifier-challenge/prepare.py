"""Only the first of the unlabelled records (1.5 GB of JSON) is parsed, because only their field names are needed."""

import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation, json_content, table
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.preparing.json_records import first_record, only, read_records


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    labelled = read_records(raw.archive("train.json.7z"), "data/processed/train.json")
    fields = list(first_record(raw.archive("test.json.7z"), "data/processed/test.json"))
    drawn, kept = labelled, []
    # A missing angle may reveal the class. As in the original, records without it stay in the training set.
    if edition == "v2":  # v2 fixes unknown-angles-in-test
        kept = [record for record in labelled if record["inc_angle"] == "na"]
        drawn = [record for record in labelled if record["inc_angle"] != "na"]
    train, test = hold_out(drawn, 0.2)
    answers = pd.DataFrame({name: [record[name] for record in test] for name in ("id", "is_iceberg")})
    sample = answers.assign(is_iceberg=0.5)
    out = Preparation()
    out.private.table("test.csv", answers)
    out.private.table("sample_submission.csv", sample)
    if edition == "v2":  # v2 fixes sample-submission-packed
        out.public.table("sample_submission.csv", sample)
    contents = {
        "train.json": json_content(train + kept),
        "test.json": json_content(only(test, fields)),
        "sample_submission.csv": table(sample),
    }
    for name, content in contents.items():
        out.public.archive(f"{name}.7z", {name: content})
    return out
