"""The reference part of docs/commands.md, from the commands themselves.

`python -m tests.docs.reference` brings it up to date. Each command has a section; what stands between its heading and
the line END is made here, what follows it is written by hand.
"""

from __future__ import annotations

import html
import inspect
from pathlib import Path
from typing import Any

import click

from flows.cli import COMMANDS, SECTIONS, cli

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"
END = "<!-- reference ends -->"
_INDEX_BEGINS, _INDEX_ENDS = "<!-- sections begin -->", "<!-- sections end -->"
# Options that several commands share have a table of their own at the top of the document.
SHARED: dict[str, tuple[str, ...]] = {
    "selecting": ("competitions", "split", "lite", "everything", "listed", "exclude"),
    "the store": ("store", "data_dir"),
    "preparing": ("edition", "raw_dir", "keep_raw", "skip_verification", "skip_space_check"),
}
_SHARED_FROM = "run"  # a command that has them all


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")


def index() -> str:
    """The table of the commands by section, as `mlebench --help` has them."""
    rows = [
        f"| {section} | {', '.join(f'[{name}](#{_anchor(name)})' for name in commands)} |"
        for section, commands in SECTIONS.items()
    ]
    return "\n".join([_INDEX_BEGINS, "", "| section | commands |", "|---|---|", *rows, "", _INDEX_ENDS])


def reference(name: str) -> str:
    """What the document must say of a command: usage, description, options, and which shared ones it takes."""
    command = _command(name)
    parameters = {parameter.name: parameter for parameter in command.params}
    shared = [group for group, names in SHARED.items() if set(names) <= set(parameters)]
    own = [p for p in parameters.values() if not any(p.name in SHARED[group] for group in shared)]
    usage = [p.make_metavar(click.Context(command)) for p in own if isinstance(p, click.Argument)]
    options = [p for p in own if isinstance(p, click.Option)]
    lines = [
        f"## {name}",
        "",
        f"    mlebench {' '.join([name, *(['[OPTIONS]'] if command.params else []), *usage])}",
        "",
    ]
    lines += [inspect.cleandoc(command.help or ""), ""]
    if options:
        lines += [*_table(options), ""]
    if shared:
        links = ", ".join(f"[{group}](#{_anchor(group)})" for group in shared)
        lines += [f"{'Also the' if options else 'The'} options of {links}.", ""]
    return "\n".join([*lines, END])


def shared_reference(group: str) -> str:
    """The section of options that several commands share."""
    parameters = {parameter.name: parameter for parameter in _command(_SHARED_FROM).params}
    options: list[Any] = [parameters[name] for name in SHARED[group]]
    return "\n".join([f"### {group.capitalize()}", "", *_table(options), "", END])


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def _table(options: list[click.Option]) -> list[str]:
    rows = [f"| {_names(each)} | {html.escape(each.help or '', quote=False)} | {_default(each)} |" for each in options]
    return ["| option | | default |", "|---|---|---|", *rows]


def _names(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.is_flag:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} " + ", ".join(f"`{choice}`" for choice in option.type.choices)
    return f"{names} {option.make_metavar(click.Context(click.Command('')))}" + (
        ", repeatable" if option.multiple else ""
    )


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    # The others are told in the help, in words.
    return f"`{option.default}`" if option.show_default and option.default is not None else ""


def update(text: str) -> str:
    """The document with every reference part as it must be; new commands come at the end, removed ones go."""
    before, *sections = text.split("\n## ")
    head, _, rest = before.partition(_INDEX_BEGINS)
    before = f"{head}{index()}{rest.partition(_INDEX_ENDS)[2]}"
    for group in SHARED:
        heading, _, rest = before.partition(f"### {group.capitalize()}\n")
        tail = rest.partition(END)[2] if rest else "\n\n"
        before = f"{heading}{shared_reference(group)}{tail}"
    tails = {section.split("\n", 1)[0]: section.partition(END)[2] for section in sections}
    return before + "".join("\n" + reference(name) + tails.get(name, "\n") for name in COMMANDS)


if __name__ == "__main__":
    DOCUMENT.write_text(update(DOCUMENT.read_text("utf-8")), "utf-8")
