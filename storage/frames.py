"""Read and write single Parquet files of a store as data frames."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd


def read_frame(store: Store, url: str) -> pd.DataFrame | None:
    """The data frame in a Parquet file; None if the file does not exist."""
    import pandas as pd

    try:
        return pd.read_parquet(io.BytesIO(store.read(url)))
    except FileNotFoundError:
        return None


def write_frame(store: Store, url: str, frame: pd.DataFrame) -> None:
    """Write a data frame without its index."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    store.write(url, buffer.getvalue())
