"""Settings of an installation: environment variables `MLEBENCH_*`, an optional `mlebench.toml`, and defaults.

The defaults need nothing but Python: a local directory, a local Dask cluster, Prefect's ephemeral server.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ByteSize, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from common.errors import UserError, one_line
from common.providers import Price, Provider


class Settings(BaseSettings):
    """One installation's settings."""

    model_config = SettingsConfigDict(
        env_prefix="MLEBENCH_",
        env_nested_delimiter="__",
        toml_file="mlebench.toml",
        extra="ignore",
        hide_input_in_errors=True,  # it may be a key
    )

    store: str = Field(
        default_factory=lambda: (Path.home() / ".local" / "share" / "mlebench").as_uri(),
        description="Root of everything: a path, file:// or any fsspec URL such as s3://bucket/prefix.",
    )
    raw_dir: Path | None = Field(default=None, description="Directory of already downloaded <id>.zip files.")
    scratch: Path = Field(
        default_factory=lambda: Path.home() / ".cache" / "mlebench",
        description="Local disk for running agents and for copies of prepared data.",
    )
    cache_limit: ByteSize = Field(
        default=ByteSize(500 * 10**9),
        description="Size of the local copies of prepared data kept for a remote store, e.g. 500GB.",
    )
    s3_endpoint_url: str | None = Field(default=None, description="S3 server. Default: AWS_ENDPOINT_URL, or Amazon.")
    s3_access_key_id: SecretStr | None = Field(default=None, description="Default: the usual AWS variables and files.")
    s3_secret_access_key: SecretStr | None = Field(default=None, description="Goes with s3_access_key_id.")
    params: Path | None = Field(
        default=None,
        description="JSON file {id: {parameter: value}} laid over the `params` of competitions, for miniatures.",
    )
    network_timeout: float = Field(
        default=60.0, gt=0, description="Seconds of silence after which a connection to Kaggle is given up and resumed."
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

    providers: dict[str, Provider] = Field(
        default_factory=dict,
        description="Language models for agents: MLEBENCH_PROVIDERS__OPENAI__BASE_URL, ..__API_KEY; none: no gateway.",
    )
    prices: dict[str, Price] = Field(
        default_factory=dict, description="US dollars for a million tokens by model, over those that ship."
    )
    llm_requests: int | None = Field(default=None, ge=0, description="Requests to language models a run may make.")
    llm_tokens: int | None = Field(default=None, ge=0, description="Tokens, input and output, a run may use.")
    llm_dollars: float | None = Field(default=None, ge=0, description="US dollars a run may spend on language models.")
    llm_transcripts: bool = Field(default=False, description="Keep every request to language models in full.")
    llm_hosted_tools: bool = Field(
        default=False, description="Let providers search the web, fetch addresses or run code for agents."
    )
    allowed_hosts: list[str] = Field(
        default_factory=list, description="Hosts that agents reach under --network allowlist; .example.org: all below."
    )
    agent_secrets: list[str] = Field(
        default_factory=list, description="Variables of your environment that agents may ask for as secrets.NAME."
    )
    validation_calls: int = Field(default=2000, ge=0, description="Validations a run may ask for; 0: no service.")
    validation_calls_per_minute: int = Field(default=20, gt=0, description="Validations of a run in a minute.")

    ledger_key: SecretStr = Field(
        default=SecretStr(""), description="Signs the evidence ledgers of runs (HMAC); keep it away from the store."
    )
    integrity_model: str | None = Field(
        default=None, description="Language model that reads runs for rule violations, by a provider; none: not asked."
    )
    familiarity_model: str | None = Field(
        default=None, description="Language model whose familiarity with competitions is measured; none: not asked."
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


def params_of(competition_id: str) -> dict[str, Any]:
    """The overrides of a competition's parameters that the settings name. Raises `UserError` for an unusable file."""
    path = get_settings().params
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"MLEBENCH_PARAMS: {path} is no readable JSON file: {one_line(error)}") from error
    found = content.get(competition_id, {}) if isinstance(content, dict) else None
    if not isinstance(found, dict):
        raise UserError(f"MLEBENCH_PARAMS: {path} must hold {{id: {{parameter: value}}}}")
    return found


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process. Raises `UserError` naming the setting that does not validate."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "MLEBENCH_" + "__".join(str(part) for part in first["loc"]).upper()
        raise UserError(f"setting {name}: {first['msg']}") from error
    except ValueError as error:
        raise UserError(f"mlebench.toml: {one_line(error)}") from error
