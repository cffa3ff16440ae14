"""Fingerprints of code: a hash of the files that a module really uses, and of the libraries that decide its bytes.

The files are found by the import statements, at whatever depth, also those inside functions: modules of the
competition's folder and modules of this project, transitively. Nothing is imported for it. Imports below
`if TYPE_CHECKING` do not count, because they are not executed.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

from common.syntax import parse

ROOT = Path(__file__).parents[1]
_ROOMS = ("common", "competitions", "grading", "storage", "sandbox", "tasks", "flows")
# Libraries with an import name that is not the name of their distribution.
_DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "yaml": "PyYAML", "cv2": "opencv-python"}
# Libraries that move, inflate, hash or validate bytes, so that another version of them makes the same files.
_NEUTRAL = {"isal", "blake3", "fsspec", "s3fs", "pydantic", "yaml"}
_BUILT_ON = {"pandas": {"numpy"}, "pyarrow": {"numpy"}, "scipy": {"numpy"}, "sklearn": {"numpy", "scipy"}}


@dataclass(frozen=True)
class Imports:
    """What a file imports: absolute names of modules, and relative ones as (level, name)."""

    absolute: frozenset[str]
    relative: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class Source:
    """The content of a file, as far as fingerprints need it."""

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


def closure(path: Path, folder: Path | None = None) -> Closure:
    """The files that the module at `path` uses, directly or indirectly, and the libraries that these import.

    Args:
        path: the module. A file that does not parse has no imports; importing it will say so.
        folder: the competition's folder, for a module of it, in which relative imports are looked up.
    """
    files: set[Path] = set()
    libraries: set[str] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file in files or not file.is_file():
            continue
        files.add(file)
        own = folder if folder is not None and file.is_relative_to(folder) else None
        imports = source(file).imports
        for name in imports.absolute:
            if name.partition(".")[0] in _ROOMS:
                todo += _module_files(name)
        libraries |= libraries_of(file)
        for level, name in imports.relative:
            todo += _relative_files(file, level, name, own or ROOT)
    return Closure(frozenset(files), frozenset(libraries))


def libraries_of(path: Path) -> set[str]:
    """The libraries that a file itself imports, by import name."""
    tops = {name.partition(".")[0] for name in source(path).imports.absolute}
    return {top for top in tops if top not in _ROOMS and top not in sys.stdlib_module_names}


def digest(label: str, files: Mapping[str, Path], libraries: Iterable[str] = ()) -> str:
    """Hash of a label, of files by name, and of the versions of libraries, as 16 hexadecimal digits."""
    whole = hashlib.blake2b(label.encode(), digest_size=8)
    for name, path in sorted(files.items()):
        whole.update(b"\0" + name.encode() + b"\0" + source(path).digest)
    for name, version in versions(libraries).items():
        whole.update(f"\0{name} {version}".encode())
    return whole.hexdigest()


def versions(libraries: Iterable[str]) -> Mapping[str, str]:
    """Versions of those libraries that decide bytes, and of the libraries that these are built on, by import name."""
    wanted = {name for name in libraries if name not in _NEUTRAL}
    wanted |= {below for name in wanted for below in _BUILT_ON.get(name, ())}
    return {name: _version(name) for name in sorted(wanted)}


def shown(path: Path) -> str:
    """The name of a file of this project in a fingerprint: it does not depend on where the project is installed."""
    return path.relative_to(ROOT).as_posix()


def module_file(name: str) -> Path:
    """The file of a module of this project. Raises `ModuleNotFoundError`."""
    found = _module_files(name)
    if not found:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    return found[-1]


def source(path: Path) -> Source:
    """The content of a file; read again only if its size or time of modification changed."""
    stat = path.stat()
    return _source(path, stat.st_mtime_ns, stat.st_size)


# Global, because the shared modules are part of the fingerprint of every competition.
@lru_cache(maxsize=2048)
def _source(path: Path, _modified: int, _size: int) -> Source:
    text = path.read_bytes()
    imports = Imports(frozenset(), frozenset())
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):  # importing it will say so, for this competition alone
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
    """All nodes but those below `if TYPE_CHECKING`."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            todo += node.orelse
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case):
            todo += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


@cache  # modules of the project do not appear while it runs
def _module_files(name: str) -> tuple[Path, ...]:
    """The files that importing a module of this project executes, or the module that the longest prefix names."""
    files: list[Path] = []
    place = ROOT
    for part in name.split("."):
        place = place / part
        if (place / "__init__.py").is_file():
            files.append(place / "__init__.py")
        elif place.with_suffix(".py").is_file():
            files.append(place.with_suffix(".py"))
            break
        elif not place.is_dir():
            break  # a name in the module
    return tuple(files)


def _relative_files(file: Path, level: int, name: str, top: Path) -> list[Path]:
    place = file.parents[level - 1]
    if not place.is_relative_to(top):
        return []
    files: list[Path] = [place / "__init__.py"]
    for part in name.split("."):
        place = place / part
        files += [place.with_name(f"{part}.py"), place / "__init__.py"]
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
