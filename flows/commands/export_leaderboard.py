"""mlebench export --format leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import click

from common.errors import UserError
from competitions.editions import Edition
from flows.commands.options import option

if TYPE_CHECKING:
    from storage.store import Store


@dataclass(frozen=True)
class Disclosure:
    """What the store does not know about a submission to the public leaderboard."""

    TITLE: ClassVar[str] = "Submission to the leaderboard"
    facts: Annotated[
        tuple[str, ...],
        option(
            "--fact",
            multiple=True,
            metavar="NAME=VALUE",
            help="What the records do not say, such as --fact source-code=https://...; repeatable. The export lists "
            "what is missing.",
        ),
    ] = ()


def write_leaderboard(
    store: Store, run_group: str, edition: Edition | None, folder: Path, disclosure: Disclosure
) -> Iterator[Path]:
    """Write a submission for each agent of a group: its text, and a folder with its grading reports; yields the paths.

    Asks for what is missing.

    Raises `click.UsageError` for a fact of another form than NAME=VALUE, and `UserError` for a group with feedback.
    """
    from tasks.export.facts import parse_facts
    from tasks.export.gathered import gather
    from tasks.export.leaderboard import write_submission

    try:
        stated = parse_facts(disclosure.facts)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    exported = gather(store, run_group, edition)
    if any(series.has_feedback for series in exported):
        raise UserError(
            f"{run_group} ran with feedback: agents were told scores on a part of the test rows, and its scores are "
            "those on the rest, which the leaderboard does not have. Run a group without --feedback for it, or export "
            "this one for other tools, such as --format mlflow, which state the condition"
        )
    for series in exported:
        paths, missing = write_submission(store, series, stated, folder)
        yield from paths
        for fact in missing:
            click.echo(f"mlebench: {fact.question}", err=True)
