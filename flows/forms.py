"""Parameters of the deployed flows as the Prefect UI shows them: common ones as fields, others in sections.

Messages that name an option of the command line name the field of the form instead, see `words_of_form`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import click
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from common.causes import cause_of
from common.errors import UserError
from common.quantities import Disk, Memory, Seconds, TimeLimit
from common.settings import get_settings
from common.splits import RecordedSplit
from competitions import registry
from competitions.editions import Edition
from flows.fleet.queues import Priority
from flows.watching.outcome import PartlyFailed
from sandbox import backends
from sandbox.agent_registry import list_agents, load_agent, variants_of
from sandbox.isolation import Isolation, Network
from tasks.wiring.context import open_store
from tasks.wiring.process import apply_settings
from tasks.wiring.requests import RunRequest

Seeds = Annotated[int, Field(ge=1)]


def agent_names() -> list[str]:
    """The agents that can be chosen, with their variants as NAME@VARIANT; broken definitions are left out."""
    folders, names = get_settings().agent_dirs, []
    for name in list_agents(folders):
        with contextlib.suppress(UserError):
            names += [name, *(f"{name}@{variant}" for variant in variants_of(load_agent(name, folders)))]
    return names


class _Offered:
    """An annotation: the form offers the agents by name. The path of a folder on the worker can be typed in, too."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        kind = handler(core)
        return {"anyOf": [{"title": "Name", **kind, "enum": agent_names()}, {"title": "Folder", **kind}]}


AgentName = Annotated[str, _Offered()]
"""The name of an agent or the path of its folder. A form lists the agents that are known when it is registered."""


def _known(backend: str) -> str:
    if backend not in backends.names():
        raise ValueError(f"known backends are {', '.join(backends.names())}")
    return backend


class _Registered:
    """An annotation: the form offers the backends that are known when it is registered."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core), "enum": backends.names()}


BackendName = Annotated[str, AfterValidator(_known), _Registered()]
"""The name of a backend."""


class _OfferedSplits:
    """An annotation: the form offers the splits that are known when it is registered, `lite` by its other name."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        names = [name for name in registry.SPLITS if name != "lite"]
        return {**handler(core), "enum": [*names, *get_settings().splits]}


Split = Annotated[str, _OfferedSplits()]
"""The name of a split."""


class Execution(BaseModel):
    """How agents are run."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="Execution of agents")

    time_limit_seconds: TimeLimit | None = Field(
        default=None,
        title="Time limit",
        description="Wall-clock limit of a run. Default: the agent's own, 24 hours for most.",
    )
    max_memory: Memory | None = Field(
        default=None,
        title="Most memory",
        description="Most memory of a run, e.g. 64GB, whatever its agent asks for.",
    )
    max_cpus: int | None = Field(
        default=None, ge=1, title="Most CPU cores", description="Most CPU cores of a run, whatever its agent asks for."
    )
    max_disk: Disk | None = Field(
        default=None, title="Most disk space", description="Most disk space of a run, e.g. 200GB."
    )
    backend: BackendName = Field(
        default="process",
        title="Backend",
        description="Run agents as processes (trusted ones only: those that ship with the package, and those in "
        "MLEBENCH_AGENT_DIRS of the worker), in containers, or isolated without an engine (rootless).",
    )
    network: Network = Field(
        default="gateway",
        title="Network",
        description="What isolated agents can reach: nothing, the LLM gateway, also allowed hosts, all public "
        "addresses, or also private networks.",
    )
    checkpoint_every: Seconds | None = Field(
        default=None,
        title="Checkpoints",
        description="Time between checkpoints of an agent that can resume; 0 for none. Default: the agent's.",
    )
    obfuscated: bool = Field(
        default=False,
        title="Obfuscate competitions",
        description="Hide from agents which competition they work on: another description, and no name.",
    )
    scorer: bool = Field(
        default=False,
        title="Scorer",
        description="Let agents compute the competition's metric on predictions and truth of their own.",
    )
    feedback: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        title="Feedback",
        description="Share of the test units, such as 0.3, on which agents can ask for scores; they are graded on the "
        "others.",
    )
    feedback_calls: int = Field(
        default=5,
        ge=1,
        title="Calls for feedback",
        description="With feedback: scores that a run can ask for within 24 hours.",
    )
    feedback_required: bool = Field(
        default=False,
        title="Feedback required",
        description="With feedback: refuse competitions whose test set cannot be divided, rather than run them "
        "without.",
    )
    overwrite: bool = Field(
        default=False,
        title="Overwrite",
        description="Replace runs of the group that were made under other conditions, such as another time limit.",
    )
    integrity: bool = Field(
        default=False,
        title="Integrity checks",
        description="Examine code and logs of the runs for plagiarism and broken rules.",
    )

    pool: str | None = Field(
        default=None,
        title="Work pool",
        description="Work pool whose workers run the agents. Default: MLEBENCH_AGENT_POOL of the worker.",
    )
    priority: Priority = Field(
        default="normal",
        title="Priority",
        description="With a work pool: which group's agents come first where several wait.",
    )

    @property
    def isolation(self) -> Isolation:
        """The isolation with the chosen backend and network."""
        return Isolation(self.backend, self.network)


class Data(BaseModel):
    """Where datasets come from and where results go."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="Data and storage")

    edition: Edition = Field(
        default="v1",
        title="Edition",
        description="v1 reproduces the published benchmark; v2 has its known issues fixed.",
    )
    store: str | None = Field(
        default=None, title="Store", description="Root URL of the store. Default: MLEBENCH_STORE of the worker."
    )
    raw_dir: str | None = Field(
        default=None,
        title="Downloads",
        description="Directory of downloaded archives on the worker. Default: download from Kaggle.",
    )
    skip_verification: bool = Field(
        default=False,
        title="Skip verification",
        description="Do not compare prepared files with the published checksums.",
    )


