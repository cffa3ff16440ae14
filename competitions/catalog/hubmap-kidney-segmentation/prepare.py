from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by

INFORMATION = "HuBMAP-20-dataset_information.csv"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    if len(table) != 15:
        raise DownloadError(f"train.csv has {len(table)} rows instead of 15; download it again")
    information = raw.read_csv(INFORMATION)
    ids = information["image_file"].str.replace(".tiff", "", regex=False)
    if edition == "v1":  # v2 fixes patients-on-both-sides
        train, test = hold_out(table, 3, train_size=12)
    else:
        patients = table["id"].map(dict(zip(ids, information["patient_number"], strict=True)))
        parts = hold_out_by(table.assign(patient=patients), "patient", 0.2)
        train, test = (part.drop(columns="patient") for part in parts)
    sizes = information.assign(id=ids)[["id", "width_pixels", "height_pixels"]]
    sample = test[["id"]].assign(predicted="")
    out = Preparation()
    out.public.table(INFORMATION, information[ids.isin(table["id"])])
    out.public.table("train.csv", train)
    out.public.table("sample_submission.csv", sample)
    out.public.table("test/sample_submission.csv", sample)
    out.private.table("test.csv", test.merge(sizes, on="id"))
    out.private.table("gold_submission.csv", test.rename(columns={"encoding": "predicted"}))
    endings = [".tiff", "-anatomical-structure.json", ".json"]
    for folder, part in (("train", train), ("test", test)):
        # NAME.json contains the outlines to predict.
        kept = endings[:2] if edition == "v2" and folder == "test" else endings  # v2 fixes test-outlines-public
        files = (f"{image}{ending}" for image in part["id"] for ending in kept)
        out.public.copies((f"{folder}/{file}", raw.file(f"train/{file}")) for file in files)
    return out
