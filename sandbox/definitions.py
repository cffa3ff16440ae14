"""Definitions of agents. An agent is a folder with ``agent.yaml``, a start file, and all other files that it needs."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from common import months, names, trees
from common.errors import explained
from common.quantities import Seconds
from common.units import size
from sandbox import scripts, variants
from sandbox.errors import AgentError, UnknownAgent
from sandbox.fields import read_fields
from sandbox.limits import GIB, Limits, read_limits

BUILTIN_AGENTS = Path(__file__).parent / "agents"
SHARED = BUILTIN_AGENTS / "_shared"
"""Files that several agents use. An agent gets the files that it names."""
DEFINITION = "agent.yaml"
FOLDER_BYTES, FOLDER_FILES = 10 * GIB, 100_000
"""Limits of an agent's folder, which is read for its fingerprint and copied for every run."""
DOCKERFILE = "Dockerfile"
BASE_IMAGE = "mlebench-base"
NOT_RESUMED = frozenset({"data", "tmp", "instructions.txt", "description.md", "validate_submission.sh"})
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
        min_length=1,
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
        default = f"mlebench-agent-{self.name}" if (self.folder / DOCKERFILE).is_file() else BASE_IMAGE
        return self.image or default

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
        with _readable(folder), trees.opened_below(folder, file) as descriptor:
            yield descriptor

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        with _readable(self.folder):
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
def _readable(folder: Path) -> Iterator[None]:
    """Raise errors of reading an agent's folder as `AgentError`."""
    try:
        yield
    except trees.NotRegular as error:
        raise AgentError(f"{folder}: {error}; an agent consists of regular files and folders only") from None
    except OSError as error:
        raise AgentError(f"{folder} cannot be read: {error}") from error


def list_agents(extra_dirs: Iterable[str | Path] = ()) -> list[str]:
    """Names of the agents in ``extra_dirs`` and of the agents that ship with the package, sorted.

    Args:
        extra_dirs: folders that contain agent folders, or agent folders themselves.
    """
    return sorted(_folders(extra_dirs))


def variants_of(agent: Agent) -> list[str]:
    """Names of an agent's variants, in the order of the file."""
    return list(map(str, read_fields(agent.folder, DEFINITION).get("variants") or {}))


def load_agent(name_or_path: str | Path, extra_dirs: Iterable[str | Path] = ()) -> Agent:
    """Find and validate an agent.

    Outside ``extra_dirs`` and the package, ``trusted`` in ``agent.yaml`` is ignored.

    Args:
        name_or_path: a name or the path of an agent's folder, optionally with ``@VARIANT`` (a name also with
            ``/VARIANT``). Names are looked up in ``extra_dirs`` first, so that your own agent can replace one that
            ships with the package, and last in the current directory, which is told.
        extra_dirs: folders that contain agent folders, or agent folders themselves.

    Raises:
        UnknownAgent: there is no such agent, or no such variant; the message names close matches.
        AgentError: the ``agent.yaml`` is missing or invalid, or the start file does not exist.
    """
    text, variant = variants.name_and_variant(os.fspath(name_or_path))
    folders = _folders(extra_dirs)
    first, slash, rest = text.partition("/")
    if slash and not variant and first in folders and not Path(text).expanduser().is_dir():
        text, variant = first, rest
    if text in folders:
        return _read(folders[text], variant)
    looks_like_path = isinstance(name_or_path, Path) or os.sep in text or text in (".", "..")
    if not looks_like_path and (Path(text) / DEFINITION).is_file():
        _warn(f"agent {text} is the folder {os.curdir}{os.sep}{text}")
        looks_like_path = True
    if looks_like_path and Path(text).expanduser().is_dir():
        agent = _read(Path(text).expanduser().resolve(), variant)
        # The operator decides which agents are trusted, so a folder in any other place cannot declare itself trusted.
        if agent.folder in folders.values():
            return agent
        return agent.model_copy(update={"trusted": False, "claims_trust": agent.trusted})
    close = difflib.get_close_matches(text, folders, n=3, cutoff=0.65)
    hint = (
        f"did you mean {' or '.join(close)}?"
        if close
        else (
            f"known agents: {', '.join(sorted(folders))}; for your own, give the path of its folder, or name "
            "the directory that contains it in MLEBENCH_AGENT_DIRS"
        )
    )
    if looks_like_path:
        hint = f"no such folder; {hint}"
    raise UnknownAgent(f"unknown agent {text!r}: {hint}")


@cache  # once a process: agents are looked up often
def _warn(text: str) -> None:
    logging.getLogger("mlebench.agents").warning("%s", text)


def _folders(extra_dirs: Iterable[str | Path]) -> dict[str, Path]:
    """Agent folders by name; earlier directories take precedence. One that does not exist causes a warning."""
    folders: dict[str, Path] = {}
    for directory in [*map(Path, extra_dirs), BUILTIN_AGENTS]:
        directory = directory.expanduser()
        if not directory.is_dir():
            _warn(f"MLEBENCH_AGENT_DIRS names {directory}, which is not a directory")
            continue
        candidates = [directory] if (directory / DEFINITION).is_file() else sorted(directory.iterdir())
        for folder in candidates:
            if (folder / DEFINITION).is_file():
                folders.setdefault(folder.resolve().name, folder.resolve())
    return folders


def _read(folder: Path, variant: str | None = None) -> Agent:
    path = folder / DEFINITION
    fields = read_fields(folder, DEFINITION)
    for field in ("folder", "variant", "claims_trust"):
        if field in fields:
            raise AgentError(f"{path}: {field}: unknown field")
    try:
        fields = variants.apply(fields, variant)
        agent = Agent(**{"name": folder.name, **fields, "folder": folder, "variant": variant})
    except ValidationError as error:
        raise AgentError(f"{path}: {explained(error)}") from None
    except LookupError as error:
        raise UnknownAgent(f"{path}: {error.args[0]}") from None
    except TypeError:
        raise AgentError(f"{path}: field names must be strings") from None
    except RecursionError:
        raise AgentError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise AgentError(f"{path}: {error}") from None
    if agent.name != folder.name:
        raise AgentError(f"{path}: name is {agent.name!r} but the folder is called {folder.name!r}: make them equal")
    if not (folder / agent.start).is_file():
        raise AgentError(f"{path}: start file {agent.start!r} does not exist in {folder}")
    with _readable(folder):
        scripts.require_startable(folder, Path(agent.start))
    return agent
