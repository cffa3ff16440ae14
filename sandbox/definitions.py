"""Definitions of agents. An agent is a folder with ``agent.yaml``, a start file, and all other files that it needs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from common import months, names, trees
from common.quantities import Seconds
from common.units import size
from sandbox import scripts
from sandbox.errors import AgentError
from sandbox.limits import GIB, Limits, read_limits

BUILTIN_AGENTS = Path(__file__).parent / "agents"
SHARED = BUILTIN_AGENTS / "_shared"
"""Files that several agents use. An agent gets the files that it names."""
DEFINITION = "agent.yaml"
FOLDER_BYTES, FOLDER_FILES = 10 * GIB, 100_000
"""Limits of an agent's folder, which is read for its fingerprint and copied for every run."""
DOCKERFILE = "Dockerfile"
BASE_IMAGE = "mlebench-base"
AGENT_IMAGE = "mlebench-agent-"
"""What the names of images begin with that agents' Dockerfiles make."""
SCRIPTS = ("validate_submission.sh", "score.sh", "public_score.sh")
"""The scripts by which agents reach the validation service."""
GIVEN = ("instructions.txt", *SCRIPTS, "example_truth.csv", "example_truth.jsonl")
"""Files in an agent's home that the run writes. Agents in containers can only read them."""
NOT_RESUMED = frozenset({"data", "tmp", "description.md", *GIVEN})
"""Files and folders in an agent's home that a resumed run does not take over."""
ABOUT = re.compile(r"(?:README|LICEN[CS]E|CHANGELOG|CONTRIBUTING)(?:\.[a-z]+)?|\.git(?:ignore|attributes)|.*~", re.I)
"""Files in an agent's folder that are for people. Agents do not get them, so they cannot change a result."""
IGNORED = frozenset({"__pycache__", ".git", ".DS_Store", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


class Agent(BaseModel):
    """One agent, as defined by its ``agent.yaml``. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9._-]*$",
        description="The folder's name; appears in run ids, tables and reports.",
    )
    description: str = Field(min_length=1, description="One sentence for `mlebench agents`.")
    trusted: bool = Field(
        default=False,
        description="Whether it may run without isolation (process backend). Only for code you would run yourself.",
    )
    start: str = Field(
        default="start.sh",
        description="File in the folder that starts the agent, run with bash unless it is executable.",
    )
    includes: list[str] = Field(
        default_factory=list,
        description="Files that ship with the package and that the agent gets beside its own: `continuing.py`.",
    )
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = Field(
        default_factory=dict,
        description="Environment variables for the agent. Variables that the sandbox sets (HOME, ...) take precedence.",
    )
    kwargs: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")], bool | int | float | str] = Field(
        default_factory=dict, description="Arguments of the start file."
    )
    kwargs_type: Literal["argparse", "omegaconf"] = Field(
        default="argparse", description="Style of the arguments: `--name value`, or `name=value`."
    )
    image: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$",
        description="Container image. Default: built from its Dockerfile by `mlebench build`, or the base image.",
    )
    network: Literal["none", "gateway", "allowlist", "open"] = Field(
        default="gateway",
        description="Network access the agent asks for. The operator decides (--network).",
    )
    knowledge_cutoff: str | None = Field(
        default=None,
        pattern=months.PATTERN,
        description="Month of the newest training data of its language model, YYYY-MM. Reports compare it with the "
        "dates of competitions.",
    )
    hosts: list[str] = Field(
        default_factory=list, description="Hosts that the agent asks for under the policy `allowlist`."
    )
    language_models: bool = Field(
        default=False,
        description="Cannot work without language models. Its runs are refused where no provider is configured.",
    )
    privileged: bool = Field(
        default=False,
        description="Needs a privileged container, which can take over the machine. Refused unless allowed.",
    )
    limits: Annotated[Limits, BeforeValidator(read_limits)] = Field(
        default_factory=Limits, description="Resource limits of a run; the operator's settings override them."
    )
    resume: list[str] | None = Field(
        default=None,
        description="Files and folders below its home with its native session, for an agent that can continue it after "
        "its run was interrupted. An empty list: all is in submission/, code/ and logs/. Default: it begins anew.",
    )
    checkpoint_every_seconds: Seconds = Field(
        default=600.0,
        ge=1,
        allow_inf_nan=False,
        description="Time between two checkpoints of an agent that can resume; the operator's settings override it.",
    )
    variant: str | None = Field(default=None, exclude=True, description="Chosen by `NAME@VARIANT`; not in the file.")
    claims_trust: bool = Field(
        default=False, exclude=True, description="Its file says `trusted`, which does not count where it is."
    )
    folder: Path = Field(exclude=True, description="The folder the agent was loaded from; not a field of the file.")

    @field_validator("start")
    @classmethod
    def _start_is_inside(cls, value: str) -> str:
        if not value or Path(value).is_absolute() or ".." in Path(value).parts:
            raise ValueError("must be a file inside the agent's folder")
        return value

    @field_validator("includes")
    @classmethod
    def _includes_exist(cls, value: list[str]) -> list[str]:
        shipped = sorted(path.name for path in SHARED.iterdir() if path.is_file())
        if unknown := set(value) - set(shipped):
            raise ValueError(
                f"{names.shown(min(unknown))} does not ship with the package; there is {', '.join(shipped)}"
            )
        return value

    @field_validator("env", "kwargs")
    @classmethod
    def _programs_can_have_them(cls, value: dict[str, Any]) -> dict[str, Any]:
        """A NUL ends an argument of a program, and what follows would be another one."""
        if bad := [name for name, each in value.items() if isinstance(each, str) and "\0" in each]:
            raise ValueError(f"{names.shown(bad[0])} has a NUL character, which no program can be given")
        return value

    @field_validator("resume")
    @classmethod
    def _session_is_the_agents_own(cls, value: list[str] | None) -> list[str] | None:
        if value is not None:
            for path in value:
                if (reason := _not_a_session(path)) is not None:
                    raise ValueError(f"{names.shown(path)} {reason}")
            value = [path.rstrip("/") for path in value]
        return value

    @property
    def full_name(self) -> str:
        """Name and variant, as in tables: ``aide@dev``."""
        return f"{self.name}@{self.variant}" if self.variant else self.name

    @property
    def image_name(self) -> str:
        """The container image that the agent runs in."""
        default = f"{AGENT_IMAGE}{self.name}" if (self.folder / DOCKERFILE).is_file() else BASE_IMAGE
        return self.image or default

    @property
    def built_by(self) -> str:
        """The argument of `mlebench build` that makes its image, in quotes where a shell needs them."""
        if self.image_name.removesuffix(":latest") == BASE_IMAGE:
            return "base"
        return self.name if self.folder.parent == BUILTIN_AGENTS.resolve() else shlex.quote(str(self.folder))

    def arguments(self) -> list[str]:
        """The arguments of the start file, from ``kwargs``."""
        texts = {name: str(v).lower() if isinstance(v, bool) else str(v) for name, v in self.kwargs.items()}
        if self.kwargs_type == "omegaconf":
            return [f"{name}={text}" for name, text in texts.items()]
        return [part for name, text in texts.items() for part in (f"--{name}", text)]

    def files(self) -> Iterator[Path]:
        """The agent's files relative to its folder, sorted, with those that it includes.

        Caches are left out, and in the folder itself files such as README.md (`ABOUT`): the agent does not get them.

        Raises:
            AgentError: it has too many files or bytes, or something in it is neither a regular file nor a folder: a
                link could point to anything that the operator can read, and its target would be copied for the agent.
        """
        paths: list[Path] = []
        total = 0
        with self._readable(), trees.opened_folder(self.folder) as top:
            for entry in trees.walk(top, enter=lambda folder: folder.name not in IGNORED):
                if entry.is_folder or entry.name in IGNORED or entry.name.endswith(".pyc"):
                    continue
                if "/" not in entry.path and self._is_about(entry.name):
                    continue
                if not entry.is_file:
                    raise trees.NotRegular(f"{entry.path} is {trees.kind(entry.status.st_mode)}")
                if not names.is_text(entry.path):
                    raise AgentError(f"{self.folder}: {names.shown(entry.path)} is not valid UTF-8: rename it")
                paths.append(Path(entry.path))
                total += entry.status.st_size
                if total > FOLDER_BYTES or len(paths) > FOLDER_FILES:
                    raise AgentError(
                        f"{self.folder} has more than {size(FOLDER_BYTES)} or {FOLDER_FILES:,} files: keep large files "
                        "elsewhere, for example in an image"
                    )
        paths += [Path(name) for name in self.includes]
        if len(paths) > len(set(paths)):
            raise AgentError(
                f"{self.folder} has a file that it also includes: rename one of {', '.join(self.includes)}"
            )
        yield from sorted(path for path in paths if IGNORED.isdisjoint(path.parts))

    @contextlib.contextmanager
    def opened(self, file: Path) -> Iterator[int]:
        """Descriptor of one of the agent's files. Raises `AgentError` if it is no longer a regular file."""
        folder = SHARED if file.as_posix() in self.includes else self.folder
        with readable(folder), trees.opened_below(folder, file) as descriptor:
            yield descriptor

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        with readable(self.folder):
            yield

    def _is_about(self, name: str) -> bool:
        return name != self.start and ABOUT.fullmatch(name) is not None

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the variant and of the files' names, executable bits and contents; part of cache keys."""
        digest = hashlib.sha256(self.variant.encode() if self.variant else b"")
        for relative in self.files():
            content = hashlib.sha256()
            with self.opened(relative) as file:
                executable = bool(os.fstat(file).st_mode & 0o111)
                for number, piece in enumerate(trees.pieces(file)):
                    if number == 0:
                        scripts.require_sound(self.folder / relative, piece)
                    content.update(piece)
            digest.update(f"{relative.as_posix()}\0{executable}\0{content.hexdigest()}\n".encode())
        return digest.hexdigest()


def _not_a_session(path: str) -> str | None:
    """Why a path cannot be in ``resume``; None if it can."""
    if path.startswith(("/", "~", "$")):
        return "must be relative to the agent's home, such as .claude for /home/.claude"
    if (reason := names.problem(path.rstrip("/"))) is not None:
        return reason
    if path.rstrip("/") == "agent" or path.split("/")[0] in NOT_RESUMED:
        return "is made anew for every run: name the files or folders that the agent writes"
    return None


@contextlib.contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Raise errors of reading an agent's folder as `AgentError`."""
    try:
        yield
    except trees.NotRegular as error:
        raise AgentError(f"{folder}: {error}; an agent consists of regular files and folders only") from None
    except OSError as error:
        raise AgentError(f"{folder} cannot be read: {error}") from error
