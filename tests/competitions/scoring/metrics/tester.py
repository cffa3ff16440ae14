"""One tester for all metrics: the same families of input, and what must happen for each of them.

A `MetricCase` declares, for one metric, an independent reference, how arguments of each family are made, and the
outcome of families in which the reference does not decide.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pytest

Arguments = tuple[Any, ...]
Family = Literal["valid", "shuffled", "ties", "nan", "empty", "one class"]
FAMILIES: tuple[Family, ...] = get_args(Family)


@dataclass(frozen=True)
class Same:
    """The metric gives what the reference gives."""


@dataclass(frozen=True)
class Gives:
    """The metric gives this value."""

    value: Any


@dataclass(frozen=True)
class Raises:
    """The metric raises a ValueError whose message matches."""

    match: str


@dataclass(frozen=True)
class NotApplicable:
    """The family makes no sense for the metric."""

    reason: str


Outcome = Same | Gives | Raises | NotApplicable
Outcomes = Mapping[Family, Outcome]
NO_ROWS = NotApplicable("a pair, not rows")
NO_ORDER = NotApplicable("no scores that could be equal")
NO_NUMBERS = NotApplicable("the input cannot hold NaN")
NO_CLASSES = NotApplicable("the input has no classes")


def permuted(rows: Any, order: np.ndarray) -> Any:
    """Rows of an array or list in another order."""
    return rows[order] if isinstance(rows, np.ndarray) else [rows[i] for i in order]


def shuffle_rows(arguments: Arguments, order: np.ndarray) -> Arguments:
    """All arguments are rows about the same things."""
    return tuple(permuted(rows, order) for rows in arguments)


@dataclass(frozen=True)
class MetricCase:
    """A metric and all that is expected of it."""

    metric: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: Callable[[Family, np.random.Generator], Arguments]
    outcomes: Outcomes = field(default_factory=dict)
    """What must happen in a family; `Same` where nothing is said."""
    elementwise: bool = False
    """One value a row, so that shuffled rows give shuffled values."""
    shuffle: Callable[[Arguments, np.ndarray], Arguments] = shuffle_rows
    tolerance: float = 1e-9

    @property
    def name(self) -> str:
        return f"{self.metric.__module__.rpartition('.')[2]}.{self.metric.__name__}"

    def applies(self, family: Family) -> bool:
        """Whether the family makes sense for the metric."""
        return not isinstance(self.outcomes.get(family), NotApplicable)

    def test(self, family: Family, seed: int) -> None:
        """Fail unless what is declared for the family happens."""
        rng = np.random.default_rng(seed)
        outcome = self.outcomes.get(family, Same())
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # means of nothing, constant input: the values count here
            arguments = self.arguments("valid" if family == "shuffled" else family, rng)
            if isinstance(outcome, Raises):
                with pytest.raises(ValueError, match=outcome.match):
                    self.metric(*arguments)
            elif isinstance(outcome, Gives):
                self._agree(self.metric(*arguments), outcome.value)
            elif family == "shuffled":
                order = rng.permutation(len(arguments[0]))
                before = self.metric(*arguments)
                self._agree(self.metric(*self.shuffle(arguments, order)), before[order] if self.elementwise else before)
            else:
                self._agree(self.metric(*arguments), self.reference(*arguments))

    def _agree(self, found: Any, expected: Any) -> None:
        expected = np.asarray(expected, dtype=float)
        assert np.shape(found) == expected.shape
        assert np.asarray(found, dtype=float) == pytest.approx(
            expected, rel=self.tolerance, abs=self.tolerance, nan_ok=True
        )
