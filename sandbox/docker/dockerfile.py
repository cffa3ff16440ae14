"""Check that the Dockerfile of an agent that is not trusted has no instruction for which BuildKit uses the network.

``docker build --network none`` holds for the commands of ``RUN``. But BuildKit fetches the URLs of ``ADD``, and images
that are not on this machine, over the network of the engine, which reaches addresses that no container reaches. An
interpreter of another syntax is a program that can ask for the network itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from common import trees
from sandbox.errors import BuildError

LINES, BYTES = 1000, 64 * 1024
_CONTINUED = re.compile(r"[\\`][ \t]*\Z")
_SYNTAX = re.compile(r"\s*(#|//)\s*syntax\s*=", re.IGNORECASE)
_FROM = re.compile(r"\bfrom=[\"']?([^\s,\"']+)", re.IGNORECASE)
_STAGE = re.compile(r"[a-z][a-z0-9_-]*")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


def require_offline(
    folder: Path, name: str, arguments: Mapping[str, str], triggers_of: Callable[[str], Sequence[str] | None]
) -> None:
    """Check the Dockerfile of an agent that is not trusted.

    The check does not parse: every text that looks like an instruction, even in a script within the Dockerfile, counts
    as one. Otherwise, an instruction could be hidden from a parser that differs in any detail from BuildKit's.

    Args:
        folder: the agent's folder.
        name: name of the Dockerfile.
        arguments: build arguments.
        triggers_of: the ``ONBUILD`` instructions of an image; None if the image is not on this machine.

    Raises:
        BuildError: it uses the network, or names an image that is not on this machine.
    """
    with trees.opened_below(folder, Path(name)) as file:
        text = b"".join(trees.pieces(file, BYTES + 1)).decode(errors="replace").removeprefix("\ufeff")
    lines = text.splitlines()
    if len(lines) > LINES or len(text) > BYTES:
        raise BuildError(f"its {name} is longer than {LINES} lines or {BYTES // 1024} KiB")
    if any(map(_SYNTAX.match, lines)) or text.lstrip().startswith("{"):
        raise BuildError(f"its {name} asks for another syntax")
    stages, defaults = _stages_and_defaults(lines)
    for words in _instructions(lines):
        if words[0] in ("ADD", "ONBUILD"):
            raise BuildError(f"its {name} uses {words[0]}, which can fetch URLs: use COPY")
        named = _FROM.findall(" ".join(words)) + (words[1:2] if words[0] == "FROM" else [])
        for reference in named:
            for image in _values(reference, arguments, defaults):
                if image in stages or image.isdigit() or image == "scratch":
                    continue
                triggers = None if "$" in image else triggers_of(image)
                if triggers is None:
                    raise BuildError(f"its {name} names {image}, which is no image on this machine: pull or build it")
                if triggers:
                    raise BuildError(f"its {name} builds on {image}, which has instructions of its own ({triggers[0]})")


def _stages_and_defaults(lines: list[str]) -> tuple[set[str], list[tuple[str, str]]]:
    """The names of stages, and the defaults of variables, of which one name can have several."""
    stages, defaults = set(), []
    for words in _instructions(lines):
        if words[0] == "FROM" and len(words) > 3 and words[2].upper() == "AS" and _STAGE.fullmatch(words[3]):
            stages.add(words[3])
        if words[0] == "ARG":
            pairs = (word.partition("=") for word in words[1:])
            defaults += [(name, value.strip("\"'")) for name, equals, value in pairs if equals]
    return stages, defaults


def _instructions(lines: list[str]) -> Iterator[list[str]]:
    """The words of every text that could be an instruction, from any line on; the first word in upper case."""
    for start in range(len(lines)):
        joined = ""
        for line in lines[start:]:
            if joined and (not line.strip() or line.lstrip().startswith("#")):
                continue
            joined += _CONTINUED.sub("", line)
            if not _CONTINUED.search(line):
                break
        if words := joined.split():
            yield [words[0].upper(), *(word for word in words[1:] if not word.startswith("--platform"))]


def _values(reference: str, arguments: Mapping[str, str], defaults: Sequence[tuple[str, str]]) -> list[str]:
    """The images that a reference can stand for."""
    match = _VARIABLE.fullmatch(reference)
    if match is None:
        return [reference]
    if match[1] in arguments:
        return [arguments[match[1]]]
    return [value for name, value in defaults if name == match[1]] or [reference]
