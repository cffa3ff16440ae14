"""mlebench config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from common import plain_json
from common.errors import UsageError, close_matches
from flows.commands.answers import answer, takes_json
from flows.commands.completion import SETTINGS
from flows.commands.tables import show_table


@click.command("config")
@click.argument("name", required=False, shell_complete=SETTINGS)
@takes_json
def command(name: str | None) -> None:
    """Show the settings, and where each comes from; with NAME, one setting and what it means.

    Settings are environment variables MLEBENCH_..., or keys of mlebench.toml in the current directory. Secrets are
    not shown.
    """
    from common.settings import PREFIX, Settings, file_values, get_settings

    settings, keys = get_settings(), file_values()
    values = settings.model_dump(mode="json")
    variables = {name.upper() for name in os.environ}

    def source(field: str) -> str:
        variable = f"{PREFIX}{field}".upper()
        if any(name == variable or name.startswith(f"{variable}__") for name in variables):
            return "environment"
        return "mlebench.toml" if field in keys else "default"

    if name is not None:
        field = name.lower().removeprefix(PREFIX.lower())
        if field not in values:
            raise UsageError(f"no setting {name!r}.{close_matches(field, values)}")
        about = Settings.model_fields[field].description or ""
        if answer({"setting": field, "value": values[field], "source": source(field), "about": about}):
            return
        click.echo(f"{PREFIX}{field}".upper() + f" = {_shown(values[field])}  ({source(field)})")
        click.echo(about)
        return
    if answer([{"setting": field, "value": value, "source": source(field)} for field, value in values.items()]):
        return
    file = Path("mlebench.toml").absolute()
    click.echo(f"{file}{'' if file.is_file() else ' does not exist'}")
    rows = [(field, _shown(value), source(field)) for field, value in values.items()]
    show_table(("SETTING", "VALUE", "SOURCE"), rows)


def _shown(value: Any) -> str:
    return "-" if value in (None, "", [], {}) else value if isinstance(value, str) else plain_json.dumps(value)
