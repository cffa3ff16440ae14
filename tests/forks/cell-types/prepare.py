import json
import shutil
from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split

from mlebench.utils import extract

from .classes import CLASSES


def prepare(raw: Path, public: Path, private: Path) -> None:
    extract(raw / "images.zip", raw)
    with open(raw / "labels.json") as f:
        cells = json.load(f)
    train, test = train_test_split(cells, test_size=0.2, random_state=0)
    for name, part in (("train", train), ("test", test)):
        (public / name).mkdir(exist_ok=True)
        for cell in part:
            shutil.copyfile(src=raw / "images" / f"{cell['cell']}.png", dst=public / name / f"{cell['cell']}.png")
    pd.DataFrame({"cell": c["cell"], "types": " ".join(c["types"])} for c in train).to_csv(public / "train.csv", index=False)
    pd.DataFrame({"cell": c["cell"], "types": CLASSES[0]} for c in test).to_csv(
        public / "sample_submission.csv", index=False
    )
    with open(private / "answers.jsonl", "w") as f:
        for cell in test:
            f.write(json.dumps(cell) + "\n")
