"""The download: handwritten digits (UCI, 1998) from scikit-learn, as PNG files in a nested zip."""

import io

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_digits

from competitions.preparing.bundle import zip_bytes


def bundle() -> bytes:
    digits = load_digits()
    ids = [f"digit_{number:04d}" for number in range(len(digits.target))]
    pixels = np.round(digits.images * (255 / 16)).astype("uint8")
    images = {}
    for name, picture in zip(ids, pixels, strict=True):
        buffer = io.BytesIO()
        Image.fromarray(picture, mode="L").save(buffer, "PNG")
        images[f"images/{name}.png"] = buffer.getvalue()
    labels = pd.DataFrame({"id": ids, "label": digits.target})
    return zip_bytes({"train.csv": labels.to_csv(index=False).encode(), "images.zip": zip_bytes(images)})
