"""Read the code and the logs of runs from the store as texts, and list the files that were not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from storage.notebooks import plain_code
from storage.runs.folders import StoredRun
from storage.store import Store

FILE_BYTES = 4 * 1024**2
LOG_BYTES = 16 * 1024**2
"""Maximum number of bytes of a file. Only the beginning and the end of larger files are read."""
FILES = 10_000
"""Maximum number of files read from a run's code or logs, as many as are collected by default."""
BYTES = 256 * 1024**2
"""Maximum size of all that is read from a run's code or logs. Small files come first, so that large ones hide none."""
CODE = (".py", ".ipynb", ".sh", ".r", ".R", ".sql", ".yaml", ".yml", ".json", ".toml", ".txt", ".md", ".cfg", ".ini")
_DATA = (
    ".csv .tsv .parquet .feather .arrow .npy .npz .png .jpg .jpeg .gif .bmp .tif .tiff .webp .wav .mp3 .flac .mp4 .pkl "
    ".joblib .pt .pth .ckpt .h5 .hdf5 .onnx .bin .safetensors .model .cbm .zip .gz .bz2 .xz .7z .tar .pyc .so .whl .pdf"
)
DATA = tuple(_DATA.split())
"""Suffixes of files in a code folder that are no code."""
_INSTALLED = re.compile(r"(^|/)(site-packages|node_modules|\.git|__pycache__|\.ipynb_checkpoints)(/|\Z)")
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1f\x7f\ufffd]")
_BINARY_SHARE = 0.3
NAME_CHARACTERS = 200

Reason = str


@dataclass(frozen=True)
class RunFiles:
    """The texts of one part of a run by path, and what was left out: reason -> paths."""

    texts: dict[str, str] = field(default_factory=dict)
    skipped: dict[Reason, list[str]] = field(default_factory=dict)


INSTALLED, IS_DATA, IS_BINARY = "installed packages", "data by their names", "binary content"
TOO_MANY = "more files or bytes than are read"
DAMAGED = "not readable in the store"


def code_of(store: Store, run: StoredRun, convert: Callable[[str], str] = plain_code) -> RunFiles:
    """Files of the agent's code folder, without installed packages and data.

    Notebooks are converted to plain code by `convert`; if that fails, the notebook is read unchanged.
    """
    files = _files(store, run, "code", FILE_BYTES)
    for name, text in files.texts.items():
        if name.endswith(".ipynb"):
            files.texts[name] = convert(text)
    return files


def logs_of(store: Store, run: StoredRun) -> RunFiles:
    """The agent's output and the files of its logs folder."""
    return _files(store, run, "logs", LOG_BYTES)


def shown(name: str) -> str:
    r"""A path in a form that can be shown, stored and sent: short, of one line, without unencodable characters.

    >>> shown("a\nb.py")
    'a\\nb.py'
    """
    text = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in name)
    return text if len(text) <= NAME_CHARACTERS else f"{text[: NAME_CHARACTERS // 2]}...{text[-NAME_CHARACTERS // 2 :]}"


def _files(store: Store, run: StoredRun, part: str, max_bytes: int) -> RunFiles:
    fs, top = store.top.fs, store.top.path(store.relative(f"{run.source}/{part}"))
    listed = {path[len(top) + 1 :]: (path, info["size"] or 0) for path, info in fs.find(top, detail=True).items()}
    files, total = RunFiles(), 0
    for number, (name, (path, size)) in enumerate(sorted(listed.items(), key=lambda item: (item[1][1], item[0]))):
        total += min(size, max_bytes)
        reason = _why_not(name, part) or (TOO_MANY if number >= FILES or total > BYTES else "")
        text = ""
        if not reason:
            try:
                text = "".join(_content(fs, path, size, max_bytes))
            except FileNotFoundError:
                reason = DAMAGED
        if not reason and len(_CONTROL.findall(text)) > _BINARY_SHARE * len(text):
            reason = IS_BINARY
        if reason:
            files.skipped.setdefault(reason, []).append(shown(name))
        else:
            files.texts[_free(shown(name), files.texts)] = text.replace("\0", "")
    return files


def _why_not(name: str, part: str) -> Reason:
    if _INSTALLED.search(name):
        return INSTALLED
    return IS_DATA if part == "code" and name.lower().endswith(DATA) else ""


def _content(fs: object, path: str, size: int, max_bytes: int) -> Iterator[str]:
    cat_file = fs.cat_file  # type: ignore[attr-defined]
    if size <= max_bytes:
        yield cat_file(path).decode("utf-8", "replace")
        return
    yield cat_file(path, 0, max_bytes // 2).decode("utf-8", "replace")
    yield f"\n[{size - max_bytes} bytes left out]\n"
    yield cat_file(path, size - max_bytes // 2, size).decode("utf-8", "replace")


def _free(name: str, used_names: dict[str, str]) -> str:
    """The name, or the name with a number, because different names may be shown in the same way."""
    number, free = 1, name
    while free in used_names:
        number += 1
        free = f"{name} ({number})"
    return free
