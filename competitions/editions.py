"""Editions of the benchmark.

``v1`` reproduces the published benchmark bit for bit, its bugs and leaks included, so that scores stay comparable;
``v2`` differs from it only in the known issues that ``competition.yaml`` marks as fixed in v2.
"""

from __future__ import annotations

from typing import Literal, get_args

Edition = Literal["v1", "v2"]
EDITIONS: tuple[Edition, ...] = get_args(Edition)

VERSIONS: dict[Edition, str] = {"v1": "v1.0", "v2": "v2.1"}
"""The version of each edition, which records and reports state. docs/editions.md says what changed in each."""
