"""Answers of stanford-covid-vaccine: one row a base, with zeros after the measured ones, however many each has."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from storage.datasets import prepare

TARGETS = ["reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C"]
LENGTH = 9


def test_measurements_are_padded_one_sequence_after_the_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = [0, 1, -0.0, -1e-12, 0.5e-10, 0.12345678905, 1e-7, -3.5, 146151.225, 1e9, 1e17, 1e300, None]
    lines = [
        {"index": number, "id": f"id_{number}", "sequence": "A", "SN_filter": 1.0, "seq_length": LENGTH}
        | {"seq_scored": (scored := int(rng.integers(1, LENGTH)))}
        | {target: rng.choice(np.array(values, object), scored).tolist() for target in TARGETS}
        for number in range(200)
    ]
    _zip(tmp_path / "raw.zip", lines)
    prepare("stanford-covid-vaccine", tmp_path / "raw.zip", tmp_path / "out", edition="v1")
    train = pd.read_json(io.StringIO("\n".join(map(json.dumps, lines))), lines=True)
    test = train.loc[sorted(train.sample(n=20, random_state=0).index)]
    rows = [
        {"id_seqpos": f"{row['id']}_{place}"}
        | {target: row[target][place] if place < row["seq_scored"] else 0.0 for target in TARGETS}
        | {"keep": place < row["seq_scored"]}
        for row in test.to_dict("records")
        for place in range(LENGTH)
    ]
    expected = pd.DataFrame(rows).astype(dict.fromkeys(TARGETS, float))
    assert expected["keep"].nunique() == 2
    written = (tmp_path / "out/private/test.csv").read_text("utf-8")
    assert written == expected.to_csv(index=False, float_format="%.10f")


def _zip(path: Path, lines: list[dict[str, object]]) -> None:
    unlabelled = [{name: line[name] for name in ("index", "id", "sequence", "seq_length")} for line in lines]
    with zipfile.ZipFile(path, "w") as archive:
        for name, some in (("train", lines), ("test", unlabelled)):
            archive.writestr(f"{name}.json", "\n".join(map(json.dumps, some)))
        archive.writestr("sample_submission.csv", ",".join(["id_seqpos", *TARGETS]) + "\n")
