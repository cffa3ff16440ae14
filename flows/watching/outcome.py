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

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture

Result = Literal["done", "reused", "cancelled", "failed"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one piece of work: a row of the table that a flow ends with."""

    what: str
    result: Result
    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", unnamed(self.what, self.message))


class PartlyFailed(UserError):
    """Some of the work failed or was cancelled; everything else is finished. See `outcomes`."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        ends = {end: [outcome for outcome in outcomes if outcome.result == end] for end in ("failed", "cancelled")}
        counts = ", ".join(f"{len(ended)} of {len(outcomes)} {end}" for end, ended in ends.items() if ended)
        first = [*ends["failed"], *ends["cancelled"]][:3]
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
        outcomes[what] = Outcome(what, "failed", explain(error))
        progress.report(what, "failed", outcomes[what].message)


def outcome_of(what: str, futures: Iterable[PrefectFuture[Any]]) -> Outcome:
    """The outcome of a chain of task runs: done if all have completed, otherwise failed or cancelled."""
    for future in futures:
        future.wait()
        if not future.state.is_completed():
            return Outcome(what, "cancelled" if _is_cancelled(future.state) else "failed", cause(future.state))
    return Outcome(what, "done")


def _is_cancelled(state: Any) -> bool:
    try:
        state.result()
    except Cancelled:
        return True
    except Exception:
        return False
    return False


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
    """The outcomes as a list. Raises `PartlyFailed` if anything failed or was cancelled."""
    if any(outcome.result in ("failed", "cancelled") for outcome in outcomes):
        raise PartlyFailed(outcomes)
    return list(outcomes)
