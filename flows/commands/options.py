"""Groups of options that several commands share. A group is a frozen dataclass; see `takes`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

import click

from common.environment import bare
from common.errors import UsageError, UserError
from common.texts import read_text
from competitions import registry
from competitions.editions import EDITIONS, Edition
from flows.commands.completion import COMPETITIONS, SPLITS
from grading.medals import Leaderboard
from storage.store import Store

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """An option of the command line, as the annotation of a field in a group of options."""

    names: tuple[str, ...]
    attributes: Mapping[str, Any]

    def named(self, name: str, default: Any = None, title: str = "") -> Callable[[Function], Function]:
        """The decorator that gives a command this option as the parameter `name`, below a title in its help."""
        attributes = dict(self.attributes) if default is None else {**self.attributes, "default": default}
        return click.option(*self.names, name, cls=_TitledOption, title=title, **attributes)


class _TitledOption(click.Option):
    """An option that belongs to a group of options with a title."""

    def __init__(self, *args: Any, title: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.title = title


class GroupedCommand(click.Command):
    """A command whose help shows each group of options below its title, those without a title last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options into the formatter."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx)
            if line is not None:
                sections.setdefault(getattr(parameter, "title", "") or "Other options", []).append(line)
        other_options = sections.pop("Other options", [])
        for title, lines in [*sections.items(), ("Other options", other_options)]:
            with formatter.section(title):
                formatter.write_dl(lines)


def option(*names: str, **attributes: Any) -> Option:
    """An option with the arguments of `click.option`; name and default are those of the annotated field."""
    return Option(names, attributes)


def takes(**groups: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of each group, a dataclass of annotated fields, and pass each group as one value.

    >>> @click.command()
    ... @takes(storage=StoreOptions)
    ... def command(storage: StoreOptions) -> None:
    ...     click.echo(storage.store)
    >>> command.main(["--store", "s3://bucket"], standalone_mode=False)
    s3://bucket
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(**parameters: Any) -> Any:
            values = {
                name: group(**{field.name: parameters.pop(field.name) for field in fields(group)})
                for name, group in groups.items()
            }
            return function(**parameters, **values)

        decorated: Callable[..., Any] = call
        for group in reversed(groups.values()):
            hints = get_type_hints(group, include_extras=True)
            for field in reversed(fields(group)):
                (annotation,) = (part for part in hints[field.name].__metadata__ if isinstance(part, Option))
                decorated = annotation.named(field.name, field.default, getattr(group, "TITLE", ""))(decorated)
        return decorated

    return decorate


EDITION = option(
    "--edition",
    type=click.Choice(EDITIONS),
    show_default=True,
    help="v1: the published benchmark; v2: known issues fixed.",
)
LEADERBOARD = option(
    "--leaderboard",
    type=click.Choice(["stored", "refreshed"]),
    show_default=True,
    help="Medal thresholds: as stored with the competition, or of the leaderboard that `mlebench leaderboard ID "
    "--refresh` fetched last.",
)
RAW_DIR = option(
    "--raw-dir",
    type=click.Path(path_type=Path),
    help="A directory of downloads: <id>.zip files, or folders <id>/ with their content. Default: MLEBENCH_RAW_DIR.",
)


def _ids_in(path: Path) -> list[str]:
    """The competition ids in a text file. Raises `UsageError` if it cannot be read, or is empty."""
    try:
        ids = read_text(path, f"--list {path}").split()
    except UserError as error:
        raise UsageError(f"{error}; it must be a text file with one competition id per line") from error
    if not ids:
        raise UsageError(f"--list {path} is empty; it must be a text file with one competition id per line")
    return ids


@dataclass(frozen=True)
class Selection:
    """Options that select competitions."""

    TITLE: ClassVar[str] = "Competitions"
    competitions: Annotated[
        tuple[str, ...],
        option(
            "-c",
            "--competition",
            "--competition-id",
            multiple=True,
            metavar="ID",
            help="A competition; repeatable.",
            shell_complete=COMPETITIONS,
        ),
    ] = ()
    split: Annotated[
        str | None,
        option(
            "--split",
            "--split-name",
            metavar="NAME",
            help=f"A split: {', '.join(registry.SPLITS)}, or one of your own (`splits` in mlebench.toml).",
            shell_complete=SPLITS,
        ),
    ] = None
    lite: Annotated[bool, option("--lite", is_flag=True, help="The 22 competitions of the low split.")] = False
    everything: Annotated[
        bool, option("-a", "--all", is_flag=True, help="All 75 competitions (low, medium and high).")
    ] = False
    listed: Annotated[
        Path | None,
        option(
            "-l",
            "--list",
            "--competition-set",
            type=click.Path(path_type=Path),
            help="A text file with one competition id per line.",
        ),
    ] = None
    exclude: Annotated[
        str | None,
        option(
            "--exclude",
            type=click.Choice(["leaky"]),
            help="Leave out competitions whose answers can be found in every edition (`mlebench issues --severity "
            "labels --edition v2`).",
        ),
    ] = None

    def __bool__(self) -> bool:
        """Whether any option is given."""
        return self != Selection(exclude=self.exclude)

    def with_ids(self, ids: Iterable[str]) -> Self:
        """The same with further competitions, those of the argument `IDS`."""
        return replace(self, competitions=(*self.competitions, *ids))

    def ids(self) -> list[str]:
        """The selected ids. Raises `UsageError` if one is unknown, or if there is none."""
        ids = list(self.competitions)
        if self.listed is not None:
            ids += _ids_in(self.listed)
        for name in filter(None, (self.split, "lite" if self.lite else None, "all" if self.everything else None)):
            ids += registry.list(name)
        if self.exclude and not (ids := [name for name in ids if not registry.get(name).facts.leaky]):
            raise UsageError(f"--exclude {self.exclude} leaves no competition of those selected")
        return registry.select(ids)


IDS = click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=COMPETITIONS)
"""Competitions as arguments, for commands about single ones: `Selection.with_ids` adds them."""


