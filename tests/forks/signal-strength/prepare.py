from pathlib import Path

from sklearn.model_selection import train_test_split

from mlebench.utils import read_csv


def prepare(raw: Path, public: Path, private: Path):
    table = read_csv(raw / "data" / "measurements.csv")
    train, test = train_test_split(table, test_size=0.25, random_state=0)
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns=["rssi"]).to_csv(public / "test.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test[["Id", "rssi"]].to_csv(private / "gold_submission.csv", index=False)
    sample_submission = test[["Id"]].copy()
    sample_submission["rssi"] = -70
    sample_submission.to_csv(public / "sample_submission.csv", index=False)
