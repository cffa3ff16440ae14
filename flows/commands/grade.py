"""mlebench grade."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from common.causes import cause_of, explain
from common.errors import UsageError, UserError
from common.texts import read_text
from common.units import listed
from competitions import registry
from competitions.editions import Edition
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import GradingOptions, StoreOptions, option, takes
from flows.commands.quantities import GIBIBYTES, POSITIVE_DURATION
from flows.commands.submissions import Fetch, Line, followed, local_copies, parse_line
from flows.commands.types import whole
from storage.dataset import Dataset

if TYPE_CHECKING:
    from grading.grade import Grade
    from grading.workers import GradingLimits
    from storage.store import Store

_FREE_MEMORY_BYTES = 2 << 30
"""Free memory for each grading process. With the real data, no grader in the catalog takes more than half of it."""
_COMMENT_MARKS = ("#", "//")  # lines that begin so are not read


@dataclass(frozen=True)
class ProcessOptions:
    """Options of the grading processes: their number and their limits."""

    workers: Annotated[
        int | None,
        option(
            "--workers",
            type=whole(1),
            help="Number of grading processes. Default: one for each core, as far as each has 2 GiB of free memory.",
        ),
    ] = None
    memory: Annotated[
        int | None,
        option(
            "--memory",
            type=GIBIBYTES,
            metavar="SIZE",
            help="Memory limit of a process, e.g. 8GiB; without a unit in GiB. Default: depends on the competition.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        option(
            "--time-limit",
            type=POSITIVE_DURATION,
            metavar="TIME",
            help="Time limit for reading a submission; scoring it may take 12 times as long. Default: 5m.",
        ),
    ] = None

    @property
    def count(self) -> int:
        """The number of grading processes."""
        if self.workers is not None:
            return self.workers
        import psutil

        return max(1, min(os.cpu_count() or 1, psutil.virtual_memory().available // _FREE_MEMORY_BYTES))

    def limits(self) -> GradingLimits:
        """The limits of a grading process."""
        from grading.workers import GradingLimits

        seconds = self.time_limit or 300.0
        return GradingLimits(memory_bytes=self.memory, read_seconds=seconds, grade_seconds=12 * seconds)


@click.command("grade")
@click.option(
    "--submission",
    required=True,
    type=click.Path(path_type=Path),
    help="JSONL file: competition_id and submission_path on each line; optionally seed, run_id, logs_path, code_path, "
    "and edition and dataset_key of the run, which is then graded with the answers of that dataset only.",
)
@click.option(
    "--output-dir", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory for the report."
)
@click.option(
    "--fetch-urls",
    is_flag=True,
    help="Read submissions at the URLs in the file (https://, s3://, ...) with your credentials. Default: only those "
    "of runs in the store.",
)
@takes(processes=ProcessOptions, grading=GradingOptions, storage=StoreOptions)
@takes_json
def command(
    submission: Path,
    output_dir: Path,
    fetch_urls: bool,
    processes: ProcessOptions,
    grading: GradingOptions,
    storage: StoreOptions,
) -> int:
    """Grade every line of a JSONL file and write `<time>_grading_report.json`.

    Each submission is read in a separate process with limits on memory, time and size. Lines that begin with # or //
    are comments. A bad line or submission does not stop the rest; a file that is not UTF-8 is refused. Exit code 1
    if any line could not be graded; an invalid submission is a result.
    """
    from grading.report import summarise

    if not submission.is_file():
        raise UsageError(f"{submission} does not exist")
    items, failed = _items(submission)
    if not items and not failed:
        raise UserError(f"{submission} has no submissions: nothing was graded")
    store = storage.open(new=True)
    grades: dict[int, Grade] = {}
    for dataset in dict.fromkeys(_made_on(line, grading.edition) for line in items.values()):
        lines_of_dataset = {
            number: line for number, line in items.items() if _made_on(line, grading.edition) == dataset
        }
        try:
            grades_of_dataset = _grade(dataset, lines_of_dataset, store, fetch_urls, processes, grading)
            grades |= grades_of_dataset
            failed += len(lines_of_dataset) - len(grades_of_dataset)
        except Exception as error:
            if cause_of(error).fault == "program":
                raise
            names = f"line{'s' * (len(lines_of_dataset) > 1)} {listed(list(lines_of_dataset))}"
            click.echo(f"{names}: {explain(error)}", err=True)
            failed += len(lines_of_dataset)
    failed += sum(grade.outcome == "failed" for grade in grades.values())
    output_dir.mkdir(parents=True, exist_ok=True)
    report = summarise(grades[number].report for number in sorted(grades))
    target = report.write(output_dir)
    for name, total in report.totals.items() if grades else ():
        click.echo(f"{name}: {total}", err=True)
    say(str(target))
    answer(json.loads(report.to_json()))
    return 1 if failed else 0


def _items(path: Path) -> tuple[dict[int, Line], int]:
    """The lines by number, and how many are unusable."""
    items, failed = {}, 0
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if not text.strip() or text.lstrip().startswith(_COMMENT_MARKS):
            continue
        try:
            items[number] = parse_line(text)
        except UserError as error:
            click.echo(f"line {number}: {error}", err=True)
            failed += 1
    return items, failed


def _made_on(line: Line, edition: Edition) -> Dataset:
    """The dataset that a submission was made on; without a key if the line does not name it."""
    return Dataset(line.edition or edition, line.competition_id, line.dataset_key)


def _grade(
    made_on: Dataset,
    lines: dict[int, Line],
    store: Store,
    fetch_urls: bool,
    processes: ProcessOptions,
    grading: GradingOptions,
) -> dict[int, Grade]:
    """Grade the submissions that were made on one dataset.

    Raises `UserError` if the competition is unknown or not prepared, if the store no longer has the dataset, or if the
    chosen leaderboard was not fetched.
    """
    from grading.workers import GradingPool
    from storage.datasets.local_copy import local_copy
    from storage.datasets.prepared import answers_to, require_consistent
    from tasks.wiring.context import local_cache
    from tasks.wiring.grades import chosen_thresholds

    name = made_on.competition_id
    competition = registry.get(name)
    options: dict[str, Any] = {
        "limits": processes.limits(),
        "workers": processes.count,
        "thresholds": chosen_thresholds(store, competition.facts, grading.leaderboard),
    }
    grades: dict[int, Grade] = {}
    order: deque[int] = deque()

    def fetched(fetch: Fetch) -> Iterator[tuple[Path | None, str | None]]:
        for number, line in lines.items():
            try:
                path = fetch(line.submission_path)
                path = path and followed(path, store)
            except (UserError, OSError) as error:  # the other lines are not affected
                click.echo(f"line {number}: {error}", err=True)
                continue
            order.append(number)
            yield path, line.submission_path

    if made_on.key is not None:
        require_consistent(store, made_on)
    dataset = answers_to(store, made_on, grading.edition, "its run")
    with (
        local_copy(store, dataset, "private", local_cache()) as prepared,
        local_copies(store, fetch_urls) as fetch,
        GradingPool(competition, prepared, grading.edition, **options) as grader,
    ):
        for grade in grader.grade_all(fetched(fetch)):
            number = order.popleft()
            grades[number] = grade
            result = grade.report.score if grade.outcome == "valid" else f"{grade.outcome}: {grade.message}"
            note = f" ({grade.message})" if grade.outcome == "valid" and grade.message else ""
            click.echo(f"line {number}: {name}: {result}{note}", err=True)
            if grade.detail:
                click.echo(grade.detail, err=True)
    return grades
