"""Applying the settings that are global in a process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import SecretStr


PREFECT_SECONDS = 60.0
"""The usual timeout of a request to a Prefect server, which its clients make six times."""


def apply_settings() -> None:
    """Apply the settings to this process: the command line, every flow and every Dask worker call this first.

    Idempotent and cheap. It sets what cannot be passed as a value:

    - the options of S3, because fsspec has one set of defaults per process, which `pandas.read_parquet(url)` also uses;
    - how long is waited for servers that do not answer, with variables of Prefect for its own clients;
    - the directories of further competitions, and splits of one's own, because they are looked up in many places;
    - the limits on code of competitions that writes files, which runs far below the code that reads settings;
    - Prefect's home, where the user has none that can be written.

    Raises `UserError` for settings that are not valid.
    """
    from common import patience
    from common.settings import get_settings
    from competitions import registry
    from competitions.preparing import limits
    from storage.remote import S3Options, configure

    settings = get_settings()
    patience.configure(settings.patience)
    configure(
        S3Options(
            endpoint_url=settings.s3_endpoint_url,
            access_key_id=_revealed(settings.s3_access_key_id),
            secret_access_key=_revealed(settings.s3_secret_access_key),
        )
    )
    registry.extend(settings.competitions)
    registry.define(settings.splits)
    limits.configure(settings.prepare_time_limit, settings.scratch)
    if os.environ.get("PREFECT_API_URL") and (seconds := patience.request_timeout(PREFECT_SECONDS)) < PREFECT_SECONDS:
        os.environ.setdefault("PREFECT_API_REQUEST_TIMEOUT", str(seconds))
        os.environ.setdefault("PREFECT_CLIENT_MAX_RETRIES", "1")
    if "PREFECT_HOME" not in os.environ and not _has_home():
        home = settings.scratch / "prefect"
        with contextlib.suppress(OSError):  # who uses it will say so
            home.mkdir(parents=True, exist_ok=True)
            os.environ["PREFECT_HOME"] = str(home)


def _has_home() -> bool:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # unlike `Path.home`, no error where there is no home
    existing = home / ".prefect" if (home / ".prefect").is_dir() else home
    return os.access(existing, os.W_OK | os.X_OK)


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
