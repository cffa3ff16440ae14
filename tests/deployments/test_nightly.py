"""What the nightly takes for a moved score, and with which night it compares."""

from __future__ import annotations

import pandas as pd
import pytest

from flows.nightly import last_group, moves
from storage.store import Store
from storage.tables import write_table


def grades(*rows: tuple[str, int, str, float | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["competition_id", "seed", "outcome", "score"])


@pytest.mark.parametrize(
    ("now", "tolerance", "expected"),
    [
        (("a", 0, "valid", 0.5), 0.0, []),
        (("a", 0, "valid", 0.50001), 0.0, ["a seed 0: 0.50000, now 0.50001"]),
        (("a", 0, "valid", 0.50001), 0.001, []),
        (("a", 0, "valid", 0.6), 0.001, ["a seed 0: 0.50000, now 0.60000"]),
        (("a", 0, "invalid", None), 1.0, ["a seed 0: 0.50000, now invalid"]),
        (("b", 0, "valid", 0.5), 1.0, ["a seed 0: 0.50000, now not graded"]),
        (("a", 1, "valid", 0.5), 1.0, ["a seed 0: 0.50000, now not graded"]),
    ],
)
def test_a_moved_score(now: tuple[str, int, str, float | None], tolerance: float, expected: list[str]) -> None:
    assert moves(grades(("a", 0, "valid", 0.5)), grades(now), tolerance) == expected


def test_no_score_twice_is_no_move() -> None:
    assert moves(grades(("a", 0, "missing", None)), grades(("a", 0, "missing", None))) == []


def test_the_last_night_is_that_of_the_same_agent(store: Store) -> None:
    for group in ("nightly-low-dummy-v1-2026", "nightly-low-dummy-v1-2027", "nightly-low-dummy-v1-v1-2028", "other"):
        write_table(store, "grades", group, [{"score": 1.0}])
    assert last_group(store, "nightly-low-dummy-v1", "nightly-low-dummy-v1-2029") == "nightly-low-dummy-v1-2027"
    assert last_group(store, "nightly-low-dummy-v1", "nightly-low-dummy-v1-2027") == "nightly-low-dummy-v1-2026"
    assert last_group(store, "nightly-low-dummy-v1", "nightly-low-dummy-v1-2026") is None
