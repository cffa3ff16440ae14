"""mlebench completion, and what shells complete: competitions, splits, agents, run groups and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from storage.store import Store

SHELLS = ("bash", "zsh", "fish")
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, competition ids, agents, run groups and settings.

    For bash, add `eval "$(mlebench completion bash)"` to ~/.bashrc; the same for zsh in ~/.zshrc; for fish, write the
    output to ~/.config/fish/completions/mlebench.fish.
    """
    completion = get_completion_class(shell)
    assert completion is not None, shell
    mlebench = context.find_root().command
    click.echo(completion(mlebench, {}, "mlebench", "_MLEBENCH_COMPLETE").source())


def completing(names: Callable[[click.Context, str], Iterable[str]]) -> Completer:
    """A completer of a parameter, which offers those of the names that begin with what was typed.

    `names` gets the context, whose options are known, and what was typed. Errors are ignored, so that nothing is
    printed into the prompt.
    """

    def complete(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name) for name in names(context, typed) if name.startswith(typed)]
        except Exception:
            return []

    return complete


def _competitions(_context: click.Context, _typed: str) -> Iterable[str]:
    from competitions import registry
    from tasks.wiring.process import apply_settings

    apply_settings()  # also those of MLEBENCH_COMPETITIONS
    return registry.folders()


def _splits(_context: click.Context, _typed: str) -> Iterable[str]:
    from competitions import registry
    from tasks.wiring.process import apply_settings

    apply_settings()  # also those of the settings
    return registry.split_names()


def _agents(_context: click.Context, _typed: str) -> Iterable[str]:
    from common.settings import get_settings
    from sandbox.agent_registry import list_agents

    return list_agents(get_settings().agent_dirs)


def _settings(_context: click.Context, _typed: str) -> Iterable[str]:
    from common.settings import Settings

    return Settings.model_fields


def _store(context: click.Context) -> Store:
    from tasks.wiring.context import open_store

    store = context.params.get("store") or context.params.get("data_dir")
    return open_store(str(store) if store else None)


def _groups(context: click.Context, _typed: str) -> Iterable[str]:
    return _store(context).folder_names("runs")


def _runs(context: click.Context, typed: str) -> Iterable[str]:
    from storage.runs.folders import folders

    store, group = _store(context), typed.partition("/")[0]
    for name in store.folder_names("runs"):
        if name.startswith(group):
            yield from (folder.name for folder in folders(store, name))


COMPETITIONS = completing(_competitions)
SPLITS = completing(_splits)
AGENTS = completing(_agents)
SETTINGS = completing(_settings)
GROUPS = completing(_groups)
RUNS = completing(_runs)
