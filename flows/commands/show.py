"""mlebench show."""

from __future__ import annotations

import click

from common.errors import UsageError, UserError, close_matches
from common.units import data_size, elapsed
from flows.commands.advice import advised
from flows.commands.answers import answer, takes_json
from flows.commands.completion import RUNS
from flows.commands.options import StoreOptions, takes
from flows.commands.show_episode import show_episode
from grading.words import number, score_and_medal
from storage.runs.files import SUBMISSION
from storage.runs.folders import RunFolder, StoredRun, folders, similar_groups
from storage.runs.records import GradeRecord, RunRecord
from storage.store import Store, check_run_group
from tasks.wiring.in_progress import RunInProgress, in_progress
from tasks.wiring.requests import switched_on

_SHOWN_FIELDS = (
    "agent",
    "edition",
    "backend",
    "network",
    "status",
    "message",
    "exit_code",
    "started_at",
    "finished_at",
    "duration_seconds",
    "time_limit_seconds",
    "split",
    "split_version",
    "check_marks",
    "tries",
    "resumed",
)


def run_folder(store: Store, run: str) -> RunFolder:
    """The folder of the run GROUP/COMPETITION/SEED. Raises `UsageError` for a name of another form."""
    parts = run.strip("/").split("/")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise UsageError(f"run {run!r}: give GROUP/COMPETITION/SEED, as `mlebench ls GROUP` lists it")
    return RunFolder(store, parts[0], parts[1], int(parts[2]))


def unknown_run(store: Store, folder: RunFolder) -> UserError:
    """The error about a run that is neither finished nor in progress, with names that are like its name."""
    groups = store.folder_names("runs")
    if folder.run_group in groups:
        close = close_matches(folder.name, (run.name for run in folders(store, folder.run_group)))
    else:
        close = similar_groups(folder.run_group, groups)
    advice = f"`{advised('mlebench ls', store)}` lists the groups, and `ls GROUP` the runs of one"
    return UserError(f"no run {folder.name} in {store.root}, finished or in progress; {advice}.{close}")


@click.command("show")
@click.argument("run", metavar="RUN", shell_complete=RUNS)
@takes(storage=StoreOptions)
@takes_json
def command(run: str, storage: StoreOptions) -> None:
    """Show a run, GROUP/COMPETITION/SEED: how it ended, its grade, and its files with their sizes.

    Of a run in progress: since when it runs, and where. Of an episode, NAME/EPISODE: how it ended, its reward, its
    actions and what the agent was told.
    """
    from common.cleaning import clean

    store = storage.open()
    name, slash, episode_id = run.strip("/").partition("/")
    if slash and "/" not in episode_id and show_episode(store, check_run_group(name), episode_id):
        return
    folder = run_folder(store, run)
    record = folder.read_run()
    live_run = next(
        (candidate for candidate in in_progress(store, folder.run_group) if candidate.folder == folder), None
    )
    if record is None and live_run is None:
        raise unknown_run(store, folder)
    grade = folder.read_grade() if record is not None else None
    top = store.top.path(store.relative(folder.url)) + "/"
    files = {str(path).removeprefix(top): facts["size"] for path, facts in store.top.fs.find(top, detail=True).items()}
    if answer(
        {
            "run": folder.name,
            "in_progress": live_run
            and {
                "state": live_run.state,
                "host": live_run.host,
                "since": live_run.since,
                "tries": live_run.tries,
                "resumed": live_run.resumed,
            },
            "record": record and record.to_json(),
            "grade": grade and grade.to_json(),
            "url": folder.url,
            "files": files,
        }
    ):
        return
    if live_run is not None:
        _show_going(live_run, store)
    if record is None:
        return
    fields = record.to_json()
    for name in _SHOWN_FIELDS:
        if fields.get(name) is not None:
            value = elapsed(fields[name]) if isinstance(fields[name], float) else clean(fields[name])
            click.echo(f"{name.removesuffix('_seconds'):<20}{value}")
    if conditions := switched_on([record]):
        click.echo(f"{'conditions':<20}{', '.join(conditions)}")
    score, medal = score_and_medal(grade.to_row() if grade else None)
    click.echo(f"{'score':<20}{score}")
    click.echo(f"{'medal':<20}{medal}")
    if record.feedback is not None:
        _show_feedback(record, grade, StoredRun(folder, record).source)
    if grade and grade.message:
        click.echo(f"{'grader says':<20}{clean(grade.message)}")
    if grade and grade.gold_threshold is not None:
        limits = grade.to_row()
        thresholds = (
            f"{name} {number(limits[f'{name}_threshold'])}" for name in ("gold", "silver", "bronze", "median")
        )
        click.echo(f"{'thresholds':<20}{', '.join(thresholds)}")
    click.echo(f"\n{folder.url}")
    for path, size in sorted(files.items()):
        click.echo(f"{data_size(size):>9}  {path}")


def _show_feedback(record: RunRecord, grade: GradeRecord | None, source: str) -> None:
    """What the agent was told, and what counts of it."""
    from common.cleaning import clean

    told = {
        "public rows": f"{100 * (record.feedback or 0):g} % of the test units; the score is on the others",
        "public scores a day": record.feedback_calls_per_day,
        "final choice": clean(", ".join(record.final)) if record.final else f"none: {SUBMISSION} counts",
    }
    if grade is not None:
        told["file that counts"] = clean((grade.submission_path or "").removeprefix(f"{source}/")) or None
        if grade.public_score is not None:
            told["public score"] = f"{number(grade.public_score)}, does not count"
        if grade.score_with_public_rows is not None:
            told["score on all rows"] = f"{number(grade.score_with_public_rows)}, not comparable with other scores"
    for name, value in told.items():
        if value is not None:
            click.echo(f"{name:<20}{value}")


def _show_going(live_run: RunInProgress, store: Store) -> None:
    click.echo(f"{'status':<20}{live_run.state}")
    click.echo(f"{'host':<20}{live_run.host}")
    if live_run.since is not None and live_run.seconds is not None:
        click.echo(f"{'started_at':<20}{live_run.since.isoformat()}")
        click.echo(f"{'elapsed':<20}{elapsed(live_run.seconds)}")
    for name, count in (("tries", live_run.tries), ("resumed", live_run.resumed)):
        if count is not None:
            click.echo(f"{name:<20}{count}")
    for command in ("logs", "cancel"):
        click.echo(f"{command:<20}{advised(f'mlebench {command} {live_run.folder.name}', store)}")
