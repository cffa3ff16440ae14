import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_groups

from .columns import ID

VISIT = ["Patient", "Weeks"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    train, test = hold_out_groups(table, "Patient", 0.1)
    first_visits = test.sort_values("Weeks").groupby("Patient", as_index=False).first()
    # In v1 the range of weeks reveals the first and the last visit of all test patients.
    # v2 fixes weeks-of-all-visits
    weeks = range(-12, 134) if edition == "v2" else range(test["Weeks"].min(), test["Weeks"].max() + 1)
    grid = pd.MultiIndex.from_product([test["Patient"].unique().tolist(), weeks], names=VISIT).to_frame(index=False)
    answers = grid.merge(test, on=VISIT, how="left")
    if len(answers) != len(grid):
        raise DownloadError("train.csv has a patient with two visits in one week; download it again")
    answers[ID] = answers["Patient"] + "_" + answers["Weeks"].astype(str)
    answers["Confidence"] = 100
    # v2 fixes unscored-rows-unchecked
    if edition == "v2":  # a submission has a number in every week, and so have the answers
        answers["visited"] = answers["FVC"].notna()
        answers["FVC"] = answers["FVC"].fillna(2000)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", first_visits[table.columns])
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers[[ID]].assign(FVC=2000, Confidence=100))
    for part, visits in (("train", train), ("test", test)):
        for patient in visits["Patient"].unique():
            out.public.copy_tree(f"{part}/{patient}", raw, f"train/{patient}")
    return out
