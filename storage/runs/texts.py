"""Read the code and the logs of runs from the store as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from storage.notebooks import plain_code
from storage.runs.folders import StoredRun
from storage.store import Store

FILE_BYTES = 4 * 1024**2
LOG_BYTES = 16 * 1024**2
"""Maximum number of bytes of a file. Only the beginning and the end of larger files are read."""
FILES = 2000
"""Maximum number of files read from a run's code or logs. Python files and notebooks come first."""
CODE = (".py", ".ipynb", ".sh", ".r", ".R", ".sql", ".yaml", ".json", ".toml", ".txt", ".md")
_INSTALLED = re.compile(r"(^|/)(site-packages|node_modules|\.git|\.?venv|__pycache__|\.ipynb_checkpoints)(/|\Z)")


def code_of(store: Store, run: StoredRun) -> dict[str, str]:
    """Files of the agent's code folder by path, without installed packages. Notebooks are converted to plain code."""
    return {
        name: plain_code(text) if name.endswith(".ipynb") else text
        for name, text in _texts(store, run, "code", FILE_BYTES)
        if name.endswith(CODE)
    }


def logs_of(store: Store, run: StoredRun) -> dict[str, str]:
    """The agent's output and the files of its logs folder by path, without binary files."""
    return {name: text for name, text in _texts(store, run, "logs", LOG_BYTES) if "\0" not in text[:4096]}


def _texts(store: Store, run: StoredRun, part: str, most: int) -> Iterator[tuple[str, str]]:
    fs, top = store.top.fs, store.top.path(store.relative(f"{run.source}/{part}"))
    found = {path[len(top) + 1 :]: (path, info["size"] or 0) for path, info in fs.find(top, detail=True).items()}
    names = [name for name in found if not _INSTALLED.search(name)]
    for name in sorted(names, key=lambda name: (not name.endswith((".py", ".ipynb")), name))[:FILES]:
        path, size = found[name]
        if size <= most:
            content = fs.cat_file(path)
        else:
            left_out = f"\n[{size - most} bytes left out]\n".encode()
            content = fs.cat_file(path, 0, most // 2) + left_out + fs.cat_file(path, size - most // 2, size)
        yield name, content.decode("utf-8", "replace")
