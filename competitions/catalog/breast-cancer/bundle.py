"""The download: breast cancer Wisconsin, diagnostic (UCI, 1995), from scikit-learn."""

from sklearn.datasets import load_breast_cancer

from competitions.preparing.bundle import zip_bytes


def bundle() -> bytes:
    data = load_breast_cancer(as_frame=True)
    table = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    table.insert(0, "id", range(1, len(table) + 1))
    table["malignant"] = 1 - data.target  # scikit-learn codes benign as 1
    return zip_bytes({"train.csv": table.to_csv(index=False).encode()})
