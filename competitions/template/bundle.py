"""Create the download: a generated table with a target that depends on two columns and on noise.

Competitions with a real download (source: kaggle, or a directory given with --raw-dir) have no bundle.py.
"""

import numpy as np
import pandas as pd

from competitions.preparing.bundle import zip_bytes


def bundle() -> bytes:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(1, 601), "width": random.uniform(0, 5, 600).round(2)})
    table["kind"] = random.choice(["round", "square"], len(table))
    area = table["width"] ** 2 * np.where(table["kind"] == "round", np.pi / 4, 1)
    table["area"] = (area + random.normal(0, 1, len(table))).round(3)
    return zip_bytes({"train.csv": table.to_csv(index=False).encode()})
