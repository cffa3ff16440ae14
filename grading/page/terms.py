"""The words of the page that a newcomer cannot know: explained once, at its end, and linked where they stand."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from markupsafe import Markup

_ALWAYS = ("agent", "seed", "split", "medal", "percentile", "interval", "rate", "score")
_LINK = Markup('<a class="term" href="#t-{}">{}</a>')


class Terms:
    """The terms of one page: links to them, and those that are linked, which are listed."""

    def __init__(self) -> None:
        """No term but those of every page."""
        self._linked = set(_ALWAYS)

    def __call__(self, key: str, text: str) -> Markup:
        """A link from `text` to a term of terms.csv, which is listed from now on. Raises `KeyError` for others."""
        _ = _terms()[key]
        self._linked.add(key)
        return _LINK.format(key, text)

    def listed(self) -> list[tuple[str, str, str]]:
        """Key, words and meaning of the terms to list."""
        return [(key, *told) for key, told in _terms().items() if key in self._linked]


@cache
def _terms() -> dict[str, tuple[str, str]]:
    text = resources.files("grading.page").joinpath("terms.csv").read_text("utf-8")
    return {row["key"]: (row["words"], row["meaning"]) for row in csv.DictReader(text.splitlines())}
