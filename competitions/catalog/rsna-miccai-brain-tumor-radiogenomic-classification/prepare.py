from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

FAULTY = ["00109", "00123", "00709"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    patients = raw.read_csv("train_labels.csv", dtype={"BraTS21ID": str, "MGMT_value": int})
    if edition == "v2":
        patients = patients[~patients["BraTS21ID"].isin(FAULTY)]
    train, test = hold_out(patients, 0.1)
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(MGMT_value=0.5))
    for part, rows in (("train", train), ("test", test)):
        for patient in rows["BraTS21ID"]:
            out.public.copy_tree(f"{part}/{patient}", raw, f"train/{patient}")
    return out
