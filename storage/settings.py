"""Settings of an installation: environment variables `MLEBENCH_*`, an optional `mlebench.toml`, and defaults.

The defaults need nothing but Python: a local directory, a local Dask cluster, Prefect's ephemeral server.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from competitions.errors import UserError
from competitions.facts import one_line


class Settings(BaseSettings):
    """One installation's settings."""

    model_config = SettingsConfigDict(env_prefix="MLEBENCH_", toml_file="mlebench.toml", extra="ignore")

    store: str = Field(
        default_factory=lambda: (Path.home() / ".local" / "share" / "mlebench").as_uri(),
        description="Root of everything: a path, file:// or any fsspec URL such as s3://bucket/prefix.",
    )
    raw_dir: Path | None = Field(default=None, description="Directory of already downloaded <id>.zip files.")
    scratch: Path = Field(
        default_factory=lambda: Path.home() / ".cache" / "mlebench",
        description="Local disk for running agents and for copies of prepared data.",
    )
    agent_dirs: list[Path] = Field(default_factory=list, description="Directories with further agent folders.")
    dask_address: str | None = Field(default=None, description="An existing Dask scheduler, e.g. tcp://host:8786.")
    dask_workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, gt=0, description="Worker processes of the local cluster."
    )
    downloads: int = Field(default=2, gt=0, description="Downloads at one time (network bound).")
    preparations: int = Field(default=4, gt=0, description="Competitions split at one time (disk bound).")
    agents: int = Field(
        default_factory=lambda: os.cpu_count() or 1, gt=0, description="Agents at one time (CPU and memory bound)."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then mlebench.toml."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process. Raises `UserError` naming the setting that does not validate."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "MLEBENCH_" + "_".join(str(part) for part in first["loc"]).upper()
        raise UserError(f"setting {name}: {first['msg']}") from error
    except ValueError as error:
        raise UserError(f"mlebench.toml: {one_line(error)}") from error
