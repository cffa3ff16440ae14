"""Find the files of a download by their published names, also if a tool has changed these."""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import repeat
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Self, TypeVar

from common.errors import close_matches
from competitions.errors import DownloadError
from competitions.preparing.archives.containers import Container, open_container, require_bounded
from competitions.preparing.archives.names import (
    ARCHIVE_SUFFIXES,
    common_folders,
    folded,
    is_leftover,
    unpacked_folders,
)
from competitions.preparing.archives.nested import open_nested

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])


class Member(NamedTuple):
    """A file of the download: the archive that contains it ("" for the download itself), its name there, its size."""

    archive: str
    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.archive}!/{self.name}" if self.archive else self.name


def named_tuples(kind: type[N], *columns: Iterable[Any]) -> Iterator[N]:
    """Named tuples with the values of these columns, as many as the shortest has, created without calls of `kind`.

    >>> list(named_tuples(Member, ["", ""], ["a", "b"], [1, 2]))
    [Member(archive='', name='a', size=1), Member(archive='', name='b', size=2)]
    """
    make: Callable[[type[N], tuple[Any, ...]], N] = tuple.__new__
    return map(make, repeat(kind), zip(*columns, strict=False))


class Files:
    """The files of a download, or of an archive inside it.

    Files are found below their published names also if a tool has changed these: if all are in one folder, if an
    archive was unpacked or a file was zipped, or if names differ in case or encoding.
    """

    def __init__(
        self,
        container: Container,
        archive: str = "",
        root: Self | None = None,
        *,
        folders: Iterable[str] = ("",),
        unpacked: str = "",
        exact: bool = False,
    ) -> None:
        self.container = container
        self._archive = archive
        self._outermost = root
        self._folders = list(folders)  # below which names are looked up, the one that had the last name first
        self._unpacked = unpacked  # the missing archive whose content is looked up, until any of it is found
        self._exact = exact
        self._views: dict[str, Self] = {}  # of the root: nested archives by the `archive` of their members
        self._unpacked_views: dict[str, Self] = {}
        self._most: int | None = None

    def limit(self, most: int) -> None:
        """Refuse archives that expand to more than `most` bytes: this one, and those in it when they are opened.

        Raises `DownloadError` that names the archive and its largest file.
        """
        self._root._most = most
        require_bounded(self._root.container, most)

    @property
    def _root(self) -> Self:
        return self._outermost or self  # an attribute that refers to itself would keep its files open

    @classmethod
    def open(cls, location: str, *, exact: bool = False) -> Self:
        """A view of the download at a local path or fsspec URL, which is an archive or a directory.

        Files that systems add to folders and archives are left out, unless `exact`: the published archive may have
        some.
        """
        return cls(open_container(location), exact=exact)

    def archive(self, name: str) -> Self:
        """A view of the nested archive `name` (zip, tar, tar.gz, 7z), read in place, or of its unpacked content."""
        member = self._located(name)
        if member is not None:
            return self.view(str(member))
        if name not in self._unpacked_views:
            folders = [folder + below for below in unpacked_folders(name) for folder in self._all_folders()]
            self._unpacked_views[name] = type(self)(
                self.container, self._archive, self._root, folders=folders, unpacked=name
            )
        return self._unpacked_views[name]

    def view(self, archive: str) -> Self:
        """The view of the archive in the `archive` field of a `Member`."""
        root = self._root
        if not archive:
            return root
        if archive not in root._views:
            outer, _, name = archive.rpartition("!/")
            parent = root.view(outer)
            if name not in parent.container.sizes:
                raise parent._no_file(name)
            container = open_nested(parent.container, name, archive)
            if root._most is not None:
                require_bounded(container, root._most)
            root._views[archive] = type(self)(container, archive, root)
        return root._views[archive]

    @cached_property
    def _names(self) -> list[str]:
        names: Iterable[str] = self.container.sizes
        if not self._archive and not self._root._exact:
            names = [name for name in names if not is_leftover(name)]
        return sorted(names)

    def _all_folders(self) -> list[str]:
        """The folders below which names are looked up, with those that contain the whole download."""
        if self is self._root and len(self._folders) == 1:
            self._folders = [*self._folders, *common_folders(self._names)]
        return self._folders

    def _search(self, find: Callable[[str], T | None]) -> T | None:
        """What `find` finds below the first folder in which it finds anything."""
        for number, folder in enumerate(self._all_folders()):
            if found := find(folder):
                self._unpacked = ""
                if number:
                    self._folders = [folder, *(other for other in self._folders if other != folder)]
                return found
        return None

    def _listed(self, find: Callable[[str], list[str]], inside: Callable[[Self], list[str]], within: str) -> list[str]:
        """The names that `find` finds, or those `inside` a download that was zipped twice; `within` is their folder."""
        found = self._search(find)
        if found is None and self._only is not None:
            return inside(self._only)
        if found is None and self._unpacked:
            raise self._no_file(self._unpacked)
        if found is None and within and f"{within}.zip" in self:
            raise DownloadError(
                f"the download has {within}.zip instead of a folder {within}/; unpack it, and give the folder"
            )
        return found or []

    @cached_property
    def _only(self) -> Self | None:
        """The archive in a download that consists of nothing else: it was zipped twice."""
        if self is self._root and len(self._names) == 1 and self._names[0].endswith(ARCHIVE_SUFFIXES):
            return self.view(self._names[0])
        return None

    @cached_property
    def _by_folded_name(self) -> dict[str, str]:
        names = [(folded(name), name) for name in self._names]
        counts = Counter(key for key, _ in names)
        return {key: name for key, name in names if counts[key] == 1}

    def _located(self, name: str) -> Member | None:
        """The file `name`, wherever it is; None if it is missing."""
        sizes = self.container.sizes
        stored: str | None = self._folders[0] + name
        if stored not in sizes:
            stored = self._search(lambda folder: folder + name if folder + name in sizes else None)
        if stored is None:
            stored = self._search(lambda folder: self._by_folded_name.get(folded(folder + name)))
        if stored is not None:
            self._unpacked = ""
            return Member(self._archive, stored, sizes[stored])
        packed = self._search(lambda folder: f"{folder}{name}.zip" if f"{folder}{name}.zip" in sizes else None)
        if packed is not None:
            return self.view(str(Member(self._archive, packed, 0)))._located(PurePosixPath(name).name)
        return self._only._located(name) if self._only is not None else None

    def names(self, folder: str = "") -> list[str]:
        """Names of all files, or of those below `folder`, sorted by code point."""

        def below(top: str) -> list[str]:
            names = self._below(f"{top}{folder.rstrip('/')}/" if folder else top)
            return [name[len(top) :] for name in names] if top else names

        return self._listed(below, lambda inner: inner.names(folder), folder.rstrip("/"))

    def _below(self, prefix: str) -> list[str]:
        if not prefix:
            return self._names
        # "0" follows "/" in code point order, so the range between them is the content of the folder.
        return self._names[bisect_left(self._names, prefix) : bisect_left(self._names, prefix[:-1] + "0")]

    def glob(self, pattern: str) -> list[str]:
        """Names that match `pattern`, in which `*` does not match a `/`; sorted by code point."""
        parts = pattern.split("/")
        fixed = "/".join(parts[: next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))])
        matches = [re.compile(fnmatch.translate(part)).match for part in parts]
        depth = len(parts)

        def matching(top: str) -> list[str]:
            names = self._below(f"{top}{fixed}/" if fixed and fixed != pattern else top)
            return [
                name
                for name in ((name[len(top) :] for name in names) if top else names)
                if name.count("/") == depth - 1
                and all(match(part) for match, part in zip(matches, name.split("/"), strict=True))
            ]

        return self._listed(matching, lambda inner: inner.glob(pattern), "" if fixed == pattern else fixed)

    def folders(self, folder: str = "") -> list[str]:
        """Names of the folders directly below `folder` that contain files, sorted by code point."""
        start = len(folder.rstrip("/")) + 1 if folder else 0
        split_names = (name[start:].partition("/") for name in self.names(folder))
        return sorted({top for top, slash, _ in split_names if slash})

    def __contains__(self, name: str) -> bool:
        return self._located(name) is not None

    def file(self, name: str) -> Member:
        """The file `name`. Raises `DownloadError` if it is missing."""
        member = self._located(name)
        if member is None:
            raise self._no_file(name)
        return member

    def files(self, names: Iterable[str]) -> list[Member]:
        """The files with these names. For many names, this takes half the time of as many calls of `file`."""
        names, folder = list(names), self._folders[0]
        stored = [folder + name for name in names] if folder else names
        try:
            sizes = list(map(self.container.sizes.__getitem__, stored))
        except KeyError:
            return [self.file(name) for name in names]  # this raises the error that names the missing file
        return list(named_tuples(Member, repeat(self._archive), stored, sizes))

    def tree(self, folder: str) -> Iterator[tuple[str, Member]]:
        """Every file below `folder` as (path relative to it, member). Raises `DownloadError` if there is none."""
        names = self.names(folder)
        if not names:
            raise DownloadError(f"the download has no files below {folder!r}; is it complete?")
        start = len(folder.rstrip("/")) + 1 if folder else 0
        for name, member in zip(names, self.files(names), strict=True):
            yield name[start:], member

    def each(self, name: str, *values: Iterable[Any], to: str | None = None) -> Iterator[tuple[str, Member]]:
        """Yield (path, file) for each value of a column, or each row of several columns, for files named after ids.

        `name` and `to` are `str.format` patterns: `name` for the file's name in the download, `to` for its path in the
        prepared dataset (by default the same name). The result is for `Tree.copies` and `Tree.archive`:

            out.public.copies(raw.each("train/{}.jpg", test["id"], to="test/{}.jpg"))
            out.public.copies(raw.each("train/{}/{}", test["label"], test["file"], to="test/{1}"))
        """
        columns = [list(column) for column in values]
        if len(set(map(len, columns))) > 1:
            raise ValueError(f"columns of unequal length: {', '.join(str(len(column)) for column in columns)}")
        yield from zip(map((to or name).format, *columns), self.files(map(name.format, *columns)), strict=True)

    def _no_file(self, name: str) -> DownloadError:
        base = PurePosixPath(name).name
        elsewhere = next((other for other in self._names if other.rpartition("/")[2] == base), None)
        hint = f" There is {elsewhere}" if elsewhere else ""
        hint = hint or close_matches(base, (PurePosixPath(n).name for n in self._names[:10_000]))
        where = f" in {self._archive}" if self._archive else ""
        what = f"{name!r}{where}"
        if self._unpacked not in ("", name):
            what = f"{self._unpacked!r}{where}, nor {name!r} from it"
        return DownloadError(f"the download has no file {what}; is it complete?{hint}")
