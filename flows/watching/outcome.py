"""Outcomes of the work in a flow, and how a flow with failures ends."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from common import progress
from common.causes import cause_of, explain
from common.errors import UserError
from common.units import unnamed

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture

Result = Literal["done", "reused", "failed"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one piece of work: a row of the table that a flow ends with."""

    what: str
    result: Result
    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", unnamed(self.what, self.message))


class PartlyFailed(UserError):
    """Some of the work failed; everything else is finished. See `outcomes`."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        failed = [outcome for outcome in outcomes if outcome.result == "failed"]
        super().__init__(
            f"{len(failed)} of {len(outcomes)} failed: " + "; ".join(f"{o.what}: {o.message}" for o in failed[:3])
        )

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
        outcomes[what] = Outcome(what, "failed", explain(error))
        progress.report(what, "failed", outcomes[what].message)


def outcome_of(what: str, futures: Iterable[PrefectFuture[Any]]) -> Outcome:
    """The outcome of a chain of task runs: failed if one of them did not complete, otherwise done."""
    for future in futures:
        future.wait()
        if not future.state.is_completed():
            return Outcome(what, "failed", cause(future.state))
    return Outcome(what, "done")


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
    """End a flow: show the outcomes in the Prefect UI. Raises `PartlyFailed` if anything failed."""
    show_outcomes(key, outcomes)
    if any(outcome.result == "failed" for outcome in outcomes):
        raise PartlyFailed(outcomes)
    return list(outcomes)
