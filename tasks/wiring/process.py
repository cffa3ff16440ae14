"""Applying the settings that are global in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import SecretStr


def apply_settings() -> None:
    """Apply the settings to this process: the command line, every flow and every Dask worker call this first.

    Idempotent and cheap. It sets what cannot be passed as a value:

    - the options of S3, because fsspec has one set of defaults per process, which `pandas.read_parquet(url)` also uses;
    - the directories of further competitions, because competitions are looked up by id in many places.

    Raises `UserError` for settings that are not valid.
    """
    from common.settings import get_settings
    from competitions import registry
    from storage.remote import S3Options, configure

    settings = get_settings()
    configure(
        S3Options(
            endpoint_url=settings.s3_endpoint_url,
            access_key_id=_revealed(settings.s3_access_key_id),
            secret_access_key=_revealed(settings.s3_secret_access_key),
            patience=settings.patience,
        )
    )
    registry.extend(settings.competitions)


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
