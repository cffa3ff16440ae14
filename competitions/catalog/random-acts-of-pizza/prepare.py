import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation, json_content
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.preparing.json_records import only, read_records

from .columns import TARGET


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    labelled, unlabelled = read_records(raw, "train.json"), read_records(raw, "test.json")
    train, test = hold_out(labelled, len(unlabelled) / (len(labelled) + len(unlabelled)))
    answers = pd.DataFrame(test)[["request_id", TARGET]].astype({TARGET: int})
    test = only(test, list(unlabelled[0]))
    if edition == "v2":  # a known giver reveals that the request was granted (v2 fixes giver-reveals-outcome)
        train, test = (only(part, [f for f in part[0] if f != "giver_username_if_known"]) for part in (train, test))
    out = Preparation()
    out.private.table("test.csv", answers)
    out.public.table("sampleSubmission.csv", answers.assign(**{TARGET: 0}))
    for name, part in (("train", train), ("test", test)):
        content = json_content(part, indent=4)
        out.public.content(f"{name}.json", content)
        if edition == "v1":  # v2 fixes duplicate-archives
            out.public.archive(f"{name}.zip", {f"{name}.json": content})
    return out
