"""mlebench new."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

import competitions
from common.cleaning import clean
from common.errors import UsageError, UserError
from common.settings import get_settings
from common.units import counted
from competitions import registry
from competitions.facts import ID_PATTERN
from flows.commands.advice import advised
from flows.commands.options import RAW_DIR, StoreOptions, create_folder, option, takes

TEMPLATE = Path(competitions.__file__).parent / "template"
_ADDRESS = re.compile(r"(?:https?://)?(?:www\.)?kaggle\.com/(?:competitions|c)/([^/?#]+)")


@dataclass(frozen=True)
class KaggleOptions:
    """Options for a competition on Kaggle."""

    slug: Annotated[
        str | None,
        option(
            "--from-kaggle",
            metavar="SLUG",
            help="Make it of Kaggle's competition SLUG, the last part of its address, and of its data. ID is SLUG.",
        ),
    ] = None
    raw_dir: Annotated[Path | None, RAW_DIR] = None
    yes: Annotated[bool, option("--yes", is_flag=True, help="With --from-kaggle: download without asking.")] = False
    model: Annotated[
        str | None,
        option(
            "--with-model",
            metavar="MODEL",
            help="With --from-kaggle: have this language model, of a provider of the settings, decide what is marked "
            "and rewrite the description. You read what it wrote; nothing of it runs before the next command.",
        ),
    ] = None


@click.command("new")
@click.argument("competition_id", metavar="[ID]", required=False)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Directory for the competition's folder. Default: the current one.",
)
@click.option(
    "--from-published",
    "published",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make it of this folder in the format of the published benchmark (config.yaml, prepare.py, grade.py).",
)
@takes(kaggle=KaggleOptions, storage=StoreOptions)
def command(
    competition_id: str | None,
    into: Path,
    published: Path | None,
    kaggle: KaggleOptions,
    storage: StoreOptions,
) -> None:
    """Create a competition of your own: a folder ID with a small working competition for you to change.

    With --from-published, it is made of a folder in the published format; with --from-kaggle, of what Kaggle says about
    a competition and of its data, after it has shown what would be downloaded. What cannot be done by rule is marked
    with CHECK, which `mlebench check` refuses.
    """
    slug = kaggle.slug
    if kaggle.model and not slug:
        raise UsageError("--with-model needs --from-kaggle SLUG")
    if slug and published:
        raise UsageError("give one of --from-kaggle and --from-published")
    if slug and (address := _ADDRESS.match(slug)):
        slug = address[1]
    if slug and competition_id not in (None, slug):
        raise UsageError(f"--from-kaggle takes no other ID: it is {slug}, because the download has that name")
    if not (competition_id := slug or competition_id):
        raise UsageError("give an ID, such as my-competition")
    if not re.fullmatch(ID_PATTERN, competition_id):
        raise UsageError(f"{competition_id!r} is not an id: use letters, digits and dashes, as in my-competition")
    folder = into.expanduser().resolve() / competition_id
    existing_folder = registry.folders().get(competition_id)
    other_id = "remove it" if slug else "choose another id"
    if existing_folder:
        remedy = "" if existing_folder.parent == registry.CATALOG else f"; {other_id}"
        raise UserError(f"competition {competition_id!r} already exists: {existing_folder}{remedy}")
    if folder.exists():
        raise UserError(f"{folder} exists already; {other_id}, or choose another directory with --into")
    if published is not None:
        from flows.commands.from_published import convert

        _show_marked(folder, convert(published, folder))
        _show_variable(folder)
        click.echo(f"Then: mlebench check {competition_id} --raw-dir DIR")
        return
    if slug:
        _from_kaggle(slug, folder, kaggle, storage)
        return
    create_folder(TEMPLATE, folder, ["__pycache__"])
    title = competition_id.replace("-", " ").capitalize()
    for name in ("competition.yaml", "description.md"):
        text = (folder / name).read_text("utf-8")
        text = text.replace("my-competition", competition_id).replace("My competition", title)
        (folder / name).write_text(text, "utf-8")
    click.echo(f"Created {folder}. It works as it is; next:")
    _show_variable(folder)
    click.echo(f"  mlebench check {competition_id}")
    click.echo(f"  mlebench run -c {competition_id} --agent baseline")
    click.echo("Then change bundle.py (or take a download with --raw-dir), prepare.py, grade.py, description.md and")
    click.echo("competition.yaml, and check again.")


def _from_kaggle(slug: str, folder: Path, kaggle: KaggleOptions, storage: StoreOptions) -> None:
    """Write the folder, and show what is proposed, why, and what is to be decided."""
    from competitions.marks import marked_places
    from flows.commands import from_kaggle

    store = storage.open(new=True)
    raw_dir = kaggle.raw_dir or get_settings().raw_dir
    converted = from_kaggle.convert(slug, folder, raw_dir, store, kaggle.yes)
    if converted is None:
        return
    found, problem = converted
    if kaggle.model:
        try:
            for line in from_kaggle.fill_marks(folder, found, kaggle.model):
                click.echo(clean(line))
        except UserError as error:  # the folder is there, as without a model
            click.echo(clean(f"{kaggle.model} was not asked: {error}"), err=True)
    _show_marked(folder, marked_places(folder))
    if problem:
        click.echo(clean(problem))
    if raw_dir is None:
        click.echo(f"The download stays in {store.shown(store.raw(slug))} until `mlebench gc --raw` removes it.")
    click.echo("Next, when you have decided what is marked, and again after each change:")
    _show_variable(folder)
    directory = f" --raw-dir {shlex.quote(str(kaggle.raw_dir.expanduser().resolve()))}" if kaggle.raw_dir else ""
    for command in (f"mlebench check {slug}", f"mlebench run -c {slug} --agent baseline"):
        click.echo(f"  {advised(command + directory, store)}")


def _show_marked(folder: Path, places: Sequence[str]) -> None:
    click.echo(f"Created {folder}. {counted(len(places), 'place')} marked with CHECK, for you to decide:")
    for place in places:
        click.echo(clean(f"  {place}"))


def _show_variable(folder: Path) -> None:
    """Print how to set the variable, unless it has the folder's directory."""
    competition_dirs = [str(directory) for directory in get_settings().competitions]
    if not any(Path(directory).expanduser().resolve() == folder.parent for directory in competition_dirs):
        value = os.pathsep.join([*competition_dirs, str(folder.parent)])
        click.echo(f"  export MLEBENCH_COMPETITIONS={shlex.quote(value)}")
