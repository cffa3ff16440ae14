"""Tables as CSV: hard numbers, blanks, quotes and encodings, and how tests read them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from competitions.tables import columns

HARD_NUMBERS = [
    "0.1", "0.30000000000000004", "1e-320", "4.9e-324", "1.7976931348623157e308", "9007199254740993", "1e22", "1e23",
    "123456789012345678", "0.000001", "8.5e-5", "-0.0", "-0", "007", "1.", ".5", "2.2250738585072011e-308",
    "0.1000000000000000055511151231257827021181583404541015625", "179769313486231570000", "5e-1",
]  # fmt: skip
ODD = [
    "", "NA", "nan", "null", "None", "inf", "-Infinity", "True", "FALSE", "true", "+5", "1e400", "99999999999999999999",
    "1_000", "1,000", " 1", "2 ", "\t3", "0x1A", "1e5x", "12:30", "--1", "2010-01-05", "٣", "1.5.2", "#N/A", "e5", "-",
    "12345678901234567890.5", "1d5", "NaN", "<NA>", "n/a",
]  # fmt: skip
TEXTS = [
    "a",
    "naïve",
    "日本",
    "two words",
    'say "yes"',
    "a,b",
    "line\nbreak",
    "cr\r\nlf",
    " lead",
    "trail ",
    "x" * 300,
    "'",
]
KINDS: list[Callable[[random.Random], str]] = [
    lambda rng: rng.choice(HARD_NUMBERS),
    lambda rng: str(rng.randint(-(10**6), 10**6)),
    lambda rng: repr(rng.random() * 10 ** rng.randint(-30, 30)),
    lambda rng: f"{rng.uniform(-50, 1000):.{rng.randint(1, 4)}f}",
    lambda rng: rng.choice(TEXTS),
    lambda rng: rng.choice(["True", "False"]),
    lambda rng: f"{rng.randint(0, 99)}_{rng.randint(0, 9)}",
    lambda rng: rng.choice(ODD),
    lambda rng: rng.choice([*HARD_NUMBERS, ""]),
    lambda rng: rng.choice([*TEXTS, "", "NA"]),
]


def quoted(cell: str, always: bool) -> str:
    return '"' + cell.replace('"', '""') + '"' if always or any(mark in cell for mark in '",\n\r') else cell


NUMBERS: list[Callable[[random.Random], str]] = [
    lambda rng: str(rng.randint(-128, 127)),
    lambda rng: str(rng.randint(-129, 127)),
    lambda rng: f"{rng.uniform(-50, 1000):.{rng.randint(1, 4)}f}",
]


def table(rng: random.Random, choice: list[Callable[[random.Random], str]] = KINDS) -> bytes:
    """A table of a few columns, of one kind each with a rare cell of another, spelled in one of several ways."""
    kinds = [rng.choice(choice) for _ in range(rng.randint(1, 5))]
    always, end = rng.random() < 0.2, rng.choice(["\n", "\n", "\r\n"])
    other = rng.random() < 0.3
    lines = [",".join(quoted(f"c{k}", always) for k in range(len(kinds)))]
    for _ in range(rng.randint(1, 60)):
        cells = [rng.choice(KINDS)(rng) if other and rng.random() < 0.02 else kind(rng) for kind in kinds]
        lines.append(",".join(quoted(cell, always) for cell in cells))
    if rng.random() < 0.2:  # odd in one place, or broken
        place = rng.randrange(len(lines))
        lines[place] = rng.choice(["", "", " ", lines[place] + ",", 'a"b,1', '"open', "\0,1", " " + lines[place]])
    encoding = "utf-8" if rng.random() < 0.95 else "latin-1"
    return (end.join(lines) + (end if rng.random() < 0.8 else "")).encode(encoding, "replace")


def read(path: Path, wanted: list[str] | None = None, texts: columns.Texts = "object") -> pd.DataFrame | None:
    found = columns.read_table(path, wanted)
    return None if found is None else columns.frame(found, texts)


def outcome(read: Callable[[], pd.DataFrame]) -> pd.DataFrame | str:
    try:
        return read()
    except (ValueError, OverflowError) as error:
        return type(error).__name__
