"""mlebench check."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from common.errors import UsageError, UserError
from common.plain_json import parse_json
from common.units import counted
from competitions import registry
from competitions.editions import Edition
from competitions.errors import DownloadError
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import EDITION, IDS, Selection, StoreOptions, option, takes

if TYPE_CHECKING:
    from competitions.competition import Competition
    from grading.competition_checks.measured import Measured
    from grading.competition_checks.run import Result


@dataclass(frozen=True)
class CheckedData:
    """Options for the data that are checked."""

    raw: Annotated[
        Path | None,
        option("--raw", type=click.Path(exists=True, path_type=Path), help="The download: an archive or a directory."),
    ] = None
    raw_dir: Annotated[
        Path | None,
        option(
            "--raw-dir",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="A directory of downloads: <id>.zip files, or folders <id>/ with their content. Default: "
            "MLEBENCH_RAW_DIR.",
        ),
    ] = None
    prepared: Annotated[
        Path | None,
        option(
            "--prepared",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Check this prepared dataset (with public/ and private/) instead of preparing a download.",
        ),
    ] = None
    params: Annotated[
        str | None,
        option(
            "--params",
            metavar="JSON",
            help="Parameters of prepare.py, for a download that is smaller than the original.",
        ),
    ] = None
    variants: Annotated[
        bool,
        option(
            "--variants",
            is_flag=True,
            help="Check a small variant (see --rows of `mlebench prepare`) of the prepared dataset instead, by default "
            "of that in the store. A competition that has none is no failure. What a person has to judge is "
            "left out, from chance to baseline: it is that of the whole competition.",
        ),
    ] = False
    page: Annotated[
        Path | None,
        option(
            "--page",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write an HTML page with results, charts and examples of the data. It has answers of the test set.",
        ),
    ] = None


@click.command("check")
@IDS
@takes(selection=Selection, data=CheckedData)
@EDITION.named("edition", default="v1")
@takes(storage=StoreOptions)
@takes_json
def command(
    ids: tuple[str, ...],
    selection: Selection,
    data: CheckedData,
    edition: Edition,
    storage: StoreOptions,
) -> int:
    """Self-test competitions: prepare each twice in a temporary directory, then grade many kinds of submissions.

    Checks facts and description, the sample submission and the perfect one, shuffled rows, the absence of private data
    and of answers in public files, and about 200 careless or malicious submissions. Then says what a person has to
    judge: chance, leaks, copies, noise, the leaderboard's scale, and what the baseline agent reaches in a minute. With
    --variants, a small variant of each is derived and checked instead. A download is taken from the store if it has
    one. Exit code 1 if a check fails.
    """
    selected_ids = selection.with_ids(ids).ids()
    if (data.raw or data.prepared or data.params or data.page) and len(selected_ids) != 1:
        raise UsageError("--raw, --prepared, --params and --page require exactly one competition")
    if data.page and data.variants:
        raise UsageError("--page shows a whole competition; leave out --variants")
    if data.page and not data.page.resolve().parent.is_dir():
        raise UsageError(f"--page: there is no directory {data.page.parent}")
    overrides = _parameters(data.params)
    prepared = dict.fromkeys(selected_ids, data.prepared)
    if data.variants and not (data.prepared or data.raw or data.raw_dir):
        prepared = {name: _prepared(name, edition, storage) for name in selected_ids}
    downloads = {
        name: data.raw or (None if prepared[name] else _download(registry.get(name), data.raw_dir, edition, storage))
        for name in selected_ids
    }
    from grading.competition_checks.run import check_download, check_prepared, measured_of
    from grading.competition_checks.variants import check_variant
    from storage.datasets import prepare
    from tasks.baseline_submission import baseline_submission

    failed = noted = skipped = 0
    for name in selected_ids:
        competition = registry.get(name)
        say(f"{name} ({edition})")
        with tempfile.TemporaryDirectory(prefix="mlebench-check-") as folder:
            scratch = Path(folder)
            download = _local(downloads[name], storage, scratch)
            run_baseline = partial(baseline_submission, scratch=scratch / "baseline")
            measured = measured_of(competition, data.prepared or scratch / "prepared", edition, run_baseline)
            if data.variants:
                whole = prepared[name] or scratch / "prepared"
                if not prepared[name]:
                    prepare(name, _raw_of(competition, download, scratch), whole, edition, overrides)
                results = check_variant(competition, whole, scratch / "variant", edition, prepare)
            elif data.prepared:
                results = check_prepared(measured)
            else:
                results = check_download(measured, download, scratch, prepare, overrides)
            shown = [_show(name, result) for result in results]
            if data.page:
                _write_page(data.page, measured, shown)
        failed += any(result.verdict == "failed" for result in shown)
        noted += sum(result.verdict == "noted" for result in shown)
        skipped += sum(result.verdict == "skipped" for result in shown)
    notes = [f"{counted(noted, 'note')} to judge"] if noted else []
    notes += [f"{counted(skipped, 'check')} skipped"] if skipped else []
    with_notes = f", with {' and '.join(notes)}" if notes else ""
    say(f"{len(selected_ids) - failed} of {counted(len(selected_ids), 'competition')} passed{with_notes}")
    return 1 if failed else 0


def _local(raw: Path | str | None, storage: StoreOptions, scratch: Path) -> Path | None:
    """The path of the download; of one in a store that is not on this machine, that of a copy in `scratch`."""
    if not isinstance(raw, str):
        return raw
    store, copy = storage.open(), scratch / "download.zip"
    store.top.fs.get(store.top.path(store.relative(raw)), str(copy))
    return copy


def _raw_of(competition: Competition, raw: Path | None, scratch: Path) -> Path:
    """The download; of a bundled competition one in `scratch`."""
    if raw is None:
        raw = scratch / f"{competition.id}.zip"
        raw.write_bytes(competition.bundle())
    return raw


def _show(competition_id: str, result: Result) -> Result:
    """Print the result of a check, and return it."""
    if answer({"competition_id": competition_id, **asdict(result)}):
        return result
    style = {"ok": "green", "failed": "red", "skipped": "yellow", "noted": "yellow"}[result.verdict]
    first, *further = result.lines
    click.echo(f"  {click.style(f'{result.verdict:7}', fg=style)} {result.check:11} {first}")
    for line in further:
        click.echo(f"{'':22}{line}")
    return result


def _write_page(file: Path, measured: Measured, results: Sequence[Result]) -> None:
    from grading.page.check import render_check

    if not (measured.subject.prepared / "manifest.parquet").is_file():
        say(f"{file} is not written, because there is no prepared dataset to show")
        return
    page = render_check(measured, results)
    try:
        file.write_text(page, "utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}") from error
    say(f"{file} shows the results with charts and examples; it has answers of the test set")


def _download(
    competition: Competition, raw_dir: Path | None, edition: Edition, storage: StoreOptions
) -> Path | str | None:
    """The download: in `raw_dir`, in the store (see `_stored`), or in the settings' directory; None if bundled."""
    from common.settings import get_settings
    from storage.sources.local import Local

    if competition.facts.source == "bundled":
        return None
    if raw_dir is None and (stored := _stored(competition, storage)):
        return stored
    there = _prepared(competition.id, edition, storage)
    dataset = "DIR" if there is None else shlex.quote(str(there))
    remedy = f"name it with --raw FILE or --raw-dir DIR, or a prepared dataset with --prepared {dataset}"
    folder = raw_dir or get_settings().raw_dir
    if folder is None:
        raise UserError(f"{competition.id} needs its download; {remedy}")
    try:
        return Local(folder).fetch(competition, folder)
    except DownloadError as error:
        raise UserError(f"{error}, or {remedy}") from error


def _stored(competition: Competition, storage: StoreOptions) -> Path | str | None:
    """The path of the download in the store, or its URL in one that is not on this machine; None if it has none."""
    from storage.sources.acquire import has_archive

    with contextlib.suppress(UserError):
        store = storage.open()
        record = store.read_json(store.url("raw", competition.id, "download.json"))
        if record is not None and has_archive(store, competition, record):
            url = store.raw(competition.id)
            return store.local(store.relative(url)) or url
    return None


def _prepared(competition_id: str, edition: Edition, storage: StoreOptions) -> Path | None:
    """The path of the prepared dataset in the store, if that is on this machine and has one."""
    from storage.dataset import Dataset
    from storage.datasets.current import find

    with contextlib.suppress(UserError):
        store = storage.open()
        if store.top.local and (dataset := find(store, Dataset(edition, competition_id))):
            return store.local(store.relative(store.prepared(dataset)))
    return None


def _parameters(text: str | None) -> dict[str, Any] | None:
    try:
        values = parse_json(text) if text else None
    except ValueError as error:
        raise UsageError(f"--params is not JSON ({error})") from error
    if values is not None and not isinstance(values, dict):
        raise UsageError("--params must be a JSON object, as in '{\"test_size\": 10}'")
    return values
