"""Read files on object stores in blocks. The next blocks are fetched while the current one is used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fsspec.caching import BaseCache, register_cache

_MAX_AHEAD_BLOCKS = 4  # blocks that are fetched ahead
_MAX_CACHED_BLOCKS = 16  # blocks in memory


class ReadAhead(BaseCache):
    """A cache of blocks for ``fs.open(path, "rb", cache_type=ReadAhead.name)``.

    The longer a file is read in order, the more blocks are fetched ahead, so reading a small part costs one block.
    """

    name = "mlebench-readahead"

    def __init__(self, blocksize: int, fetcher: Callable[[int, int], bytes], size: int) -> None:
        super().__init__(blocksize, fetcher, size)
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._in_order: dict[int, int] = {}  # block -> number of blocks up to it that were read in order
        self._pool = ThreadPoolExecutor(_MAX_AHEAD_BLOCKS + 1, "readahead")  # starts no threads yet

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start, stop = start or 0, self.size if stop is None else min(stop, self.size)
        if start >= stop:
            return b""
        pieces = []
        for number in range(start // self.blocksize, (stop - 1) // self.blocksize + 1):
            block_start = number * self.blocksize
            block = self._block(number)
            pieces.append(block[max(0, start - block_start) : stop - block_start])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _block(self, number: int) -> bytes:
        if number not in self._in_order:
            self._in_order[number] = self._in_order.get(number - 1, 0) + 1
        last_number = (self.size - 1) // self.blocksize
        ahead = min(_MAX_AHEAD_BLOCKS, self._in_order[number] - 1)
        for needed in range(number, min(number + ahead, last_number) + 1):
            self._begin(needed)
        self._blocks.move_to_end(number)
        while len(self._blocks) > _MAX_CACHED_BLOCKS:
            oldest, dropped = self._blocks.popitem(last=False)
            self._in_order.pop(oldest, None)
            dropped.cancel()
        try:
            return self._blocks[number].result()
        except BaseException:
            self._blocks.pop(number, None)  # the next attempt asks the server again
            raise

    def _begin(self, number: int) -> None:
        if number not in self._blocks:
            start = number * self.blocksize
            stop = min(start + self.blocksize, self.size)
            self._blocks[number] = self._pool.submit(self.fetcher, start, stop)

    def close(self) -> None:
        """Called when the file is closed."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._blocks.clear()

    def __reduce__(self) -> Any:
        raise TypeError("a file with this cache cannot be sent to another process")


register_cache(ReadAhead, clobber=True)
