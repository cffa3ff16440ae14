from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_by

from .columns import VOTES


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # v2 fixes patients-on-both-sides
    train, test = hold_out_by(raw.read_csv("train.csv"), "spectrogram_id" if edition == "v1" else "patient_id", 0.1)
    public_columns = ["spectrogram_id", "eeg_id", "patient_id"]
    if edition == "v2":  # one sample per recording, and its position in the recording (v2 fixes rows-of-a-recording)
        test = test.drop_duplicates("eeg_id")
        public_columns += ["eeg_label_offset_seconds", "spectrogram_label_offset_seconds"]
    gold = test[["eeg_id"]].join(test[VOTES].div(test[VOTES].sum(axis=1), axis=0))
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("test.csv", test[public_columns])
    out.private.table("gold_submission.csv", gold)
    out.public.table("sample_submission.csv", gold.assign(**dict.fromkeys(VOTES, 1 / 6)))
    out.public.copy_tree("example_figures", raw, "example_figures")
    for part, rows in (("train", train), ("test", test)):
        for kind in ("eeg", "spectrogram"):
            numbers = rows[f"{kind}_id"].unique()
            out.public.copies(raw.each(f"train_{kind}s/{{}}.parquet", numbers, to=f"{part}_{kind}s/{{}}.parquet"))
    return out
