"""Fingerprints of code: a hash of the files that a module uses, and of the libraries that decide its output bytes.

The files are found by following import statements, also those inside functions: modules of the competition's folder
and modules of this project, transitively. Nothing is imported for this. Imports below `if TYPE_CHECKING` do not count,
because they are not executed.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

from common.syntax import parse

ROOT = Path(__file__).parents[1]
_PACKAGES = ("common", "competitions", "grading", "storage", "sandbox", "tasks", "flows")
# Of the package for other programs, what folders in the published format import and what decides bytes or scores.
_HELPERS = ("mlebench.utils", "mlebench.metrics", "mlebench.competitions")
# Libraries whose import name is not the name of their distribution.
_DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "yaml": "PyYAML", "cv2": "opencv-python"}
# Libraries that move, inflate, hash or validate bytes: every version of them creates the same files.
_NEUTRAL_LIBRARIES = {"mlebench", "isal", "blake3", "fsspec", "s3fs", "pydantic", "yaml"}
_DEPENDENCIES = {"pandas": {"numpy"}, "pyarrow": {"numpy"}, "scipy": {"numpy"}, "sklearn": {"numpy", "scipy"}}


@dataclass(frozen=True)
class Imports:
    """What a file imports: absolute names of modules, and relative ones as (level, name)."""

    absolute: frozenset[str]
    relative: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class Source:
    """The content of a file: its digest, its imports, and its text if it is a Python file."""

    digest: bytes
    imports: Imports
    text: bytes


@dataclass(frozen=True)
class Closure:
    """The files that a module uses, itself included, and the libraries that they import (by import name)."""

    files: frozenset[Path]
    libraries: frozenset[str]

    def names(self, text: str) -> bool:
        """Whether one of the files contains `text`, such as the name of a data file."""
        return any(text.encode() in source(path).text for path in self.files)


def closure(path: Path, folder: Path | None = None, beside: Path | None = None) -> Closure:
    """The files that the module at `path` uses, directly or indirectly, and the libraries that these import.

    Args:
        path: the module. A file that does not parse has no imports; importing it reports the syntax error.
        folder: the competition's folder, for a module of it, in which relative imports are looked up.
        beside: the directory of folders in the published format, whose modules import each other, too.
    """
    files: set[Path] = set()
    libraries: set[str] = set()
    pending = [path]
    while pending:
        file = pending.pop()
        if file in files or not file.is_file():
            continue
        files.add(file)
        own_folder = folder if folder is not None and file.is_relative_to(folder) else None
        imports = source(file).imports
        for name in imports.absolute:
            if name.partition(".")[0] in _PACKAGES or name.startswith(_HELPERS):
                pending += _module_files(name)
        libraries |= libraries_of(file)
        for level, name in imports.relative:
            pending += _relative_files(file, level, name, own_folder or ROOT)
        if beside is not None and file.is_relative_to(beside):
            pending += _files_beside(file, beside)
    return Closure(frozenset(files), frozenset(libraries))


_PUBLISHED_NAME = re.compile(rb"\bmlebench\.competitions\.([\w.-]+)")


def _files_beside(file: Path, beside: Path) -> list[Path]:
    """The files in the directory `beside` that a file in the published format may import.

    Ids have dashes, so their modules are imported by name: every text that is such a name counts. Names without a
    package are found in the file's own folder, by programs that add it to Python's path.
    """
    imports = source(file).imports
    names = [name.decode().strip(".") for name in _PUBLISHED_NAME.findall(source(file).text)]
    names += [name.partition("competitions.")[2] for name in imports.absolute if name.startswith("mlebench.competi")]
    files = [path for name in names if name for path in _relative_files(beside / "x.py", 1, name, beside)]
    files += [path for level, name in imports.relative for path in _relative_files(file, level, name, beside)]
    return files + [file.parent / f"{name.partition('.')[0]}.py" for name in imports.absolute]


def libraries_of(path: Path) -> set[str]:
    """The libraries that a file itself imports, by import name."""
    tops = {name.partition(".")[0] for name in source(path).imports.absolute}
    return {top for top in tops if top not in _PACKAGES and top not in sys.stdlib_module_names}


def digest(label: str, files: Mapping[str, Path], libraries: Iterable[str] = ()) -> str:
    """Hash of a label, of files by name, and of the versions of libraries, as 16 hexadecimal digits."""
    hasher = hashlib.blake2b(label.encode(), digest_size=8)
    for name, path in sorted(files.items()):
        hasher.update(b"\0" + name.encode() + b"\0" + source(path).digest)
    for name, version in versions(libraries).items():
        hasher.update(f"\0{name} {version}".encode())
    return hasher.hexdigest()


def versions(libraries: Iterable[str]) -> Mapping[str, str]:
    """Versions of the libraries that decide bytes, and of the libraries that these depend on, by import name."""
    deciding = {name for name in libraries if name not in _NEUTRAL_LIBRARIES}
    deciding |= {dependency for name in deciding for dependency in _DEPENDENCIES.get(name, ())}
    return {name: _version(name) for name in sorted(deciding)}


def shown(path: Path) -> str:
    """The name of a file of this project in a fingerprint: it does not depend on where the project is installed."""
    return path.relative_to(ROOT).as_posix()


def module_file(name: str) -> Path:
    """The file of a module of this project. Raises `ModuleNotFoundError`."""
    files = _module_files(name)
    if not files:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    return files[-1]


def source(path: Path) -> Source:
    """The content of a file, which is read again only if its size or time of modification changed."""
    stat = path.stat()
    return _source(path, stat.st_mtime_ns, stat.st_size)


# Global, because the shared modules are part of the fingerprint of every competition.
@lru_cache(maxsize=2048)
def _source(path: Path, _modified: int, _size: int) -> Source:
    text = path.read_bytes()
    imports = Imports(frozenset(), frozenset())
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):  # importing it reports the error for this competition alone
            imports = _imports_of(parse(text))
    # Only Python files are searched for the names of data files.
    return Source(hashlib.blake2b(text, digest_size=16).digest(), imports, text if path.suffix == ".py" else b"")


def _imports_of(tree: ast.Module) -> Imports:
    absolute: set[str] = set()
    relative: set[tuple[int, str]] = set()
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            absolute |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # `from package import name`: the name may be a module of the package.
            names = [".".join(filter(None, (node.module, alias.name))) for alias in node.names]
            if node.level == 0:
                absolute |= set(names)
            else:
                relative |= {(node.level, name) for name in names}
    return Imports(frozenset(absolute), frozenset(relative))


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those below `if TYPE_CHECKING`."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending += node.orelse
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case):
            pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


@cache  # the modules of the project do not change while a process runs
def _module_files(name: str) -> tuple[Path, ...]:
    """The files that importing a module of this project executes, or the module that the longest prefix names."""
    files: list[Path] = []
    path = ROOT
    for part in name.split("."):
        path = path / part
        if (path / "__init__.py").is_file():
            files.append(path / "__init__.py")
        elif path.with_suffix(".py").is_file():
            files.append(path.with_suffix(".py"))
            break
        elif not path.is_dir():
            break  # a name in the module
    return tuple(files)


def _relative_files(file: Path, level: int, name: str, top: Path) -> list[Path]:
    path = file.parents[level - 1]
    if not path.is_relative_to(top):
        return []
    files: list[Path] = [path / "__init__.py"]
    for part in name.split("."):
        path = path / part
        files += [path.with_name(f"{part}.py"), path / "__init__.py"]
    return files


@cache  # the installation does not change while a process runs
def _version(library: str) -> str:
    try:
        return metadata.version(_DISTRIBUTIONS.get(library, library))
    except metadata.PackageNotFoundError:
        pass
    for distribution in metadata.packages_distributions().get(library, ()):
        return metadata.version(distribution)
    return "not installed"
