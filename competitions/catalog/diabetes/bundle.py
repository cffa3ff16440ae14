"""The download: diabetes progression (Efron et al. 2004) from scikit-learn, features in their own units."""

from sklearn.datasets import load_diabetes

from competitions.preparing.bundle import zip_bytes


def bundle() -> bytes:
    data = load_diabetes(as_frame=True, scaled=False)
    table = data.data.copy()
    table.insert(0, "id", range(1, len(table) + 1))
    table["progression"] = data.target
    return zip_bytes({"train.csv": table.to_csv(index=False).encode()})
