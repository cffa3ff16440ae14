"""Settings of an installation: environment variables `MLEBENCH_*`, an optional `mlebench.toml`, and defaults.

The defaults need nothing but Python: a local directory, a local Dask cluster, Prefect's ephemeral server.

Only `tasks`, `flows`, `deployments` and `benchmarks` read settings; everything below them receives values.
"""

from __future__ import annotations

import logging
import os
import socket
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, ByteSize, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from common.environment import bare, settle
from common.errors import UserError, close_matches, expected, explained, one_line
from common.plain_json import parse_json, read_json
from common.providers import Price, Provider
from common.quantities import Disk, Memory, Seconds, Size, TimeLimit
from common.splits import OwnSplit
from common.texts import read_text, typed_wrong

PREFIX = "MLEBENCH_"
OTHER_VARIABLES = {
    "MLEBENCH_STARTED_BY": "the process that has started a temporary Prefect server, set by the command line",
    "MLEBENCH_JOB_FILE": "when the job of a worker leaves, set by `mlebench worker` and by runs in a Slurm job",
    "MLEBENCH_PYTHON": "the interpreter of an agent's environment, set by the sandbox",
    "MLEBENCH_RESUMED": "tells an agent that its run continues, set by the sandbox",
    "MLEBENCH_DATABASE_URL": "the database of the Prefect server that deployments/up.py starts",
    "MLEBENCH_IMAGE": "the image of deployments/compose.yaml",
    "MLEBENCH_BUCKET": "the bucket of deployments/compose.yaml",
    "MLEBENCH_REQUIRE_SERVICES": "makes the tests fail where a service is missing",
    "MLEBENCH_WITHOUT": "services that the tests may miss nevertheless",
}
"""Variables with the prefix that are not settings, and what reads them."""


def _directories(value: Any) -> Any:
    """Parse directories given as a list, as JSON text, or separated as in PATH. `~` is the home directory."""
    if isinstance(value, str):
        text = value.strip()
        value = parse_json(text) if text.startswith("[") else [part for part in text.split(os.pathsep) if part]
    if isinstance(value, list | tuple):
        return [Path(item).expanduser() if isinstance(item, str | Path) else item for item in value]
    return value


def _expanded(value: Any) -> Any:
    """Replace `~` by the home directory, as a shell does."""
    try:
        return Path(value).expanduser() if isinstance(value, str | Path) else value
    except RuntimeError as error:
        raise ValueError(f"{value}: {error}") from error


def _bare(value: Any) -> Any:
    """A value of the file or the environment, its texts without blanks and quotes around them; empty ones are unset."""
    if isinstance(value, dict):
        return {key: cleaned for key, each in value.items() if (cleaned := _bare(each)) != ""}
    return bare(value) if isinstance(value, str) else value


def _home() -> Path:
    """The home directory, for defaults. Raises `UserError` if there is none, as for some users of containers."""
    try:
        return Path.home().absolute()
    except RuntimeError as error:
        raise UserError("this user has no home directory: set HOME, or MLEBENCH_STORE and MLEBENCH_SCRATCH") from error


Directories = Annotated[list[Path], NoDecode, BeforeValidator(_directories)]
OnePath = Annotated[Path, BeforeValidator(_expanded)]
PathOrNone = Annotated[Path | None, BeforeValidator(_expanded)]


