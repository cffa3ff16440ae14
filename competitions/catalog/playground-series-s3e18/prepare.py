from competitions.errors import DownloadError
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split

TARGETS = [f"EC{number}" for number in range(1, 7)]
SUBMITTED = ["id", "EC1", "EC2"]
COLUMNS = 38


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    table = raw.read_csv("train.csv")
    if len(table.columns) != COLUMNS:
        raise DownloadError(f"train.csv has {len(table.columns)} columns, not {COLUMNS}; download it again")
    train, test = split(table, 0.1)
    submitted = test.loc[:, test.columns.isin(SUBMITTED)]
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=TARGETS))
    out.private.table("test.csv", submitted if edition == "v2" else test)
    out.public.table("sample_submission.csv", submitted.assign(EC1=0.5, EC2=0.5))
    return out
