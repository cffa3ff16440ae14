"""Outcomes of the work in a flow, and how a flow with failures ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from prefect.artifacts import create_table_artifact
from prefect.futures import PrefectFuture

from common.causes import explain
from common.errors import UserError

Result = Literal["done", "reused", "failed"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one piece of work: a row of the table that a flow ends with."""

    what: str
    result: Result
    message: str = ""


class PartlyFailed(UserError):
    """Some of the work failed; everything else is finished. See `outcomes`."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        failed = [each for each in outcomes if each.result == "failed"]
        super().__init__(
            f"{len(failed)} of {len(outcomes)} failed: " + "; ".join(f"{o.what}: {o.message}" for o in failed[:3])
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return PartlyFailed, (self.outcomes,)


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


def finish(key: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """End a flow: show the outcomes in the Prefect UI. Raises `PartlyFailed` if anything failed."""
    create_table_artifact(table=[asdict(each) for each in outcomes], key=key, description=f"Outcomes: {key}")
    if any(each.result == "failed" for each in outcomes):
        raise PartlyFailed(outcomes)
    return list(outcomes)
