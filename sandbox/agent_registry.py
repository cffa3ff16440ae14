"""Find agents by name or path: in the operator's directories, in the package, and in the current directory."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from common import names
from common.errors import explained
from sandbox import scripts, variants
from sandbox.definitions import (
    AGENT_IMAGE,
    BASE_IMAGE,
    BUILTIN_AGENTS,
    DEFINITION,
    DOCKERFILE,
    Agent,
    readable,
)
from sandbox.errors import AgentError, UnknownAgent
from sandbox.fields import read_fields


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
    hint = (
        f"known agents: {', '.join(sorted(folders))}; for your own, give the path of its folder, or name the directory "
        "that contains it in MLEBENCH_AGENT_DIRS"
    )
    if close := difflib.get_close_matches(text, folders, n=3, cutoff=0.65):
        hint = f"did you mean {' or '.join(close)}?"
    if looks_like_path:
        hint = f"no such folder; {hint}"
    raise UnknownAgent(f"unknown agent {text!r}: {hint}")


def require_own_image(agent: Agent, extra_dirs: Iterable[str | Path] = ()) -> None:
    """Raise `AgentError` if an image of an agent that is not trusted would replace one that others run in.

    Those are the base image, images of other agents, and for an agent with a Dockerfile all but its own, which could
    replace an image that others are built on.

    Args:
        agent: the agent whose image is to be built or imported.
        extra_dirs: as in `load_agent`.
    """
    if agent.trusted or agent.folder.parent == BUILTIN_AGENTS.resolve():
        return
    own = f"{AGENT_IMAGE}{agent.name}"
    others = {BASE_IMAGE}
    for folder in _folders(extra_dirs).values():
        with contextlib.suppress(AgentError):
            if folder != agent.folder:
                others.add(_read(folder).image_name)
    if agent.image_name == BASE_IMAGE and agent.image is None:
        raise AgentError(f"agent {agent.name!r} has no {DOCKERFILE}: it runs in {BASE_IMAGE}, nothing to build")
    image = agent.image_name.removesuffix(":latest")
    if own not in others:
        if image == own:
            return
        is_ours = image.rpartition("/")[2].startswith("mlebench-")  # however its registry is written
        if not is_ours and agent.image_name not in others and not (agent.folder / DOCKERFILE).is_file():
            return
    raise AgentError(
        f"agent {agent.name!r} is not trusted, and its image {names.shown(agent.image_name)} may be that of others: "
        f"leave `image` out of its {DEFINITION}, with a {DOCKERFILE} and a name that no other agent has, or read it, "
        "list its folder in MLEBENCH_AGENT_DIRS, and say `trusted: true`"
    )


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
    with readable(folder):
        scripts.require_startable(folder, Path(agent.start))
    return agent
