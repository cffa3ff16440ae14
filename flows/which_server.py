"""Which Prefect server the commands of a process use: that of PREFECT_API_URL, or a temporary one of their own.

Prefect would also use the server of the active profile, and of a `prefect.toml`, `pyproject.toml` or `.env` in the
current directory. So the flow runs of a command on this machine would land in a company's workspace. A profile counts
if PREFECT_PROFILE names it, or if it is that of PREFECT_API_URL, whose login it may have.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from common.errors import UsageError, close_matches, one_line

_PATH = "PREFECT_PROFILES_PATH"
_NO_PROFILES = os.devnull


def choose(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make Prefect read its server from the environment alone. Call before Prefect is imported. Idempotent.

    Raises `UsageError` if PREFECT_PROFILE names a profile that cannot be used.
    """
    global _unused
    if environment.get(_PATH) == _NO_PROFILES:
        return
    path = _profiles_path(environment)
    wanted, url = environment.pop("PREFECT_PROFILE", None), environment.get("PREFECT_API_URL")
    if wanted is not None:
        _apply(_named(wanted, path), environment)
    elif (active := _active(path)) and (address := active[1].get("PREFECT_API_URL")):
        if address == url:
            _apply(active[1], environment)
        elif not url:
            _unused = (active[0], _shown(str(address)))
    environment[_PATH] = _NO_PROFILES
    # An empty address is none, and precedes those of files in the current directory.
    environment.setdefault("PREFECT_API_URL", "")


_unused: tuple[str, str] | None = None
"""Name and address of the active profile, which is not used."""


def unused_profile() -> str:
    """The name of the active profile if it has a server that is not used; otherwise empty."""
    return _unused[0] if _unused else ""


def remark(environment: MutableMapping[str, str] = os.environ) -> str:
    """A line on the server that flow runs are recorded in; empty for a temporary one if there is no other."""
    if url := environment.get("PREFECT_API_URL"):
        return f"flow runs are recorded in the Prefect server {_shown(url)}"
    if _unused:
        name, address = _unused
        return (
            f"flow runs are recorded in a temporary Prefect server, not in {address} of the active profile; "
            f"PREFECT_PROFILE={name} uses that"
        )
    return ""


def _profiles_path(environment: MutableMapping[str, str]) -> Path:
    if given := environment.get(_PATH):
        return Path(given)
    home = environment.get("PREFECT_HOME")
    return (Path(home) if home else Path(os.path.expanduser("~/.prefect"))) / "profiles.toml"  # noqa: PTH111  # no error


def _active(path: Path) -> tuple[str, dict[str, Any]] | None:
    """Name and values of the active profile; None if there is none, or it cannot be read."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
        name = content["active"]
        return name, dict(content["profiles"][name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _named(name: str, path: Path) -> dict[str, Any]:
    """The values of a profile. Raises `UsageError` with the reason why there are none."""
    try:
        profiles = _built_in() | _profiles(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else one_line(error)
        raise UsageError(
            f"PREFECT_PROFILE={name}: {path} cannot be read ({reason}); correct it, or unset the variable"
        ) from error
    if not isinstance(profiles.get(name), dict):
        hint = close_matches(name, profiles) or f" There are {', '.join(sorted(profiles))}."
        raise UsageError(f"PREFECT_PROFILE={name} is no profile of {path}.{hint}")
    return dict(profiles[name])


def _built_in() -> dict[str, Any]:
    """The profiles that Prefect has without a file. Prefect itself is not imported."""
    prefect = importlib.util.find_spec("prefect")
    folders = prefect.submodule_search_locations if prefect else None
    return _profiles(Path(folders[0]) / "settings" / "profiles.toml") if folders else {}


def _profiles(path: Path) -> dict[str, Any]:
    """The profiles of a file; none if it does not exist."""
    try:
        profiles = tomllib.loads(path.read_text("utf-8")).get("profiles", {})
    except FileNotFoundError:
        return {}
    return profiles if isinstance(profiles, dict) else {}


def _apply(profile: dict[str, Any], environment: MutableMapping[str, str]) -> None:
    for name, value in profile.items():
        if isinstance(value, str | int | float):
            environment[name] = environment.get(name) or str(value)


def _shown(url: str) -> str:
    """An address without a login."""
    return re.sub(r"//[^/@]*@", "//", url)
