"""Outcomes of the work in a flow, and how a flow with failures ends."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from common import progress
from common.causes import cause_of, explain
from common.errors import Cancelled, UserError
from common.units import unnamed
from competitions.errors import Unavailable

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture

Result = Literal["done", "reused", "unavailable", "cancelled", "failed"]
"""`unavailable`: the download cannot be had, as competition.yaml says; the others go on without it."""
_BAD_ENDS: tuple[Result, ...] = ("failed", "cancelled", "unavailable")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one piece of work: a row of the table that a flow ends with."""

    what: str
    result: Result
    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", unnamed(self.what, self.message))

    @property
    def usable(self) -> bool:
        """Whether the work can be continued."""
        return self.result in ("done", "reused")


class PartlyFailed(UserError):
    """Some of the work failed or was cancelled; everything else is finished. See `outcomes`."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        ends = {end: [outcome for outcome in outcomes if outcome.result == end] for end in _BAD_ENDS}
        counts = ", ".join(f"{len(ended)} of {len(outcomes)} {end}" for end, ended in ends.items() if ended)
        first = [outcome for ended in ends.values() for outcome in ended][:3]
        named = "; ".join(f"{outcome.what}: {outcome.message}".removesuffix(": ") for outcome in first)
        super().__init__(f"{counts}: {named}")

    def __reduce__(self) -> tuple[Any, ...]:
        return PartlyFailed, (self.outcomes,)


@contextlib.contextmanager
def capture_errors(what: str, outcomes: dict[str, Outcome]) -> Iterator[None]:
    """An error in the block becomes the outcome of this piece of work; the others go on."""
    try:
        yield
    except Exception as error:
        if cause_of(error).fault == "program":
            logging.getLogger("mlebench").exception("%s", what)
        result = _result_of(error)
        outcomes[what] = Outcome(what, result, explain(error))
        progress.report(what, result, outcomes[what].message)


def outcome_of(what: str, futures: Iterable[PrefectFuture[Any]]) -> Outcome:
    """The outcome of a chain of task runs: done if all have completed, otherwise that of the first that did not."""
    for future in futures:
        future.wait()
        if not future.state.is_completed():
            return Outcome(what, _end_of(future.state), cause(future.state))
    return Outcome(what, "done")


def _end_of(state: Any) -> Result:
    try:
        state.result()
    except Exception as error:
        return _result_of(error)
    return "failed"


def _result_of(error: Exception) -> Result:
    return (
        "cancelled" if isinstance(error, Cancelled) else "unavailable" if isinstance(error, Unavailable) else "failed"
    )


def cause(state: Any) -> str:
    """Why a state is not completed, in one line. For bugs, the line starts with the type of the exception."""
    try:
        state.result()
    except Exception as error:
        return explain(error)
    return str(state.message)


def show_outcomes(key: str, outcomes: Sequence[Outcome]) -> None:
    """Show outcomes in the Prefect UI, in the artifact `key`."""
    # Prefect takes long to import, and a command that reuses everything does not need it.
    from tasks.wiring.artifacts import show_table
    from tasks.wiring.prefect_server import shown

    with shown("the table of outcomes"):
        show_table(key, [asdict(outcome) for outcome in outcomes], f"Outcomes: {key}")


def finish(key: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """End a flow: show the outcomes in the Prefect UI. Raises as `require_finished`."""
    show_outcomes(key, outcomes)
    return require_finished(outcomes)


def require_finished(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes as a list. Raises `PartlyFailed` if anything failed or was cancelled, or if nothing can be had."""
    results = {outcome.result for outcome in outcomes}
    if results & {"failed", "cancelled"} or results == {"unavailable"}:
        raise PartlyFailed(outcomes)
    return list(outcomes)
