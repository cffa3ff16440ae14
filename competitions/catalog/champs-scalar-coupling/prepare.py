from collections.abc import Iterator
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_groups

from .columns import TARGET

QUANTITIES = [
    "dipole_moments.csv",
    "magnetic_shielding_tensors.csv",
    "mulliken_charges.csv",
    "potential_energy.csv",
    "scalar_coupling_contributions.csv",
]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv", texts="arrow")
    train, test = hold_out_groups(table, "molecule_name", 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=TARGET))
    out.private.table("answers.csv", test)
    out.public.table("sample_submission.csv", test[["id"]].assign(**{TARGET: 0}))
    train_molecules = train["molecule_name"].unique()
    for name in QUANTITIES:
        out.public.table(name, about(train_molecules, raw, name))
    # v1 withholds the geometry of the test molecules.
    # v2 fixes test-geometry-missing
    molecules = table["molecule_name"].unique() if edition == "v2" else train_molecules
    out.public.table("structures.csv", about(molecules, raw, "structures.csv"))
    out.public.copies(raw.each("structures/{}.xyz", molecules))
    return out


def about(molecules: NDArray[Any], raw: Download, name: str) -> Iterator[pd.DataFrame]:
    """Yield the rows of the table `name` about these molecules, read when they are written.

    Raises `DownloadError` if the table lacks one of the molecules.
    """
    table = raw.read_csv(name, texts="arrow")
    rows = table[table["molecule_name"].isin(molecules)]
    if rows["molecule_name"].nunique() != len(molecules):
        raise DownloadError(f"{name} lacks molecules of train.csv; download it again")
    yield rows
