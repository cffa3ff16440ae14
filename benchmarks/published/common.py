"""Helpers of the generators: zips, payloads, words, run lengths. Needs numpy."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


class Zip:
    """A zip written member by member with fixed dates; csv deflated well, pictures fast (they hardly shrink)."""

    def __init__(self, target: Path | io.BytesIO) -> None:
        self.file = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)

    def __enter__(self) -> Zip:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def put(self, name: str, data: bytes | str) -> None:
        """Add a member."""
        info = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        table = name.endswith((".csv", ".json", ".jsonl"))
        self.file.writestr(info, data, compresslevel=6 if table else 1)


def nested(members: Mapping[str, bytes | str]) -> bytes:
    """The bytes of a zip with these members."""
    buffer = io.BytesIO()
    with Zip(buffer) as z:
        for name, data in members.items():
            z.put(name, data)
    return buffer.getvalue()


def jpeg(rng: np.random.Generator, size: int) -> bytes:
    """Incompressible bytes of about `size` with the marks of a JPEG; nothing decodes them."""
    return b"\xff\xd8\xff\xe0" + rng.bytes(int(size * rng.uniform(0.7, 1.3))) + b"\xff\xd9"


def hexes(rng: np.random.Generator, n: int, digits: int) -> list[str]:
    """`n` distinct hexadecimal texts."""
    distinct: dict[str, None] = {}
    while len(distinct) < n:
        text = rng.bytes((digits + 1) // 2 * (n - len(distinct))).hex()
        step = (digits + 1) // 2 * 2
        for i in range(0, len(text), step):
            distinct[text[i : i + digits]] = None
    return list(distinct)


def vocabulary(rng: np.random.Generator, n: int = 6000) -> list[str]:
    syllables = [
        "a",
        "be",
        "co",
        "di",
        "er",
        "fo",
        "ga",
        "hi",
        "in",
        "jo",
        "ka",
        "lo",
        "me",
        "no",
        "or",
        "pe",
        "ra",
        "si",
        "to",
        "un",
        "ve",
        "wi",
        "ya",
        "zu",
        "ing",
        "tion",
        "ly",
        "ed",
        "th",
        "st",
    ]
    words = dict.fromkeys(
        ["the", "of", "and", "a", "to", "in", "is", "you", "that", "it", "naïve", "Zoë", "日本", "don't", "article"]
    )
    for length, picks in zip(
        rng.integers(1, 5, 8 * n).tolist(), rng.integers(0, len(syllables), (8 * n, 4)).tolist(), strict=True
    ):
        if len(words) == n:
            break
        words["".join(syllables[i] for i in picks[:length])] = None
    return list(words)


def texts(rng: np.random.Generator, n: int, mean_words: float, awkward: bool = True) -> list[str]:
    """`n` texts of Zipf-distributed words with log-normal length; with quotes, commas and line breaks if `awkward`."""
    words = vocabulary(rng)
    lengths = np.maximum(1, rng.lognormal(np.log(mean_words) - 0.4, 0.9, n).astype(int))
    weight = 1 / np.arange(1, len(words) + 1)
    cumulative = np.cumsum(weight / weight.sum())
    picks = np.searchsorted(cumulative, rng.random(int(lengths.sum())))
    np.minimum(picks, len(words) - 1, out=picks)
    if awkward:
        words = [*words, '"quoted"', "so, well,", "end.\n\n", "100%", "== Talk ==\n", "it's"]
        is_awkward = rng.random(len(picks)) < 0.06
        picks[is_awkward] = rng.integers(len(words) - 6, len(words), int(is_awkward.sum()))
    pool = np.array(words, dtype=object)
    out, at = [], 0
    for length in lengths:
        out.append(" ".join(pool[picks[at : at + length]]))
        at += length
    return out


def ellipse_runs(height: int, width: int, cy: float, cx: float, ry: float, rx: float) -> str:
    """Run lengths (column by column, from 1) of a filled ellipse inside the image."""
    out = []
    for x in range(max(0, int(np.ceil(cx - rx))), min(width - 1, int(cx + rx)) + 1):
        half = ry * np.sqrt(max(0.0, 1 - ((x - cx) / rx) ** 2))
        top, bottom = max(0, int(np.ceil(cy - half))), min(height - 1, int(cy + half))
        if bottom >= top:
            out.append(f"{x * height + top + 1} {bottom - top + 1}")
    return " ".join(out)
