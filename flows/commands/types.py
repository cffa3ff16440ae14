"""The types of options and arguments, whose messages and help are in plain words: whole numbers, names of groups."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from common.errors import UsageError, UserError
from competitions.editions import EDITIONS
from flows.commands.completion import GROUPS
from storage.store import check_run_group

if TYPE_CHECKING:
    import pandas as pd


class _Whole(click.ParamType):
    """A whole number within bounds. For that, click has the name INTEGER RANGE, and messages such as x>=1."""

    name = "number"

    def __init__(self, least: int, most: float) -> None:
        bounds = f"of at least {least}" if math.isinf(most) else f"from {least} to {most:g}"
        self._least, self._most, self._wanted = least, most, f"a whole number {bounds}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = self._least - 1
        if not self._least <= number <= self._most:
            self.fail(f"{value!r} is not {self._wanted}", param, ctx)
        return number


def whole(least: int = 0, most: float = math.inf) -> click.ParamType:
    """The type of a whole number within bounds."""
    return _Whole(least, most)


class _RunGroup(click.ParamType):
    """The name of a run group. A path such as GROUP/ID would be read as folders of the store that are no groups."""

    name = "run group"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return check_run_group(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return GROUPS(ctx, param, incomplete)


class _GradedGroup(_RunGroup):
    """The name of a run group, or GROUP@EDITION for its grades of one edition."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        group, at, edition = str(value).partition("@")
        if at and edition not in EDITIONS:
            raise UsageError(f"{value!r}: unknown edition {edition!r}; editions are {', '.join(EDITIONS)}")
        return f"{check_run_group(group)}{at}{edition}"


RUN_GROUP = _RunGroup()
GRADED_GROUP = _GradedGroup()


def one_agent(run_group: str, grades: pd.DataFrame) -> None:
    """Raise `UserError` if the grades of a group are of several agents, where they would be averaged."""
    agents = sorted(set(grades["agent"]))
    if len(agents) > 1:
        names = ", ".join(agents)
        raise UserError(f"group {run_group!r} has runs of several agents ({names}); mlebench report tells them apart")
