"""The JSONL file of submissions that `mlebench export --format submissions` writes, for `mlebench grade`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import click

from common.errors import UsageError, UserError
from common.names import shown
from common.plain_json import read_json
from common.units import counted
from flows.commands.answers import answer, say
from flows.commands.options import option
from flows.commands.submissions import Line, unusable
from storage.runs.folders import no_runs, stored_runs
from storage.store import Store


@dataclass(frozen=True)
class SubmissionOptions:
    """The file of submissions, and where the submissions are."""

    TITLE: ClassVar[str] = "File of submissions"
    metadata: Annotated[
        Path | None,
        option(
            "--metadata",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Read metadata.json of a published run folder, instead of a RUN_GROUP in the store.",
        ),
    ] = None
    output: Annotated[
        Path,
        option(
            "--output",
            type=click.Path(path_type=Path),
            show_default=True,
            help="The JSONL file that --format submissions writes, in --output-dir if that is given.",
        ),
    ] = Path("submission.jsonl")
    copy_to: Annotated[
        Path | None,
        option(
            "--copy-to",
            type=click.Path(file_okay=False, path_type=Path),
            help="Copy submissions to this directory, for a store that is not on this machine: "
            "RUN_GROUP/ID/SEED/submission.csv.",
        ),
    ] = None
    rel_log_path: Annotated[
        str, option("--rel-log-path", show_default=True, help="Log of a run in its folder, with --metadata.")
    ] = "logs/agent.log"
    rel_code_path: Annotated[
        str, option("--rel-code-path", show_default=True, help="Code of a run in its folder, with --metadata.")
    ] = "code/train.py"


def write_submissions(store: Store, run_group: str | None, options: SubmissionOptions) -> None:
    """Write a line for each run of the group, or of the published run folder that the options name.

    Paths are local if the store is on this machine, and URLs of runs in the store otherwise; `mlebench grade` reads
    both.
    """
    if options.metadata:
        if not options.metadata.is_file():
            raise UsageError(f"--metadata {options.metadata} does not exist")
        lines = list(_published(options.metadata, options.rel_log_path, options.rel_code_path))
    else:
        lines = list(_recorded(store, str(run_group), options.copy_to))
        if not lines:
            raise no_runs(store, str(run_group), "finished runs")
    output = options.output
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(line.model_dump_json(exclude_unset=True) + "\n" for line in lines), "utf-8")
    submission_count = sum(line.submission_path is not None for line in lines)
    say(f"{output}: {counted(len(lines), 'run')}, {submission_count} with a submission")
    if feedback := 0 if options.metadata else sum(r.record.feedback is not None for r in stored_runs(store, run_group)):
        say(
            f"note: {counted(feedback, 'run')} had feedback, whose scores leave the public rows out; mlebench grade "
            "scores submission.csv on all rows"
        )
    answer({"path": output, "runs": len(lines), "submissions": submission_count})


def _published(metadata: Path, logs: str, code: str) -> Iterator[Line]:
    """The runs in a folder with the published layout, `<competition>_<something>/submission/submission.csv`."""
    try:
        runs = list(read_json(metadata)["runs"])
    except (KeyError, TypeError) as error:
        raise UserError(f'{metadata} is not a metadata.json: it needs an object with "runs"') from error
    for run_id in map(str, runs):
        if reason := unusable(run_id):
            raise UserError(f"{metadata}: {shown(run_id)} {reason}")
        folder = metadata.parent / run_id

        def named(path: str, folder: Path = folder) -> str | None:
            return (folder / path).as_posix() if (folder / path).exists() else None

        yield Line(
            competition_id=run_id.split("_")[0],
            submission_path=named("submission/submission.csv"),
            logs_path=named(logs),
            code_path=named(code),
            run_id=run_id,
        )


def _recorded(store: Store, run_group: str, copy_to: Path | None) -> Iterator[Line]:
    for run in stored_runs(store, run_group):
        record = run.record
        paths = {
            name: _where(store, f"{run.source}/{part}")
            for name, part in (("submission_path", "submission.csv"), ("logs_path", "logs"), ("code_path", "code"))
        }
        if copy_to is not None and paths["submission_path"]:
            target = copy_to / run_group / record.competition_id / str(record.seed) / "submission.csv"
            target.parent.mkdir(parents=True, exist_ok=True)
            store.top.fs.get_file(store.top.path(store.relative(f"{run.source}/submission.csv")), str(target))
            paths["submission_path"] = str(target.absolute())
        yield Line(
            competition_id=record.competition_id,
            **paths,
            run_id=record.run_id,
            seed=record.seed,
            edition=record.edition,
            dataset_key=record.dataset_key,
        )


def _where(store: Store, url: str) -> str | None:
    if not store.exists(url):
        return None
    return store.shown(url)