class Settings(BaseSettings):
    """The settings of one installation."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        hide_input_in_errors=True,  # it may be a key
    )

    store: str = Field(
        default_factory=lambda: (_home() / ".local" / "share" / "mlebench").as_uri(),
        description="Root of everything: a directory, or an S3 bucket such as s3://bucket/prefix.",
    )
    raw_dir: PathOrNone = Field(
        default=None, description="Directory of downloads: <id>.zip files, or folders <id>/ with their content."
    )
    scratch: OnePath = Field(
        default_factory=lambda: _home() / ".cache" / "mlebench",
        description="Local directory for running agents and for copies of prepared data.",
    )
    files_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s?#]+$",
        description="Address of a web server for the files of the store, for links in the Prefect UI. `make up` sets "
        "it for a local store. Stores on S3 have signed links.",
    )
    cache_limit: Size = Field(
        default=ByteSize(500 * 10**9),
        description="Maximum size of the local copies of prepared data with a remote store, e.g. 500GB. "
        "Agents wait for room within it; grading does not.",
    )
    s3_endpoint_url: str | None = Field(default=None, description="S3 server. Default: AWS_ENDPOINT_URL, or Amazon.")
    s3_access_key_id: SecretStr | None = Field(default=None, description="Default: the usual AWS variables and files.")
    s3_secret_access_key: SecretStr | None = Field(default=None, description="The key of s3_access_key_id.")
    params: PathOrNone = Field(
        default=None,
        description="JSON file {id: {parameter: value}} that overrides the `params` of competitions, for miniatures.",
    )
    space_check: bool = Field(
        default=True, description="Whether to prepare only what is likely to fit on the disk of the store."
    )
    network_timeout: Seconds = Field(
        default=60.0, gt=0, description="Seconds without data after which a connection to Kaggle is closed and resumed."
    )
    patience: Seconds = Field(
        default=3600.0,
        ge=0,
        description="Seconds for which requests are retried while the network, the store, Prefect, Dask or Docker "
        "does not answer. The timeout of the last request is added, which is at most half of this, or 3 s.",
    )
    competitions: Directories = Field(
        default_factory=list, description="Directories with further competition folders, as in PATH or as a JSON list."
    )
    splits: dict[str, OwnSplit] = Field(
        default_factory=dict, description="Splits of your own by name, for `--split`: [splits.NAME] in mlebench.toml."
    )
    agent_dirs: Directories = Field(
        default_factory=list, description="Directories with further agent folders, as in PATH or as a JSON list."
    )
    dask_address: str | None = Field(default=None, description="An existing Dask scheduler, e.g. tcp://host:8786.")
    dask_workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, gt=0, description="Worker processes of the local cluster."
    )
    dask_dashboard: str | None = Field(
        default=None, description="Address of the local cluster's dashboard, e.g. 127.0.0.1:8787. None: no dashboard."
    )
    downloads: int = Field(default=2, gt=0, description="Concurrent downloads (network bound).")
    prepare_time_limit: TimeLimit = Field(
        default=24 * 3600.0,
        description="Longest time that the prepare.py of a competition in the published format may take, e.g. 24h.",
    )
    preparations: int = Field(default=4, gt=0, description="Competitions split concurrently (disk bound).")
    agents: int = Field(
        default_factory=lambda: os.cpu_count() or 1,
        gt=0,
        description="Concurrent agents on this host, of all its flow runs (CPU and memory bound).",
    )
    host_name: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        description="Name of this host. Flow runs on a machine that have the same name for it share slots and GPUs.",
    )
    agent_pool: str | None = Field(
        default=None, description="Prefect work pool whose workers run the agents. None: agents run on this machine."
    )

    providers: dict[str, Provider] = Field(
        default_factory=dict,
        description="Language model providers: MLEBENCH_PROVIDERS__OPENAI__BASE_URL, ..__API_KEY. None: no gateway.",
    )
    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="US dollars for a million tokens, by model or pattern; precedes the list prices.",
    )
    llm_requests: int | None = Field(default=None, ge=0, description="Requests to language models that a run may make.")
    llm_tokens: int | None = Field(default=None, ge=0, description="Input and output tokens that a run may use.")
    llm_dollars: float | None = Field(default=None, ge=0, description="US dollars that a run may spend on them.")
    llm_requests_per_minute: int | None = Field(
        default=600, gt=0, description="Requests that a run may make a minute, with those that cost nothing."
    )
    llm_tokens_per_minute: int | None = Field(default=None, gt=0, description="Tokens that a run may use a minute.")
    llm_refuse_unpriced: bool = Field(
        default=False, description="Refuse models without a known price; a limit in dollars always does."
    )
    llm_transcripts: bool = Field(default=False, description="Keep complete transcripts of these requests.")
    llm_hosted_tools: bool = Field(
        default=False, description="Let providers search the web, fetch addresses or run code for agents."
    )
    server_hosts: list[str] = Field(
        default_factory=list,
        description="Names, as NAME or NAME:PORT, by which browsers and programs reach the Prefect server of `make up` "
        "besides localhost, for example through a proxy or ssh -L.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Hosts allowed by --network allowlist; .example.org includes subdomains.",
    )
    agent_time_limit: TimeLimit = Field(
        default=24 * 3600.0, description="Longest time limit of a run, e.g. 24h, unless --time-limit is given."
    )
    agent_memory: Memory | None = Field(
        default=None, description="Most memory of a run, e.g. 64GB. Default: 90 % of the machine's."
    )
    agent_cpus: int | None = Field(default=None, gt=0, description="Most CPU cores of a run. Default: all.")
    agent_disk: Disk | None = Field(
        default=None,
        description="Most disk space of a run, e.g. 200GB. Default: 90 % of what is free in scratch.",
    )
    disk_images: bool = Field(
        default=False,
        description="Give each container a disk of its own, in a file of the size of its disk limit. Needs root.",
    )
    agent_processes: int = Field(default=4096, gt=0, description="Most processes of a run at once.")
    agent_gpus: int | None = Field(default=None, gt=0, description="Most GPUs of a run. Default: all.")
    free_disk: Size = Field(
        default=ByteSize(1024**3),
        gt=0,
        description="Free space in scratch, at most a tenth of the disk, below which runs are ended.",
    )
    agent_secrets: list[str] = Field(
        default_factory=list, description="Environment variables that agents may request as secrets.NAME."
    )
    checkpoint_every: Seconds | None = Field(
        default=None,
        ge=0,
        description="Seconds between two checkpoints of agents that can resume; 0: none. Default: the agent's own.",
    )
    checkpoint_size: Size = Field(
        default=ByteSize(4 * 1024**3),
        gt=0,
        description="Most bytes of a checkpoint. Working files beyond it are left out.",
    )
    validation_calls: int = Field(default=2000, ge=0, description="Validations that a run may request; 0: no service.")
    validation_calls_per_minute: int = Field(
        default=20, gt=0, description="Validations that a run may request a minute."
    )
    scorer_calls: int = Field(default=2000, gt=0, description="Scores that a run with `--scorer` may request.")
    scorer_calls_per_minute: int = Field(
        default=20, gt=0, description="Scores that a run with `--scorer` may request a minute."
    )

    ledger_key: SecretStr = Field(
        default=SecretStr(""), description="Key that signs the evidence: a secret, or an Ed25519 private key (PEM)."
    )
    integrity_model: str | None = Field(
        default=None, description="Language model that examines runs for rule violations. None: rules only."
    )
    familiarity_model: str | None = Field(
        default=None, description="Language model whose familiarity with competitions is measured. None: not measured."
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
        return init_settings, env_settings, InitSettingsSource(settings_cls, init_kwargs=file_values())

    @model_validator(mode="before")
    @classmethod
    def _bare_values(cls, values: Any) -> Any:
        return _bare(values)

    def params_of(self, competition_id: str) -> dict[str, Any]:
        """Overrides of a competition's parameters from the file `params`; empty without a file.

        Raises `UserError` if the file cannot be used.
        """
        if self.params is None:
            return {}
        content = read_json(self.params, f"MLEBENCH_PARAMS: {self.params}")
        parameters = content.get(competition_id, {}) if isinstance(content, dict) else None
        if not isinstance(parameters, dict):
            raise UserError(f"MLEBENCH_PARAMS: {self.params} must hold {{id: {{parameter: value}}}}")
        return parameters


@lru_cache(maxsize=1)  # one environment and one file a process: all of its parts must read the same settings
def get_settings() -> Settings:
    """The settings of this process. Raises `UserError` naming the unknown or invalid setting.

    The environment is rewritten first (`common.environment`), because libraries read variables of their own.
    """
    settle()
    _warn_of_unknown_variables(os.environ)
    try:
        return Settings()
    except ValidationError as error:
        raise UserError(_explanation(error)) from error
    except SettingsError as error:
        raise UserError(f"environment: {one_line(error)}; lists and tables are written as JSON") from error


def file_values() -> dict[str, Any]:
    """The keys of mlebench.toml in the current directory; none without a file. Raises `UserError` if it is no TOML."""
    path = Path("mlebench.toml")
    if not path.is_file():
        return {}
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {one_line(error)}{typed_wrong(text)}") from error


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with the prefix that nothing reads, each with a hint about the nearest setting.

    >>> list(unknown_variables({"MLEBENCH_CACHELIMIT": "1", "MLEBENCH_PROVIDERS__A__API": "openai", "HOME": "/"}))
    ['MLEBENCH_CACHELIMIT']
    """
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    return {
        name: close_matches(name.upper(), known)
        for name in sorted(environment)
        if name.upper().startswith(PREFIX) and name not in OTHER_VARIABLES and name.upper().split("__")[0] not in known
    }


