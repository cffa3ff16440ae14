from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.utils import read_csv


def prepare(raw: Path, public: Path, private: Path):
    print("Preparing hourly-load ...")
    public.mkdir(parents=True, exist_ok=True)
    private.mkdir(parents=True, exist_ok=True)

    load = read_csv(raw / "load.csv", parse_dates=["timestamp"])
    weather = read_csv(raw / "weather.csv")
    cutoff = load["timestamp"].max() - pd.Timedelta(days=3)
    train, test = load[load["timestamp"] <= cutoff], load[load["timestamp"] > cutoff].reset_index(drop=True)
    test.insert(0, "id", range(len(test)))

    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="load").to_csv(public / "test.csv", index=False)
    weather.to_csv(public / "weather.csv", index=False)
    (public / "holidays.csv").write_text((raw / "holidays.csv").read_text())
    sample = test[["id"]].copy()
    sample["load"] = train["load"].mean()
    sample.to_csv(public / "sample_submission.csv", index=False)
    # The seasonal naive error of the training data scales the score.
    naive = np.abs(train["load"].diff(24)).mean()
    test[["id", "load"]].assign(scale=naive).to_csv(private / "answers.csv", index=False)

    # Another split for tuning, which the benchmark does not use.
    public_val = public.parent / "public_val"
    public_val.mkdir()
    train.head(100).to_csv(public_val / "train.csv", index=False)

    assert len(sample) == len(test)
