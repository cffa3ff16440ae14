from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.dicom import anonymous_scan
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out

FAULTY = ["00109", "00123", "00709"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    patients = raw.read_csv("train_labels.csv", dtype={"BraTS21ID": str, "MGMT_value": int})
    if edition == "v2":  # v2 fixes faulty-patients
        patients = patients[~patients["BraTS21ID"].isin(FAULTY)]
    train, test = hold_out(patients, 0.1)
    original = test["BraTS21ID"]
    if edition == "v2":  # v2 fixes original-ids
        test = anonymous(test, "BraTS21ID", "{}")
        first = train["BraTS21ID"].astype(int).max() + 1  # five digits as well, and numbers that no one in train has
        test = test.assign(BraTS21ID=[f"{first + number:05}" for number in range(len(test))])
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(MGMT_value=0.5))
    for patient in train["BraTS21ID"]:
        out.public.copy_tree(f"train/{patient}", raw, f"train/{patient}")
    for patient, before in zip(test["BraTS21ID"], original.loc[test.index], strict=True):
        if edition == "v1":  # v2 fixes original-ids
            out.public.copy_tree(f"test/{patient}", raw, f"train/{patient}")
            continue
        for path, file in raw.tree(f"train/{before}"):
            series, _, name = path.rpartition("/")
            names = patient, series, name
            out.public.derived(
                f"test/{patient}/{path}", anonymous_scan, file.archive, file.name, *names, size=file.size
            )
    return out
