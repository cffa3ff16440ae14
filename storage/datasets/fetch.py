"""Download prepared files from an object store concurrently, and verify their hashes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from storage.cache import PARTIAL
from storage.store import Store
from storage.writers import BLOCK, HashingWriter, StoreError

_AT_ONCE = 16
_SMALL = 8 * BLOCK


class DamagedFile(StoreError):
    """A file in the store is missing or differs from the prepared one."""

    kind = "damaged data"


def fetch_all(store: Store, url: str, files: Iterable[tuple[str, int, str]], folder: Path) -> None:
    """Fetch files (path below `url`, bytes, BLAKE3) to the same paths below `folder`, and make them read-only.

    Existing files of the right size are skipped, because only complete and verified files get their final name. Raises
    `DamagedFile`.
    """
    root = store.top.path(store.relative(url))
    todo = [each for each in files if _size(folder / each[0]) != each[1]]
    for parent in {(folder / path).parent for path, _, _ in todo}:
        parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = [
            pool.submit(_fetch, store.top.fs, f"{root}/{path}", folder / path, size, known)
            for path, size, known in todo
        ]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _fetch(fs: Any, source: str, target: Path, size: int, expected: str) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}{PARTIAL}")
    try:
        with draft.open("wb") as file:
            writer = HashingWriter(file)
            if size <= _SMALL:
                writer.write(fs.cat_file(source))
            else:
                with fs.open(source, "rb", block_size=_SMALL) as stream:
                    while piece := stream.read(_SMALL):
                        writer.write(piece)
        if writer.written().hash != expected:
            raise DamagedFile(f"{source} differs from the prepared file (by its hash); prepare it again")
        draft.chmod(0o444)
        draft.replace(target)
    except FileNotFoundError as error:
        raise DamagedFile(f"{source} is missing in the store; prepare it again") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