@dataclass(frozen=True)
class StoreOptions:
    """Options that select the store."""

    TITLE: ClassVar[str] = "Store"
    store: Annotated[
        str | None,
        option(
            "--store",
            metavar="URL",
            help="Root of the store: a directory, or s3://bucket/prefix. Default: MLEBENCH_STORE, or else "
            "~/.local/share/mlebench.",
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        option(
            "--data-dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="A local directory as the root of the store.",
        ),
    ] = None

    def open_usable(self, new: bool = False) -> Store:
        """Open the store, and check that it can be written. Prints what it waits for. Raises as `open`."""
        store = self.open(new)
        store.require_usable(on_wait=lambda text: click.echo(f"waiting {text}", err=True))
        return store

    def open(self, new: bool = False) -> Store:
        """Open the store that the options name, or by default that of the settings.

        Unless `new`, for commands that create it, it must exist. Raises as `Store.require_there`.
        """
        from tasks.wiring.context import open_store

        if self.store and self.data_dir:
            raise click.UsageError("--store and --data-dir are alternatives; give one of them")
        if self.store is not None and not bare(self.store):
            raise click.UsageError("--store is empty; give it a directory or s3://bucket/prefix")
        store = open_store(self.store or (str(self.data_dir) if self.data_dir else None))
        if not new:
            store.require_there()
        return store


@dataclass(frozen=True)
class PreparationOptions:
    """Options of preparing competitions."""

    TITLE: ClassVar[str] = "Preparing"
    raw_dir: Annotated[Path | None, RAW_DIR] = None
    keep_raw: Annotated[
        bool,
        option(
            "--keep-raw",
            is_flag=True,
            help="Keep the downloaded archives after preparing. Those of competitions of your own are always kept.",
        ),
    ] = False
    skip_verification: Annotated[
        bool,
        option("--skip-verification", is_flag=True, help="Do not compare prepared files with the published checksums."),
    ] = False
    skip_space_check: Annotated[
        bool,
        option("--skip-space-check", is_flag=True, help="Also prepare what seems not to fit on the disk of the store."),
    ] = False

    def apply(self) -> None:
        """Apply the options that override settings, to this process and those that it starts."""
        if self.skip_space_check:
            from common.settings import get_settings

            os.environ["MLEBENCH_SPACE_CHECK"] = "false"
            get_settings.cache_clear()


@dataclass(frozen=True)
class GradingOptions:
    """Options of grading submissions."""

    edition: Annotated[Edition, EDITION] = "v1"
    leaderboard: Annotated[Leaderboard, LEADERBOARD] = "stored"


def create_folder(template: Path, folder: Path, ignored: Iterable[str]) -> None:
    """Create a folder from a template. Raises `UserError` if it cannot be created."""
    import shutil

    try:
        shutil.copytree(template, folder, ignore=shutil.ignore_patterns(*ignored))
    except OSError as error:  # some errors of copytree have a list instead of a text
        reason = error.strerror or "not all files can be written"
        raise UserError(f"{folder} cannot be created: {reason}; choose another directory with --into") from error


def raw_directory(raw_dir: Path | None) -> str | None:
    """The directory of downloads from the option or the settings, as text for the parameters of a flow.

    It need not exist: what is prepared needs no download.
    """
    from common.settings import get_settings

    directory = raw_dir or get_settings().raw_dir
    return str(directory.expanduser().resolve()) if directory else None


def quiet_prefect() -> None:
    """Keep Prefect's own output off the terminal, where the board is shown. Call before importing Prefect."""
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    # A busy machine takes longer than Prefect's 20 seconds to start its own server.
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
    warnings.filterwarnings("ignore", message="Failed to create the Prefect home")  # who needs it says so
