from pathlib import PurePosixPath
from random import Random

import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, secret_random

ALGORITHMS = ["JMiPOD", "JUNIWARD", "UERD"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    names = [PurePosixPath(path).name for path in raw.glob("Cover/*.jpg")]
    train, test = hold_out(names, params["test_size"], seed=42)
    random = Random(0)
    if edition == "v2":  # sizes of which agents see one in four (v2 fixes answers-from-a-constant-seed)
        random = secret_random(raw.file(f"{folder}/{name}").size for name in test for folder in ("Cover", *ALGORITHMS))
    random.shuffle(test)
    sources = ["Cover" if random.choice([True, False]) else random.choice(ALGORITHMS) for _ in test]
    answers = pd.DataFrame(
        {
            "Id": [f"{number:04d}.jpg" for number in range(1, len(test) + 1)],
            "Label": [int(source != "Cover") for source in sources],
        }
    )
    out = Preparation()
    for folder in ("Cover", *ALGORITHMS):
        out.public.copies(
            (f"{folder}/{number:05d}.jpg", raw.file(f"{folder}/{name}")) for number, name in enumerate(train, start=1)
        )
    out.public.copies(
        (f"Test/{image}", raw.file(f"{source}/{name}"))
        for image, source, name in zip(answers["Id"], sources, test, strict=True)
    )
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(Label=0))
    return out
