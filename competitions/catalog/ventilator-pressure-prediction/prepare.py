from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_groups

TYPES = {"id": "int32", "breath_id": "int32", "R": "int8", "C": "int8", "u_out": "int8"} | dict.fromkeys(
    ["time_step", "u_in", "pressure"], "float64"
)
ROUNDED = {"float_format": "%.10g"}


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    parts = hold_out_groups(raw.read_csv("train.csv", dtype=TYPES), "breath_id", 0.1)
    train, test = (part.assign(id=range(1, len(part) + 1)) for part in parts)
    out = Preparation()
    out.public.table("train.csv", train, **ROUNDED)
    out.public.table("test.csv", test.drop(columns="pressure"), **ROUNDED)
    out.private.table("test.csv", test, **ROUNDED)
    out.public.table("sample_submission.csv", test[["id"]].assign(pressure=0))
    return out
