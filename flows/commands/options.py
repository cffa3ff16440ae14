"""Options that several commands take alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from common.errors import UserError
from competitions import registry
from competitions.editions import EDITIONS
from storage.store import Store

Function = TypeVar("Function", bound=Callable[..., Any])


def selection(function: Function) -> Function:
    """-c ID (repeatable), --split NAME, --lite, --all, --list FILE: which competitions."""
    for option in (
        click.option("-l", "--list", "listed", type=click.Path(path_type=Path), help="A text file with one id a line."),
        click.option("-a", "--all", "everything", is_flag=True, help="All 75 competitions (low, medium and high)."),
        click.option("--lite", is_flag=True, help="The 22 competitions of the low split."),
        click.option("--split", "--split-name", metavar="NAME", help=f"A split: {', '.join(registry.SPLITS)}."),
        click.option(
            "-c",
            "--competition",
            "--competition-id",
            "competitions",
            multiple=True,
            metavar="ID",
            help="A competition; repeatable.",
        ),
    ):
        function = option(function)
    return function


def selected(
    competitions: tuple[str, ...], split: str | None, lite: bool, everything: bool, listed: Path | None
) -> list[str]:
    """The ids that `selection`'s options name. Raises `UserError` for unknown ones and for none."""
    ids = list(competitions)
    if listed is not None:
        if not listed.is_file():
            raise UserError(f"--list {listed} does not exist; it is a text file with one competition id a line")
        ids += listed.read_text("utf-8").split()
    for name in filter(None, (split, "lite" if lite else None, "all" if everything else None)):
        ids += registry.list(name)
    return registry.select(ids)


def store_option(function: Function) -> Function:
    """--store URL, or --data-dir DIR as the published tool calls a local one."""
    for option in (
        click.option(
            "--data-dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="A local directory as the store's root.",
        ),
        click.option(
            "--store", metavar="URL", help="Root of everything: a directory or any fsspec URL. Default: MLEBENCH_STORE."
        ),
    ):
        function = option(function)
    return function


def open_store(store: str | None, data_dir: Path | None) -> Store:
    """The store that the options or the settings name."""
    from tasks.wiring.stores import open_store as at

    if store and data_dir:
        raise click.UsageError("--store and --data-dir name the same thing; give one")
    return at(store or (str(data_dir) if data_dir else None))


def edition_option(function: Function) -> Function:
    """--edition v1 or v2."""
    return click.option(
        "--edition",
        type=click.Choice(EDITIONS),
        default="v1",
        show_default=True,
        help="v1: the published benchmark bit for bit; v2: known issues fixed.",
    )(function)


def leaderboard_option(function: Function) -> Function:
    """--leaderboard stored or refreshed: whose medal thresholds."""
    return click.option(
        "--leaderboard",
        type=click.Choice(["stored", "refreshed"]),
        default="stored",
        show_default=True,
        help="Medal thresholds: the competition's own, or of what `mlebench leaderboard ID --refresh` fetched last.",
    )(function)


def preparation(function: Function) -> Function:
    """Options of preparing."""
    for option in (
        click.option("--skip-verification", is_flag=True, help="Do not compare with the published checksums."),
        click.option("--keep-raw", is_flag=True, help="Keep the downloaded archives after preparing."),
        click.option(
            "--raw-dir",
            type=click.Path(path_type=Path),
            help="Take downloads from a directory of <id>.zip. Default: MLEBENCH_RAW_DIR.",
        ),
        edition_option,
    ):
        function = option(function)
    return function


def raw_directory(raw_dir: Path | None) -> str | None:
    """The directory of downloads that the option or the settings name, as text for a flow's parameters."""
    from common.settings import get_settings

    chosen = raw_dir or get_settings().raw_dir
    if chosen and not chosen.expanduser().is_dir():
        raise UserError(f"--raw-dir {chosen} is no directory")
    return str(chosen.expanduser().resolve()) if chosen else None


def quiet_prefect() -> None:
    """Keep Prefect's own lines off the terminal, which is for the board. Call before importing it."""
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    # A busy machine takes longer than Prefect's 20 seconds to start its own server.
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
