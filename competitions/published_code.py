"""Import the code of folders in the published format, whose modules are called `mlebench.competitions.<id>.<name>`.

The directory of such folders becomes a part of our package `mlebench.competitions`, so that their absolute, relative
and computed imports (ids have dashes) work as in a clone of the published repository. A module of the directory itself,
such as a `utils.py` with more functions than ours, comes before ours. In a clone, modules of its package `mlebench`
that ours does not have are found as well.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from importlib.machinery import FileFinder
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from competitions.errors import BadCompetition
from competitions.from_source import FromSource

PACKAGE = "mlebench.competitions"
_REFERENCE = re.compile(r"(?:file:(?P<path>.+)|(?P<module>[\w.-]+)):(?P<function>\w+)")

lock = threading.RLock()
"""Held while code of a folder runs: `sys.modules` is global, and has the code of one directory at a time."""
_versions: dict[str, tuple[str, int]] = {}
"""Of each imported module, the version of its code and the process that imported it."""


class Entry(NamedTuple):
    """A function that a `config.yaml` names, with its module's name and file."""

    module: str
    function: str
    file: Path


def entry(folder: Path, reference: str, field: str) -> Entry:
    """The function of `module.path:function` or `file:PATH:function`, found without importing anything.

    Raises `BadCompetition` for a reference of another form, and for a file that is not below the folder's directory.
    """
    if (match := _REFERENCE.fullmatch(reference)) is None:
        raise BadCompetition(f"{folder / 'config.yaml'}: {field}: {reference!r} is not of the form module:function")
    directory = folder.parent
    *packages, name = (match["module"] or "").removeprefix(f"{PACKAGE}.").split(".")
    named = folder / match["path"] if match["path"] else directory.joinpath(*packages, f"{name}.py")
    path = Path(os.path.abspath(named))  # noqa: PTH100  # a folder may be a link to elsewhere
    if not path.is_file() or not path.is_relative_to(directory):
        raise BadCompetition(
            f"{folder / 'config.yaml'}: {field}: {reference!r} names no module in {directory}, such as "
            f"{PACKAGE}.{folder.name}.{'prepare:prepare' if field == 'preparer' else 'grade:grade'}"
        )
    parts = path.relative_to(directory).with_suffix("").parts
    return Entry(".".join((PACKAGE, *parts)), match["function"], path)


def imported(folder: Path, module: str, version: str) -> ModuleType:
    """Import a module of a folder, again if the code has another `version` than when it was imported.

    Modules of other directories and versions are forgotten, because they may have the same names. Hold `lock` as long
    as the module is used: its functions may import further ones. A forked process uses what its parent has imported,
    since graders record scores under the fingerprint of that.
    """
    package = importlib.import_module(PACKAGE)
    assert package.__file__ is not None
    directory, own = folder.parent, Path(package.__file__).parent
    with lock:
        known, process = _versions.get(module, ("", os.getpid()))  # what another module has imported may have changed
        if (known != version and process == os.getpid()) or list(package.__path__) != [str(directory), str(own)]:
            _forget()
            package.__path__ = [str(directory), str(own)]
            top = sys.modules[PACKAGE.partition(".")[0]]
            clone = [str(directory.parent)] if directory.parts[-2:] == tuple(PACKAGE.split(".")) else []
            top.__path__ = [str(own.parent), *clone]
        for path in map(str, (directory, folder)):
            sys.path_importer_cache[path] = FileFinder(path, (FromSource, [".py"]))
        loaded = importlib.import_module(module)
        _versions.setdefault(module, (version, os.getpid()))
        return loaded


def _forget() -> None:
    """Forget the modules of all folders, also as attributes of their package."""
    _versions.clear()
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
        vars(sys.modules[PACKAGE]).pop(name.rpartition(".")[2], None)
