"""Make a competition's folder of what Kaggle says about it and of its data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from common.cleaning import clean
from common.errors import UsageError, UserError
from common.settings import get_settings
from common.units import counted, data_size

if TYPE_CHECKING:
    from competitions.proposals.about import About
    from storage.store import Store

_SHOWN_FILES = 8


def convert(
    slug: str, folder: Path, raw_dir: Path | None, store: Store, yes: bool
) -> tuple[list[str], str | None] | None:
    """Write `folder` for Kaggle's competition `slug`, and print what is proposed and why.

    Args:
        slug: Kaggle's name of the competition.
        folder: the folder to write.
        raw_dir: a directory with the download, which is then not downloaded.
        store: where downloads are kept.
        yes: download without asking.

    Returns:
        What the download consists of and what is proposed, in words, and what is wrong with the folder, if anything;
        None if the person does not want the download.

    Raises:
        UserError: there is no such competition, it cannot be used, or its download cannot be read.
    """
    from competitions.preparing.download import Download
    from competitions.proposals.folder import write_folder
    from competitions.proposals.layout import read_layout
    from competitions.proposals.propose import propose

    path = None if raw_dir is None else _at_hand(slug, raw_dir)
    about = _about(slug, optional=path is not None)
    for line in _lines(about):
        click.echo(line)
    path = path or _download(about, store, yes)
    if path is None:
        return None
    raw = Download.open(path)
    layout = read_layout(raw)
    proposal = propose(layout, about)
    try:
        problem = write_folder(folder, about, proposal, layout, raw)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be created: {error.strerror}; choose another directory with --into"
        ) from error
    found = [f"{table.path}: {', '.join(table.columns)}" for table in layout.tables]
    for what, value, sure, reason in proposal.lines():
        click.echo(clean(f"  {what}: {value}  ({'' if sure else 'not sure: '}{reason})"))
        found.append(f"{what}: {value} ({reason})")
    return found, problem


def fill_marks(folder: Path, found: list[str], model_name: str) -> list[str]:
    """Have a language model decide what is marked in a folder, and rewrite the description; nothing of it is run.

    Returns:
        Lines for the person: what was written, what was refused, and what it cost.

    Raises:
        ModelError: the model cannot be asked.
    """
    from competitions.marks import marked_places
    from competitions.proposals.rewriting import RECORD, question, take_over
    from tasks.language_model import language_model
    from tasks.wiring.services import gateway_policy

    marked = marked_places(folder)
    with language_model(model_name, gateway_policy(get_settings())) as model:
        answer = model.ask(question(folder, found))
        calls = model.calls()
    written, refused = take_over(folder, answer)
    costs = [call["cost_usd"] for call in calls]
    record = {
        "model": model_name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": written,
        "marked_before": marked,
        "input_tokens": sum(call["input_tokens"] for call in calls),
        "output_tokens": sum(call["output_tokens"] for call in calls),
        "cost_usd": None if None in costs else sum(costs),
    }
    if written:
        (folder / RECORD).write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", "utf-8")
    cost = "unknown cost" if record["cost_usd"] is None else f"{record['cost_usd']:.4f} US dollars"
    lines = [f"{model_name} wrote {', '.join(written) or 'nothing'} ({cost})"]
    if written:
        lines.append("Read these files before the next command: it runs them with your rights.")
    return [*lines, *(f"not taken over: {each}" for each in refused)]


def _about(slug: str, optional: bool) -> About:
    """What Kaggle says; nothing if the download is there, and Kaggle says nothing of it or cannot be asked."""
    from competitions.proposals.about import About
    from storage.sources.kaggle.about import fetch_about
    from storage.sources.kaggle.errors import KaggleError

    try:
        return fetch_about(slug)
    except KaggleError as error:
        if not optional:
            raise
        return About(slug, notes=(f"title, pages and leaderboard are missing: {error}",))


def _lines(about: About) -> list[str]:
    """The plan: what it is, and how much would be downloaded."""
    lines = [f"{about.title or about.id}{f' ({about.category})' if about.category else ''}"]
    if about.ended or about.teams:
        ended = f"ended {about.ended}" if about.ended else "has not ended"
        lines.append(f"  {ended}, {counted(about.teams, 'team')}, reward {about.reward or 'none'}")
    if about.metric:
        lines.append(f"  metric: {about.metric}")
    if about.scores:
        lines.append(f"  leaderboard: best {about.scores[0]:g}, median {about.scores[len(about.scores) // 2]:g}")
    if about.files:
        lines.append(f"  download: {counted(len(about.files), 'file')}, {data_size(about.archive_bytes)}")
        groups = _groups(about.files)
        lines += [f"    {data_size(size):>10}  {name}" for name, size in groups[:_SHOWN_FILES]]
        if len(groups) > _SHOWN_FILES:
            lines.append(f"    and {counted(len(groups) - _SHOWN_FILES, 'smaller one')}")
    lines += [f"  note: {note}" for note in about.notes]
    return [clean(line) for line in lines]


def _at_hand(slug: str, raw_dir: Path) -> str:
    """The path of the download in a directory of downloads. Raises `UserError` before Kaggle is asked."""
    from competitions.proposals.about import About
    from storage.sources.local import Local

    if not raw_dir.expanduser().is_dir():
        raise UsageError(f"--raw-dir {raw_dir} is not a directory")
    return str(Local(raw_dir).fetch(About(slug), raw_dir))


def _groups(files: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Files with their bytes, largest first: those of a folder with the same suffix as one, with their number."""
    sizes: dict[str, list[tuple[str, int]]] = {}
    for name, size in files:
        path = PurePosixPath(name)
        pattern = f"{path.parent}/*{path.suffix}" if "/" in name else name
        sizes.setdefault(pattern, []).append((name, size))
    groups = [
        (each[0][0] if len(each) == 1 else f"{pattern} ({len(each)} files)", sum(size for _, size in each))
        for pattern, each in sizes.items()
    ]
    return sorted(groups, key=lambda group: -group[1])


def _download(about: About, store: Store, yes: bool) -> str | None:
    """The path or URL of the download, None if it is not wanted."""
    from storage.sources.acquire import acquire, has_archive, recorded
    from storage.sources.kaggle import Kaggle

    source = Kaggle()
    record = recorded(store, about, source)
    if record is None or not has_archive(store, about, record):
        if not yes and not sys.stdin.isatty():
            raise UsageError(
                f"give --yes to download {data_size(about.archive_bytes)} without being asked, or --raw-dir"
            )
        if not yes and not click.confirm(f"Download {data_size(about.archive_bytes)} to {store.root}?", err=True):
            click.echo("nothing downloaded", err=True)
            return None
    acquire(store, about, source)
    return str(store.raw(about.id))
