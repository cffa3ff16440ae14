"""Write objects of any size to S3, in parts that grow with the position and are uploaded while the next is written.

S3 accepts at most 10,000 parts per object, of 5 MiB to 5 GiB each, and 5 TiB in all. With parts of a fixed size either
small objects would need much memory or large ones would have too many parts.
"""

from __future__ import annotations

import contextlib
import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from common.concurrency import Budget

MAX_PARTS = 10_000
MAX_OBJECT_BYTES = 5 << 40
MIN_PART_BYTES = 8 << 20
MAX_PART_BYTES = 5 << 30
EQUAL_PARTS = 1_000  # parts of the first size, if nothing is known of the size of the object
EQUAL_PARTS_IF_EXPECTED = 7_500  # enough for the expected size; the rest is for objects that turn out larger
MAX_CONCURRENT_PARTS = 4  # parts of one object that are uploaded at a time
_in_flight = Budget(64 << 20)  # global: limits the bytes of parts that this process uploads at a time


def part_size(number: int, expected: int = 0) -> int:
    """Size in bytes of part `number` (from 1) of an object of unknown size, of which about `expected` bytes are likely.

    The first parts have the same size, all later ones grow by the same number of bytes, such that 10,000 parts always
    have room for 5 TiB.

    >>> [part_size(number) >> 20 for number in (1, 1000, 2000, 10_000)]
    [8, 8, 135, 1155]
    >>> part_size(1, expected=450 << 30) >> 20
    61
    """
    first_size = max(MIN_PART_BYTES, -(-expected // EQUAL_PARTS_IF_EXPECTED))
    steady = EQUAL_PARTS_IF_EXPECTED if expected else EQUAL_PARTS
    growing = MAX_PARTS - steady
    step = -(-2 * max(0, MAX_OBJECT_BYTES - MAX_PARTS * first_size) // growing**2)
    return min(MAX_PART_BYTES, first_size + max(0, number - steady) * step)


class MultipartWriter:
    """A binary sink for one object, which appears under its name when `close` returns. `discard` leaves nothing behind.

    Args:
        fs: an `s3fs.S3FileSystem`.
        path: bucket and key.
        expected: the likely number of bytes, or 0. A right number saves memory with objects of more than 8 GB.
    """

    def __init__(self, fs: Any, path: str, expected: int = 0) -> None:
        bucket, key, _ = fs.split_path(path)
        self._fs, self._path, self._expected = fs, path, expected
        self._object = {"Bucket": bucket, "Key": key}
        self._part = bytearray()
        self._size = part_size(1, expected)
        self._parts: list[tuple[int, Future[dict[str, Any]]]] = []
        self._upload: dict[str, Any] = {}
        self._pool: ThreadPoolExecutor | None = None

    def write(self, data: Any) -> int:
        """Add bytes. Raises the error of a part that could not be uploaded."""
        remaining = memoryview(data).cast("B")
        while remaining:
            space = self._size - len(self._part)
            self._part += remaining[:space]
            remaining = remaining[space:]
            if len(self._part) == self._size:
                self._send()
        return memoryview(data).nbytes

    def close(self) -> None:
        """Upload the last part, and make the object appear."""
        if not self._upload:
            self._call("put_object", Body=self._part)
        else:
            if self._part:
                self._send()
            self._complete([part.result() for _, part in self._parts])
            self._end()
        self._fs.invalidate_cache(self._path)

    def discard(self) -> None:
        """Stop, and remove the parts from the server. Does not raise."""
        self._end()
        if self._upload:
            with contextlib.suppress(Exception):  # gc finds uploads that are left
                self._call("abort_multipart_upload", **self._upload)

    def _send(self) -> None:
        for _, part in self._parts[-MAX_CONCURRENT_PARTS - 1 :]:
            if part.done():
                part.result()  # raises its error now rather than after the last byte
        if self._pool is None:
            self._upload = {"UploadId": self._call("create_multipart_upload")["UploadId"]}
            self._pool = ThreadPoolExecutor(MAX_CONCURRENT_PARTS)
        number, body = len(self._parts) + 1, self._part
        _in_flight.take(len(body))
        self._parts.append((len(body), self._pool.submit(self._put, number, body)))
        self._part = bytearray()
        if not self._fs.fixed_upload_size:  # set by users of servers that want parts of one size
            self._size = part_size(number + 1, self._expected)

    def _put(self, number: int, body: bytearray) -> dict[str, Any]:
        try:
            answer = self._call("upload_part", PartNumber=number, Body=body, **self._upload)
        finally:
            _in_flight.give(len(body))
        return {"PartNumber": number, **{n: answer[n] for n in ("ETag", "ChecksumSHA256") if n in answer}}

    def _complete(self, parts: list[dict[str, Any]]) -> None:
        try:
            self._call("complete_multipart_upload", MultipartUpload={"Parts": parts}, **self._upload)
        except Exception:
            # A request whose answer was lost is repeated, although the upload does not exist any more.
            if not self._completed(parts):
                raise

    def _completed(self, parts: list[dict[str, Any]]) -> bool:
        """Whether the object consists of these parts."""
        try:
            tag = self._call("head_object")["ETag"].strip('"')
            md5s = b"".join(bytes.fromhex(part["ETag"].strip('"')) for part in parts)
        except Exception:  # there is no such object, or the server's tags are not MD5s
            return False
        return bool(tag == f"{hashlib.md5(md5s).hexdigest()}-{len(parts)}")

    def _call(self, method: str, **arguments: Any) -> Any:
        return self._fs.call_s3(method, **self._object, **arguments)

    def _end(self) -> None:
        if self._pool is not None:
            for size, part in self._parts:
                if part.cancel():
                    _in_flight.give(size)
            self._pool.shutdown(wait=True)