def _warn_of_unknown_variables(environment: Mapping[str, str]) -> None:
    # A warning instead of an error, because other programs may use variables with the same prefix.
    for name, hint in unknown_variables(environment).items():
        logging.getLogger("mlebench.settings").warning("%s is not a setting and is ignored.%s", name, hint)


def _explanation(error: ValidationError) -> str:
    """The first unknown key, or else the first invalid value, or all in tables of the file, in one line."""
    problems = error.errors()
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    keys = [str(part) for part in first["loc"]]
    variable = PREFIX + "__".join(keys).upper()
    if first["type"] != "extra_forbidden":
        in_environment = any(name.upper().startswith(f"{PREFIX}{keys[0]}__".upper()) for name in os.environ)
        if len(keys) > 1 and keys[0] in file_values() and not in_environment:
            return f"mlebench.toml: {explained(error)}"
        return f"setting {variable}: {expected(first)}"
    known = Settings.model_fields
    if len(keys) > 1:  # a table of models by name, as `providers`
        known = get_args(Settings.model_fields[keys[0]].annotation)[-1].model_fields
    hint = close_matches(keys[-1].lower().removeprefix(PREFIX.lower()), known)
    if len(keys) == 1:
        return f"mlebench.toml: unknown key {keys[0]!r}.{hint}"
    return f"unknown setting {'.'.join(keys)} in mlebench.toml, or {variable} in the environment.{hint}"