class Archives(BaseModel):
    """What is done with downloads, besides preparing from them."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="Archives and verification")

    keep_raw: bool = Field(
        default=False,
        title="Keep archives",
        description="Keep the downloaded archives after preparing. Those of competitions of your own are always kept.",
    )
    skip_verification: bool = Field(
        default=False,
        title="Skip verification",
        description="Do not compare prepared files with the published checksums.",
    )
    renew: bool = Field(
        default=False,
        title="Renew",
        description="Download datasets that other code made again, and keep them if the current code makes the same "
        "files.",
    )


def chosen_ids(split: Split, competition_ids: list[str] | None) -> list[str]:
    """The named competitions, or all of the split if none is named. Raises `UnknownCompetition` for a wrong id."""
    apply_settings()  # further competitions that the worker knows
    return registry.select(competition_ids or registry.list(split))


def group_part(agent: str) -> str:
    """An agent's name as a part of a run group's name. Raises `AgentError` early, not after hours of preparing."""
    return load_agent(agent, get_settings().agent_dirs).full_name.replace("@", "-")


def run_request(
    agent: str,
    run_group: str,
    seeds: int,
    data: Data,
    execution: Execution | None = None,
    split: RecordedSplit | None = None,
) -> RunRequest:
    """The request for the flows behind the deployments."""
    execution_form = execution or Execution()
    return RunRequest(
        agent=agent,
        run_group=run_group,
        store=open_store(data.store).root,
        seeds=seeds,
        edition=data.edition,
        time_limit_seconds=execution_form.time_limit_seconds,
        max_memory=execution_form.max_memory,
        max_cpus=execution_form.max_cpus,
        max_disk=execution_form.max_disk,
        checkpoint_every=execution_form.checkpoint_every,
        isolation=execution_form.isolation,
        obfuscated=execution_form.obfuscated,
        scorer=execution_form.scorer,
        feedback=execution_form.feedback,
        feedback_calls=execution_form.feedback_calls,
        feedback_required=execution_form.feedback_required,
        overwrite=execution_form.overwrite,
        examine=execution_form.integrity,
        split=split,
    )


_OPTION = re.compile(r"--[a-z]+(?:-[a-z]+)*")
_PLAIN = ("agent", "split", "seeds", "run_group", "store", "edition", "raw_dir")
"""Fields outside of sections, which Prefect shows by name."""


@contextlib.contextmanager
def words_of_form(*sections: type[BaseModel]) -> Iterator[None]:
    """Raise errors of users in the block with messages that fit a form with these sections."""
    try:
        yield
    except PartlyFailed as error:
        outcomes = [replace(each, message=in_words_of_form(each.message, *sections)) for each in error.outcomes]
        raise PartlyFailed(outcomes) from error
    except click.UsageError as error:
        raise UserError(in_words_of_form(error.message, *sections)) from error
    except UserError as error:
        raise UserError(in_words_of_form(str(error), *sections)).of_kind(cause_of(error).kind) from error


def in_words_of_form(message: str, *sections: type[BaseModel]) -> str:
    """A message with the fields of a form instead of options, and without remedies that the form does not have.

    >>> in_words_of_form("it is not trusted: use --backend docker, or accept that with --allow-untrusted", Execution)
    'it is not trusted: use “Backend” docker'
    >>> in_words_of_form("it is not trusted: use --backend docker, or add it to MLEBENCH_AGENT_DIRS", Data)
    'it is not trusted: add it to MLEBENCH_AGENT_DIRS (settings are those of the worker)'
    """
    titles = {f"--{name.replace('_', '-')}": name for name in _PLAIN}
    for section in sections:
        for name, field in section.model_fields.items():
            titles[f"--{name.removesuffix('_seconds').replace('_', '-')}"] = str(field.title)
    option = _OPTION.search(message)
    if option is not None:
        start = message.rfind(": ", 0, option.start()) + 2
        head, remedies = (message[:start], message[start:]) if start > 1 else ("", message)
        known = [part for part in re.split(r"[,;] or,? ", remedies) if set(_OPTION.findall(part)) <= set(titles)]
        message = head + ", or ".join(known) if known else head.removesuffix(": ")
        message = _OPTION.sub(lambda found: f"“{titles.get(found[0], found[0])}”", message)
    return f"{message} (settings are those of the worker)" if "MLEBENCH_" in message else message
